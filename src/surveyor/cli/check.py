"""`surveyor check`: what to fix on a site, most important first."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.cli.options import current_command

if TYPE_CHECKING:
    from surveyor.check.audit import AuditResult
    from surveyor.check.request_rules import Requests
    from surveyor.check.rules import Rule
    from surveyor.cli.crawl import Finished
    from surveyor.cli.output import Output

FAILED = 3
INTERRUPTED = 130
KINDS = ("external", "resources", "certificates")  # of requests
OF_CRAWLS = ("fresh", "out", "until", "scope", "include", "exclude")  # options that a survey leaves without effect
OF_REQUESTS = ("delay", "allow", "backoff")
UNTIL = ("pages=20000",)  # of a crawl that check makes itself: all pages of most sites
REQUESTING = (*KINDS, "max_age", "most")
SEVERITIES = ("error", "warning", "note")


@options.command(
    "check",
    table=True,
    epilog="\b\nsurveyor check https://docs.example.org --contact me@example.org\n"
    "surveyor check docs.example.org.survey --html check.html --fail-on warning\n"
    "surveyor check docs.example.org.survey --json > old.json\n"
    "surveyor check docs.example.org.survey --baseline old.json --sarif check.sarif",
)
@click.argument("site", metavar="URL|SURVEY")
@options.many("--rule", "RULE", "Apply only this rule.  [all]")
@options.many("--without", "RULE", "Do not apply this rule.")
@options.choice("--fail-on", (*SEVERITIES, "never"), "Least severity that gives exit code 3.", default="error")
@options.path("--baseline", "FILE", "Leave out the findings of an earlier `check --json`.")
@options.path("--since", "SURVEY", "Leave out the findings of an earlier survey of the site.")
@options.path("--html", "FILE", "Write the findings as one HTML file, too.")
@options.path("--sarif", "FILE", "Write them as SARIF 2.1.0, for code scanning.")
@options.path("--junit", "FILE", "Write them as JUnit XML.")
@options.flag("--github", "Print them as annotations of GitHub Actions.")
@options.many("--map", "PREFIX=FOLDER", "Source folder of the pages of a URL prefix, for SARIF and annotations.")
@options.flag("--external", "Request external links, too: by HEAD, then GET, politely.")
@options.flag("--resources", "Request images, styles and scripts of the site, too.")
@options.flag("--certificates", "Request the certificates of a survey's hosts; for a URL they always are.")
@options.whole("--max-age", 0, "HOURS", "Use answers of external sites again that are at most so old.", default=24)
@options.whole("--most", 1, "N", "Request at most so many of each, the most important ones.", default=1000)
@options.flag("--fresh", "Crawl the site of the URL into a new survey; an existing one is kept.")
@options.out("DIR", "Survey folder of the crawl.  [named after the site]")
@options.top(20, "Findings to list; --csv and files have all.")
@settings.some_options("contact", "delay", "until", "scope", "include", "exclude", "allow", "backoff")
def command(output: Output, *, site: str, **given: Any) -> int:
    """Report what to fix on a site, most important first: broken links, redirects, missing fragments, duplicates.

    For a URL the site is crawled first, with its sitemaps, into a survey that the same command resumes; for a SURVEY
    nothing is requested. Findings are ordered by severity, then by the importance of the pages that they are on. A
    verdict that needs all pages, such as orphan, is given only if the survey is complete.

    Ctrl-C ends the crawl: what was fetched is checked, and the same command resumes.

    The exit code is 0 if there is no finding of the severity of --fail-on or above, else 3, and 130 after Ctrl-C. It is
    3, too, if important pages are empty without JavaScript: their links are not known.
    docs/reference/check.md lists the rules.
    """
    from surveyor.check.audit import audit
    from surveyor.check.rules import at_least, selected
    from surveyor.cli.crawl import report_stop, resume_command
    from surveyor.config import load
    from surveyor.report.check_formats import source_map
    from surveyor.store.layout import is_survey
    from surveyor.survey.crawl import nothing_fetched
    from surveyor.survey.survey import Survey

    rules = selected(given.pop("rule"), given.pop("without"), load()[0].check)
    source_map(given["map"])  # invalid ones are reported before a crawl
    names = ("fail_on", "baseline", "html", "sarif", "junit", "github", "map", "top")
    asked = {name: given.pop(name) for name in names}
    known = [] if asked["baseline"] is None else read_baseline(Path(asked["baseline"]))
    if (since := given.pop("since")) is not None:
        known += _known_since(output, since, rules)
    requesting = {name: given.pop(name) for name in REQUESTING}
    crawling = {name: given.pop(name) for name in ("fresh", "out")}
    stopped = None
    if "://" not in site and is_survey(site):
        path = Path(site)
        _reject_options_of_a_crawl(site, is_requesting=any(requesting[name] for name in KINDS))
    else:
        _require_url(site)
        path, stopped = _crawl(output, site, settings.given(given), **crawling)
        requesting["certificates"] = True
        if stopped is not None and not _is_checked(path, stopped):
            return report_stop(output, str(path), stopped)
    requests = None if stopped else _requests(output, site, settings.given(given), **requesting)
    try:
        with Survey(path) as survey, output.progress() as meter:
            if not survey.pages_fetched:
                raise nothing_fetched(survey)
            result = audit(survey, rules, requests=requests, progress=meter)
            is_hollow = survey.needs_javascript
    except KeyboardInterrupt:
        output.info("Interrupted during the check: the pages fetched and the answers of other sites are saved.")
        output.next_steps({"resume": resume_command(str(path))})
        return INTERRUPTED
    if requests is not None and requests.sent + requests.reused:
        again = f"; {requests.reused:,} answers were known" if requests.reused else ""
        output.info(f"{requests.sent:,} requests sent, robots.txt included{again}")
    result = _without_requests(result) if stopped else result
    result = result.without(known)
    _write(output, result, asked, list(rules))
    _print(output, result, asked, site, str(path), is_stopped=stopped is not None)
    if stopped is not None:
        return stopped.code
    if asked["fail_on"] == "never":
        return 0
    if is_hollow:
        output.warn("Important pages are empty without JavaScript, so their links and texts were not checked.")
        return FAILED
    failing = at_least(asked["fail_on"])
    return FAILED if any(one.severity in failing for one in result.findings) else 0


def _require_url(site: str) -> None:
    """Raise an error for a path, and for a word that is not a host."""
    from surveyor.crawler.seed_pages import normalised_seed
    from surveyor.errors import SurveyError, UsageError
    from surveyor.store.layout import MANIFEST

    if "://" in site:
        return
    if os.path.lexists(site):
        hint = f"the site of that name is `surveyor check https://{site.strip('/')}/`; `surveyor crawl` writes surveys"
        raise SurveyError(f"{site} is not a survey (it has no {MANIFEST})", hint=hint)
    if site.endswith(".survey"):
        raise UsageError(f"there is no survey at {site}", hint="surveyor check URL crawls a site first")
    try:
        normalised_seed(site)
    except UsageError as error:
        raise UsageError(f"{site!r} is neither a survey nor an http or https URL", hint=error.hint) from None


def _reject_options_of_a_crawl(survey: str, *, is_requesting: bool) -> None:
    """Raise an error for options that have no effect on a survey that is there; those of requests may have one."""
    from surveyor.errors import UsageError

    names = OF_CRAWLS if is_requesting else (*OF_CRAWLS, *OF_REQUESTS)
    flags = {name: words[0] for name in names if (words := options.given_options([name]))}
    if flags:
        few = [flag for name, flag in flags.items() if name in OF_REQUESTS]
        hint = "remove them, or give the URL of the site"
        more = f"; {', '.join(few)}: only with --external, --resources or --certificates" if few else ""
        raise UsageError(f"{', '.join(flags.values())} without a crawl: {survey} is a survey", hint=hint + more)


def _is_checked(path: Path, stopped: Finished) -> bool:
    """Return whether the pages of a crawl that a signal stopped are checked: after Ctrl-C, if there are any."""
    from surveyor.store.layout import is_survey
    from surveyor.survey.survey import Survey

    if stopped.code != INTERRUPTED or not is_survey(path):
        return False
    with Survey(path) as survey:
        return survey.pages_fetched > 0


def _without_requests(result: AuditResult) -> AuditResult:
    """Return the result of an interrupted check, which requests nothing, with that as the reason."""
    from surveyor.check.rules import RULES

    why = "not requested after the interrupt"
    requesting = {name: why for name in result.skipped if RULES[name].needs_requests}
    return replace(result, skipped=result.skipped | requesting)


def _known_since(output: Output, survey: str, rules: dict[str, Rule]) -> list[str]:
    """Return the fingerprints of the findings in an earlier survey, without those that need requests."""
    from surveyor.check.audit import audit
    from surveyor.survey.survey import Survey

    with Survey(Path(survey)) as before, output.progress() as meter:
        return [one.fingerprint for one in audit(before, rules, progress=meter).findings]


def _crawl(
    output: Output, url: str, given: dict[str, Any], *, fresh: bool, out: str | None
) -> tuple[Path, Finished | None]:
    """Crawl a site with its sitemaps; return its survey, and how the crawl ended if a signal stopped it."""
    from surveyor.cli.broken_links import BrokenLinks
    from surveyor.cli.crawl import CrawlOptions, crawl_site, prepare, remove_empty
    from surveyor.store.layout import is_survey
    from surveyor.survey.survey import Survey

    given.setdefault("until", UNTIL)
    asked = CrawlOptions(urls=(url,), sitemap=True, fresh=fresh, out=out)
    prepared = prepare(output, asked, given)
    is_new = not is_survey(prepared.path)
    finished, _ = crawl_site(output, prepared, asked, BrokenLinks())
    if finished.code:
        return prepared.path, finished
    with Survey(prepared.path) as survey:
        if not survey.pages_fetched:
            raise remove_empty(survey, is_new=is_new)
        if not is_new and finished.last is not None and finished.last.before == survey.pages_fetched:
            output.info("No page was fetched now: the findings are those of the earlier crawl; --fresh crawls again.")
    return prepared.path, None


def _requests(output: Output, site: str, given: dict[str, Any], *, max_age: int, **asked: Any) -> Requests | None:
    """Return what may be requested, with the settings of requests; None if nothing may."""
    from surveyor.check.request_rules import Requests
    from surveyor.config import load
    from surveyor.crawler.start import allow_named_hosts

    if not any(asked[name] for name in KINDS):
        return None
    chosen, origins = load(given)
    chosen = settings.with_contact(output, chosen)
    chosen, _ = allow_named_hosts(chosen, origins, [site] if "://" in site else [])
    return Requests(chosen, **asked, max_age=3600.0 * max_age, say=output.info)


def read_baseline(path: Path) -> list[str]:
    """Return the fingerprints of an earlier result."""
    from surveyor.errors import InputError

    hint = "write one with `surveyor check SITE --json > FILE`"
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a result of check: {error}", hint=hint) from error
    findings = document.get("findings") if isinstance(document, dict) else None
    if not isinstance(findings, list) or not all(isinstance(one, dict) for one in findings):
        raise InputError(f"{path} is not a result of check: it has no findings", hint=hint)
    return [str(one.get("fingerprint")) for one in findings]


def _write(output: Output, result: AuditResult, asked: dict[str, Any], rules: list[str]) -> None:
    """Write the files that are asked for."""
    from surveyor.report import check_formats as formats
    from surveyor.report import html_page
    from surveyor.report.check_text import write_html

    places = formats.source_map(asked["map"])
    if asked["html"] is not None:
        output.info(f"written: {write_html(result, Path(asked['html']), f'Check of {Path(result.survey).stem}')}")
    if asked["sarif"] is not None:
        output.info(f"written: {html_page.write(formats.sarif(result, places), asked['sarif'])}")
    if asked["junit"] is not None:
        output.info(f"written: {html_page.write(formats.junit(result, rules), asked['junit'])}")
    if asked["github"]:
        output.lines(formats.github(result, places))


def _print(
    output: Output, result: AuditResult, asked: dict[str, Any], site: str, survey: str, *, is_stopped: bool
) -> None:
    from surveyor.cli.crawl import resume_command
    from surveyor.report import check_text as text

    output.object("check", {**result.to_dict(), "interrupted": is_stopped})
    if output.mode == "csv":
        output.table(text.table(result))
    if asked["github"] or output.mode != "text":
        return
    if is_stopped:
        output.line("The crawl was interrupted; the pages fetched until then are checked.")
    output.line(text.headline(result))
    output.line(text.scope_line(result))
    output.lines(text.skipped_lines(result))
    output.lines(text.archive_lines(result))
    output.lines(text.lines(result, asked["top"]))
    steps = {"resume": resume_command(survey)} if is_stopped else {}
    again = ["surveyor", "check", survey, "--html", "check.html"]
    if not asked["html"]:
        steps["sortable report"] = again if is_stopped else current_command("--html", "check.html")
    if "://" in site and not is_stopped:
        steps["after repairs"] = current_command("--fresh", without=("--fresh",))
    broken = next((one for one in result.findings if one.rule == "broken-link" and one.sources), None)
    if broken is not None:
        steps["why does it matter?"] = ["surveyor", "explain", survey, broken.sources[0].url]
    output.next_steps(steps if result.findings or is_stopped else {})

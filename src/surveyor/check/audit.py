"""Audit a survey: apply the rules and order what they find.

`audit(survey)` needs no network. Verdicts that need all links of the site, such as *orphan*, are given only if no page
is queued or blocked, left out by the settings, or needs JavaScript; otherwise the rule is listed under `skipped` with
its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from surveyor.check import link_rules, page_rules, request_rules
from surveyor.check.findings import MOST_SOURCES, Finding
from surveyor.check.request_rules import Requests
from surveyor.check.rules import RULES, SEVERITIES, Rule
from surveyor.check.site import LOOPS, Site
from surveyor.stopping import ProgressCallback, silent
from surveyor.survey.overview import Overview, overview
from surveyor.survey.survey import Survey
from surveyor.web.javascript import NEEDS_JAVASCRIPT

CHECKS: tuple[tuple[Callable[[Site], Iterator[Finding]], tuple[str, ...]], ...] = (
    (
        link_rules.broken_and_redirected,
        ("broken-link", "failing-link", "redirect-loop", "redirect-chain", "redirected-link"),
    ),
    (link_rules.missing_fragments, ("missing-fragment",)),
    (link_rules.insecure, ("mixed-content", "insecure-link")),
    (page_rules.listed, ("sitemap-error",)),
    (page_rules.orphans, ("orphan",)),
    (page_rules.canonicals, ("canonical-conflict",)),
    (page_rules.noindex, ("linked-noindex",)),
    (page_rules.translations, ("hreflang-return",)),
    (
        page_rules.texts,
        (
            *("missing-title", "duplicate-title", "missing-description", "duplicate-description"),
            *("missing-heading", "near-duplicate", "thin-page"),
        ),
    ),
    (page_rules.delivery, ("slow-page", "heavy-page", "needs-javascript", "deep-page")),
)


WITHOUT_LINKS = (*LOOPS, "redirects to no page", "redirects out of the scope")  # blocked pages without content


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult:
    """The findings of an audit, most severe and most important first."""

    survey: str
    findings: tuple[Finding, ...]
    skipped: dict[str, str]  # rules that were not judged, and why
    pages: int  # fetched
    queued: int
    blocked: int
    coverage: dict[str, Any] | None
    known: int = 0  # findings of the baseline, which are left out
    overview: Overview | None = None  # of the site
    not_archived: int = 0  # fetched pages without a body, if bodies were read
    in_part: tuple[str, ...] = ()  # pages whose archived body lacks its end, most important first

    def counts(self) -> dict[str, int]:
        """Count the findings by severity."""
        return {severity: sum(one.severity == severity for one in self.findings) for severity in SEVERITIES}

    def by_rule(self) -> dict[str, list[Finding]]:
        """Return the findings by rule, in the order of the most important one of each."""
        found: defaultdict[str, list[Finding]] = defaultdict(list)
        for one in self.findings:
            found[one.rule].append(one)
        return dict(found)

    def to_dict(self, count: int | None = None) -> dict[str, Any]:
        """Return plain values, with at most `count` findings."""
        return {
            "survey": self.survey,
            "coverage": self.coverage,
            "pages_fetched": self.pages,
            "pages_queued": self.queued,
            "pages_blocked": self.blocked,
            "pages_not_archived": self.not_archived,
            "pages_archived_in_part": len(self.in_part),
            "archived_in_part": list(self.in_part[:MOST_SOURCES]),
            "counts": self.counts(),
            "known": self.known,
            "rules": {rule: len(found) for rule, found in self.by_rule().items()},
            "skipped": self.skipped,
            "findings": [one.to_dict() for one in self.findings[:count]],
        }

    def without(self, known: Iterable[str]) -> AuditResult:
        """Return the result without the findings of a baseline, named by fingerprint."""
        before = frozenset(known)
        new = tuple(one for one in self.findings if one.fingerprint not in before)
        return replace(self, findings=new, known=len(self.findings) - len(new))

    def __repr__(self) -> str:
        counts = ", ".join(f"{number:,} {severity}s" for severity, number in self.counts().items())
        return f"AuditResult({counts}; {self.pages:,} pages)"


def audit(
    survey: Survey,
    rules: dict[str, Rule] | None = None,
    *,
    requests: Requests | None = None,
    progress: ProgressCallback = silent,
) -> AuditResult:
    """Apply rules (default: all) to a survey; without `requests`, those that need requests are skipped."""
    chosen = RULES if rules is None else rules
    site = Site(survey, progress=progress)
    skipped = _not_judged(survey, chosen)
    if any(rule.needs_bodies or rule.needs_complete for rule in chosen.values()):
        site.read_bodies()
        skipped = _unread(site, chosen) | skipped
    unlinked = [name for name, rule in chosen.items() if rule.needs_complete and name not in skipped]
    if unlinked and (why := _why_unlinked_is_unknown(site)):
        skipped |= dict.fromkeys(unlinked, why)
    found: list[Finding] = []
    for check, names in CHECKS:
        judged = [name for name in names if name in chosen and name not in skipped]
        if judged:
            found += [one for one in check(site) if one.rule in judged]
    if requests is not None:
        found += request_rules.check(site, requests, [name for name in chosen if name not in skipped])
        skipped |= {name: why for name, why in requests.skipped.items() if name in chosen}
    skipped |= {
        name: f"requested only with {rule.needs_requests}"
        for name, rule in chosen.items()
        if rule.needs_requests and (requests is None or name not in requests.rules)
    }
    found = [_switched(one, chosen[one.rule]) for one in found]
    found.sort(key=lambda one: one.order)
    return AuditResult(
        survey=str(survey.folder),
        findings=tuple(with_lines(site, found)),
        skipped=skipped,
        pages=survey.pages_fetched,
        queued=survey.pages_queued,
        blocked=sum(row["pages"] for row in survey.blocked()),
        coverage=survey.coverage_fields,
        overview=overview(survey),
        not_archived=site.unread,
        in_part=tuple(site.urls[page] for page in sorted(site.incomplete, key=lambda page: (-site.shares[page], page))),
    )


def _not_judged(survey: Survey, chosen: dict[str, Rule]) -> dict[str, str]:
    """Return the rules that the coverage of the survey does not permit, and why."""
    unknown = [row["pages"] for row in survey.blocked() if not row["reason"].startswith(WITHOUT_LINKS)]
    queued, blocked, scripted = survey.pages_queued, sum(unknown), len(survey.journal.read_for(NEEDS_JAVASCRIPT))
    if not queued and not blocked and not scripted:
        return {}
    more = f", {scripted:,} need JavaScript" if scripted else ""
    why = f"{queued:,} pages are queued and {blocked:,} blocked{more}, which may hold links"
    return {name: why for name, rule in chosen.items() if rule.needs_complete}


def _why_unlinked_is_unknown(site: Site) -> str:
    """Return why it is not known which listed pages no link leads to; empty if it is."""
    if site.unread_sitemaps and not site.unlinked.pages:
        return f"sitemaps that could not be read: {len(site.unread_sitemaps):,}, which may list more pages"
    return site.unlinked.why_unknown


def _unread(site: Site, chosen: dict[str, Rule]) -> dict[str, str]:
    """Return the rules that the archived bodies do not permit, and why."""
    found = {}
    if site.unread and not site.facts:
        why = f"{site.unread:,} of {site.survey.pages_fetched:,} pages have no archived body"
        found = {name: why for name, rule in chosen.items() if rule.needs_bodies}
    if site.incomplete:
        why = f"pages received in part: {len(site.incomplete):,}, which may hold links"
        found |= {name: why for name, rule in chosen.items() if rule.needs_complete}
    return found


def _switched(one: Finding, rule: Rule) -> Finding:
    """Give a finding the severity of its rule in this audit."""
    return one if one.severity == rule.severity else replace(one, switched=rule.severity)


def with_lines(site: Site, findings: list[Finding]) -> list[Finding]:
    """Add the lines of links to the sources of findings."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for one in findings:
        for source in one.sources if one.rule in LINKED else ():
            wanted[source.url].add(one.url)
    lines = {url: site.lines(url, references) for url, references in wanted.items()}
    return [
        replace(
            one,
            sources=tuple(replace(source, line=lines.get(source.url, {}).get(one.url, 0)) for source in one.sources),
        )
        if one.rule in LINKED
        else one
        for one in findings
    ]


LINKED = frozenset(
    (
        *("broken-link", "failing-link", "redirect-loop", "redirect-chain", "redirected-link", "missing-fragment"),
        *("mixed-content", "insecure-link", "linked-noindex", "external-broken", "broken-resource"),
    )
)

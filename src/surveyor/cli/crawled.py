"""How a crawl ended: in words, with the best pages and the next step."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from surveyor.cli.suggested import typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.crawler.session import Result, Run
    from surveyor.stopping import Rule
    from surveyor.survey.survey import Survey

NOT_REACHED = 3  # the exit code
TOP = 10


def nothing(survey: Survey, *, is_new: bool) -> Exception:
    """Return the error of a crawl that fetched nothing; a survey that never held anything is removed."""
    from surveyor.crawler.nothing_fetched import nothing_fetched

    error = nothing_fetched(survey)
    if is_new:
        shutil.rmtree(survey.folder, ignore_errors=True)
    return error


def stopped(output: Output, survey: str, last: Run | None, code: int) -> int:
    """Say what is saved of a crawl that was stopped, from what it knew last."""
    from surveyor.report.accounts import interval
    from surveyor.report.numbers import counted

    pages = 0 if last is None else last.state.tally.pages
    known = "" if last is None else f", {interval(last.state.crawl.ledger.coverage())}"
    output.say(f"Stopped. {counted(pages, 'page')} saved{known}." if last else "Stopped before the crawl began.")
    look = {"look now": ["surveyor", "top", survey]} if pages else {}
    output.next_steps({"go on": _again(survey), **look})
    return code


def tell(output: Output, survey: Survey, rule: Rule, ending: Result, code: int, seconds: float) -> int:
    """Say how the crawl ended, and show the best pages."""
    from surveyor.report.accounts import interval
    from surveyor.report.numbers import counted, duration
    from surveyor.report.survey_tables import javascript_lines

    name, coverage = str(survey.folder), survey.coverage
    hollow = survey.needs_javascript
    reached = ending == "reached" and not hollow
    pages = counted(survey.pages_fetched, "page")
    output.object("crawl", {**fields_of(survey, TOP), "goal": str(rule), "ending": ending, "reached": reached})
    if code:
        return code
    larger = larger_budgets(survey, survey.blocked())
    left = "within the budgets " * bool(larger)
    words = {
        "reached": f"Goal not reached ({rule})" if hollow else f"Goal reached ({rule})",
        "unreachable": f"The goal ({rule}) cannot be reached",
        "fruitless": f"{fruitless(survey)} requests in a row fetched no page (max_fruitless)",
        "empty": f"No page is left to read {left}before the goal ({rule})",
    }
    output.line(f"{words.get(ending, 'Stopped')}: {interval(coverage)}, {pages}, {duration(seconds)}.")
    for line in javascript_lines(survey):
        output.line(line)
    output.line()
    _show_top(output, survey)
    failed = not reached
    output.next_steps({
        "why is it first?": ["surveyor", "explain", name, survey.top(1)[0]["url"]],
        **({"what is missing?": ["surveyor", "top", name, "--blocked"]} if failed else {}),
        **({"which need JavaScript?": ["surveyor", "top", name, "--javascript"]} if hollow else {}),
        **({"larger budgets": [*_again(name), *larger[-2:]]} if failed and larger else {}),
        **({"another try": [*_again(name), "--again"]} if failed and coverage.blocked > 0 else {}),
        "more of the list": ["surveyor", "top", name, "-n", "50"],
        "keep it": ["surveyor", "report", name],
    })  # fmt: skip
    return NOT_REACHED if failed else 0


def fruitless(survey: Survey) -> str:
    """Return how many requests in a row ended the crawl, at least."""
    return f"{max(int(survey.manifest.settings.get('max_fruitless', 0)), survey.pages_fetched):,}"


def larger_budgets(survey: Survey, blocked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the command that goes on with larger budgets, if some importance was refused for want of one."""
    from surveyor.crawler.domain_budgets import REASON, raised

    if not any(row["reason"] == REASON and row["mass"] > 0 for row in blocked):
        return []
    seed, settings = survey.manifest.seeds[0], survey.manifest.settings
    return ["surveyor", "crawl", seed, "--out", str(survey.folder), "--budget", raised(settings)]


def _again(survey: str) -> list[str]:
    """Return the command that resumes; one that began a survey with --fresh names its folder."""
    words = typed(without=("--fresh", "--again"))
    return [*words, "--out", survey] if "--fresh" in typed() else words


def _show_top(output: Output, survey: Survey) -> None:
    from surveyor.report.accounts import MEANING
    from surveyor.report.numbers import at_most
    from surveyor.report.survey_tables import of_one_site, top_table

    output.table(of_one_site(top_table(survey.top(TOP))))
    output.line()
    output.line(f"ranks of the pages known, exact to {at_most(survey.ranking.error)} in total; score: 0-100, log scale")
    output.line(f"coverage is {MEANING}")


def fields_of(survey: Survey, top: int) -> dict[str, Any]:
    """Return what JSON says about a survey, with its best pages."""
    return {**headline(survey), "pages": survey.top(top)}


def headline(survey: Survey) -> dict[str, Any]:
    """Return the numbers of a survey that matter most."""
    return {
        "survey": str(survey.folder),
        "coverage": survey.coverage.to_dict(),
        "pages_fetched": survey.pages_fetched,
        "pages_known": survey.pages_known,
        "javascript": {"pages": len(survey.javascript()), "share": survey.javascript_share},
        "rng": survey.manifest.rng,
        "seeds": list(survey.manifest.seeds),
    }

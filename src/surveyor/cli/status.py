"""`surveyor status`, or `surveyor SURVEY`: coverage, accounts of importance and counts of a survey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.survey.survey import Survey

BLOCKED = 5  # reasons listed
SEEDS = 3  # seeds listed
NO_GRAPH = "no link graph is stored (--no-graph), so there is no coverage"


@options.command("status", table=True)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@options.flag("--by-scope", "Show instead the links in and out of scope, and the importance that they would carry.")
def command(output: Output, *, survey: str, by_scope: bool) -> int:
    """Show the coverage of SURVEY: how much of the total importance is captured, and where the rest is.

    It can run during a crawl.
    """
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        return _show_links(output, survey, opened) if by_scope else _show_status(output, survey, opened)


def _show_status(output: Output, path: str, survey: Survey) -> int:
    from surveyor.cli.steer import activity, activity_line
    from surveyor.report.survey_tables import blocked_table, budget_lines, javascript_lines
    from surveyor.store import published

    blocked, now = survey.blocked(), activity(published.read(path))
    output.object("status", {**_fields(path, survey, blocked), "live": now})
    if output.mode == "csv":
        output.table(blocked_table(blocked))
        return 0
    output.lines([*(_accounts(survey, blocked) if survey.keeps_graph else [NO_GRAPH]), *javascript_lines(survey)])
    output.lines([*budget_lines(survey), ""])
    running = activity_line(now)
    output.facts({**({"running": running} if running else {}), **_facts(survey)})
    if blocked:
        output.line()
        output.table(blocked_table(blocked[:BLOCKED]))
    steps = _next_steps(path, survey, blocked)
    if running:
        del steps["resume"]
        action = "resume" if now["status"] == "paused" else "pause"
        steps[action] = ["surveyor", "steer", path, action]
    output.next_steps(steps)
    return 0


def _accounts(survey: Survey, blocked: list[dict[str, Any]]) -> list[str]:
    """Return the lines about coverage."""
    from surveyor.report import numbers
    from surveyor.report.numbers import MEANING, counted, interval

    coverage, sampled = survey.coverage, survey.sampled
    notes = {
        "captured": interval(coverage) + (" (certified)" if sampled else ""),
        "waiting": f"on {counted(survey.pages_queued, 'queued page')}",
        "blocked": numbers.by_kind({row["reason"]: row["mass"] for row in blocked}),
    }
    lines = numbers.account_lines(coverage, notes)
    if sampled is not None:
        lines[1:1] = [numbers.sampled_line(sampled)]
    meaning = [MEANING] if sampled is None else [MEANING, numbers.sampled_meaning(sampled.confidence)]
    return [*lines, *meaning]


def _fields(path: str, survey: Survey, blocked: list[dict[str, Any]]) -> dict[str, Any]:
    manifest = survey.manifest
    return {
        "survey": path,
        "coverage": survey.coverage_fields,
        "pages_fetched": survey.pages_fetched,
        "pages_known": survey.pages_known,
        "visits": survey.visits,
        "bytes": survey.bytes,
        "rng": manifest.rng,
        "seeds": list(manifest.seeds),
        "weights": manifest.seed_weights,
        "listed": survey.listed,
        "topic": survey.topic,
        "unguarded": survey.unguarded,
        "goal": manifest.setting("until"),
        "settings": dict(manifest.settings),
        "blocked": blocked,
        "importance": None if (own := survey.own_importance) is None else own.summary(),
        "javascript": {"pages": len(survey.javascript()), "share": survey.javascript_share},
    }


def _facts(survey: Survey) -> dict[str, str]:
    from surveyor.report.numbers import counted, estimate_bound, size
    from surveyor.report.survey_tables import listed_line, topic_lines

    manifest, own = survey.manifest, survey.own_importance
    estimate = "" if own is None else f"{own.method}, {estimate_bound(own.error, own.reason)}"
    budget = describe_budget(manifest.settings)
    return {
        "seeds": ", ".join(manifest.written_seeds[:SEEDS]) + (", …" if len(manifest.seeds) > SEEDS else ""),
        **({"topic": topic_lines(survey)[0]} if manifest.setting("topic") else {}),
        **({"listed": listed_line(survey)} if manifest.listed else {}),
        "goal": str(manifest.setting("until")),
        "strategy": f"{manifest.setting('strategy')}, damping {survey.damping:g}, rng {manifest.rng}",
        **({"importance": estimate} if estimate else {}),
        **({"budget": budget} if budget else {}),
        "pages": f"{survey.pages_fetched:,} fetched, {survey.pages_queued:,} queued, {survey.pages_known:,} known",
        "transferred": f"{counted(survey.visits, 'visit')}, {size(survey.bytes)}",
        "folder": f"{survey.folder}, {size(survey.size)} on disk",
    }


def _next_steps(path: str, survey: Survey, blocked: list[dict[str, Any]]) -> dict[str, list[str]]:
    from surveyor.cli.crawl import larger_budgets

    steps = (
        {"top pages": ["surveyor", "top", path], "report": ["surveyor", "report", path]} if survey.keeps_graph else {}
    )
    if survey.own_importance is not None:
        steps["estimated importance"] = ["surveyor", "top", path, "--importance", survey.own_importance.method]
    if survey.needs_javascript:
        steps["pages that need JavaScript"] = ["surveyor", "top", path, "--javascript"]
    steps["resume"] = survey.resume_words
    if larger := larger_budgets(survey, blocked):
        steps["larger budgets"] = larger
    return steps


def describe_budget(settings: Mapping[str, Any]) -> str:
    """Describe the page budget per domain; return an empty string if there is none."""
    parts = [str(settings.get(name) or "") for name in ("budget", "budget_file")]
    if parts[0].lower() in ("", "none") and not parts[1]:
        return ""
    by_reputation = parts[0].lower().startswith("star") and not parts[1]
    return ", ".join(filter(None, parts)) + (", by reputation of the domain" if by_reputation else " per domain")


def _show_links(output: Output, path: str, survey: Survey) -> int:
    from surveyor.report.survey_tables import scope_table

    rows = survey.links_by_scope()
    output.object("status", {"survey": path, "links_by_scope": rows})
    if not rows and output.mode == "text":
        output.line("No page is fetched yet, so there are no links.")
        return 0
    output.table(scope_table(rows))
    output.line()
    output.line("Links out of scope carry no importance; this table counts them as if they did.")
    return 0

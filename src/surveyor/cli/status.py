"""`surveyor status`, or just `surveyor SURVEY`: how much of what matters is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output

BLOCKED = 5  # reasons that are named


@options.command("status", table=True)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.option("--scope", is_flag=True, help="Show instead where links lead: how much leaves the scope, and why.")
def command(output: Output, *, survey: str, scope: bool) -> int:
    """Say how much of all importance SURVEY holds, and where the rest is.

    It may be asked while a crawl is going on.
    """
    if scope:
        return show_scope(output, survey)
    from surveyor.cli.crawl import larger_budgets
    from surveyor.report.accounts import MEANING, account_lines, by_kind, interval
    from surveyor.report.numbers import counted, size
    from surveyor.report.survey_tables import blocked_table, javascript_lines
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        coverage, blocked, manifest = opened.coverage, opened.blocked(), opened.manifest
        output.object("status", {
            "survey": survey, "coverage": coverage.to_dict(), "pages_fetched": opened.pages_fetched,
            "pages_known": opened.pages_known, "visits": opened.visits, "bytes": opened.bytes, "rng": manifest.rng,
            "seeds": list(manifest.seeds), "goal": manifest.setting("until"), "settings": dict(manifest.settings),
            "blocked": blocked,
            "javascript": {"pages": len(opened.javascript()), "share": opened.javascript_share},
        })  # fmt: skip
        if output.mode == "csv":
            output.table(blocked_table(blocked))
            return 0
        waiting = opened.pages_queued
        notes = {
            "captured": interval(coverage),
            "waiting": f"on {counted(waiting, 'known page')}",
            "blocked": by_kind({row["reason"]: row["mass"] for row in blocked}),
        }
        for line in account_lines(coverage, notes):
            output.line(line)
        output.line(MEANING)
        for line in javascript_lines(opened):
            output.line(line)
        output.line()
        output.facts({
            "seeds": ", ".join(manifest.seeds[:3]) + (", …" if len(manifest.seeds) > 3 else ""),
            "goal": str(manifest.setting("until")),
            "strategy": f"{manifest.setting('strategy')}, damping {opened.damping:g}, rng {manifest.rng}",
            **({"budget": told} if (told := budget_in_words(manifest.settings)) else {}),
            "pages": f"{opened.pages_fetched:,} fetched, {waiting:,} queued, {opened.pages_known:,} known",
            "fetched": f"{counted(opened.visits, 'visit')}, {size(opened.bytes)}",
            "folder": f"{opened.folder}, {size(opened.size)} on disk",
        })  # fmt: skip
        if blocked:
            output.line()
            output.table(blocked_table(blocked[:BLOCKED]))
        script_pages = ["surveyor", "top", survey, "--javascript"]
        output.next_steps({
            "the best pages": ["surveyor", "top", survey],
            "all of it": ["surveyor", "report", survey],
            **({"pages that need JavaScript": script_pages} if opened.needs_javascript else {}),
            "go on": ["surveyor", "crawl", *manifest.seeds[:1], "--out", survey],
            **({"larger budgets": larger} if (larger := larger_budgets(opened, blocked)) else {}),
        })  # fmt: skip
    return 0


def budget_in_words(settings: Mapping[str, Any]) -> str:
    """Say how many pages of a domain may be read, if that is limited."""
    parts = [str(settings.get(name) or "") for name in ("budget", "budget_file")]
    return "" if parts[0].lower() in ("", "none") and not parts[1] else ", ".join(filter(None, parts)) + " of a domain"


def show_scope(output: Output, survey: str) -> int:
    """Print how much importance stays in the scope and how much leaves it."""
    from surveyor.report.survey_tables import scope_table
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        rows = opened.links_by_scope()
        output.object("status", {"survey": survey, "leaving": rows})
        if not rows and output.mode == "text":
            output.line("No page was read yet, so there are no links.")
            return 0
        output.table(scope_table(rows))
        output.line()
        output.line("Links out of scope are kept but carry no importance; here they count as if they did.")
    return 0

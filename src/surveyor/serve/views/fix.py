"""What to fix on a site: the findings of `surveyor check`, most important first."""

from __future__ import annotations

from typing import Any

from surveyor.check.rules import RULES
from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked

SHOWN = 100
SOURCES = 3  # pages that a finding is on
COLUMNS = ("severity", "rule", "weight", "url", "message", "sources")


def show(ask: Asked) -> Page:
    """Show the findings of the last check."""
    job = ask.site.jobs.state("check", ask.folder)
    result = (job or {}).get("result") or {}
    findings = list(result.get("findings") or [])
    rules = dict(result.get("rules") or {})
    rule = ask.choice("rule", ("", *RULES), "") if ask.text("rule") else ""
    start = ask.whole("start", 0) or 0
    chosen = [one for one in findings if not rule or one.get("rule") == rule]
    shown = chosen[start : start + SHOWN]
    about = {name: {"title": one.what, "fix": one.fix, "severity": one.severity} for name, one in RULES.items()}
    return Page(
        template="fix.html",
        title=f"What to fix in {ask.name}",
        data={"job": state_of(job), "counts": result.get("counts"), "rules": rules, "findings": chosen[:10_000]}
        | {"skipped": result.get("skipped") or {}},
        table=Rows(COLUMNS, chosen),
        command=["surveyor", "check", str(ask.folder)],
        python="",
        shown={
            "name": ask.name,
            "result": result,
            "rule": rule,
            "shown": shown,
            "start": start,
            "total": len(chosen),
            "step": SHOWN,
            "about": about,
            "most_sources": SOURCES,
        },
    )


def state_of(job: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a job without its result."""
    return None if job is None else {name: value for name, value in job.items() if name != "result"}


def words(ask: Asked, form: dict[str, str]) -> list[str]:  # noqa: ARG001
    """Return the command of a check; it requests nothing."""
    return ["check", "--json", "--fail-on", "never", "--", str(ask.folder)]

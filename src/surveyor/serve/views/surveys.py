"""The list of surveys, and the form that starts one."""

from __future__ import annotations

from typing import Any

from surveyor.serve.page import Page, Rows, part
from surveyor.serve.site import Asked, Site
from surveyor.serve.status import sentence, snapshot
from surveyor.serve.surveys import changed_at
from surveyor.store import published

SHOWN = 200
COLUMNS = ("name", "status", "pages", "known", "at_least", "at_most", "goal", "changed_at", "seeds", "folder")


def show(ask: Asked) -> Page:
    """Show all surveys with their coverage."""
    rows = listed(ask.site)
    return Page(
        template="surveys.html",
        title="Surveys",
        data={"surveys": rows, "total": len(ask.site.surveys.all())},
        table=Rows(COLUMNS, rows),
        command=["surveyor", "serve"],
        python="import surveyor as sv\nfrom pathlib import Path\n\n"
        'surveys = [sv.open(file.parent) for file in Path().glob("*/survey.toml")]',
        shown={"home": str(ask.site.surveys.home), "form": {}},
    )


def listed(site: Site) -> list[dict[str, Any]]:
    """Return the surveys, those with a running crawl first, then the last changed."""
    rows = []
    for name, folder in list(site.surveys.all().items())[:SHOWN]:
        state = snapshot(site, folder)
        if state["status"] == "unknown":
            site.tables.want(folder)
        coverage = state["coverage"] or {}
        rows.append(
            {
                "name": name,
                "status": state["status"],
                "running": state["running"],
                "says": state["problem"] or sentence(state),
                "pages": state["pages"],
                "known": state["known"],
                "rate": state["rate"],
                "coverage": state["coverage"],
                "at_least": coverage.get("at_least"),
                "at_most": coverage.get("at_most"),
                "goal": state["goal"],
                "goal_coverage": state["goal_coverage"],
                "changed_at": changed_at(folder),
                "seeds": state["seeds"][:3],
                "folder": str(folder),
            }
        )
    return sorted(rows, key=lambda row: not row["running"])


def stamp(site: Site) -> Any:
    """Return a value that changes when the list does."""
    found = []
    for name, folder in list(site.surveys.all().items())[:SHOWN]:
        state = published.read(folder)
        stamp = (published.is_running(state), changed_at(folder), site.tables.stamp(folder))
        found.append((name, state and state["written_at"], *stamp))
    return found


def parts(site: Site) -> dict[str, str]:
    """Return the live part of the page."""
    return {"live-surveys": part("surveys_table.html", surveys=listed(site))}

"""What has changed since a time, and the watch that keeps a survey fresh."""

from __future__ import annotations

import time

from surveyor.errors import SurveyorError
from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.status import sentence, snapshot
from surveyor.serve.views.fix import state_of
from surveyor.survey.changes import KINDS, since_time

SHOWN = 100
STORED = 1000
COLUMNS = ("kind", "at", "importance", "url", "old_title", "title")
SPANS = {"24h": "a day", "7d": "a week", "30d": "30 days", "365d": "a year"}


def show(ask: Asked) -> Page:
    """Show the changes that visits found."""
    job = ask.site.jobs.state("changes", ask.folder)
    result = (job or {}).get("result") or {}
    changes = [row for row in result.get("changes") or [] if isinstance(row, dict)]
    state = snapshot(ask.site, ask.folder)
    return Page(
        template="freshness.html",
        title=f"Freshness of {ask.name}",
        data={
            "job": state_of(job),
            "counts": result.get("counts") or {},
            "since": result.get("since"),
            "changes": changes,
        },
        table=Rows(COLUMNS, changes),
        command=["surveyor", "diff", str(ask.folder), "--since", "7d"],
        python=f"import surveyor as sv\n\nsv.open({str(ask.folder)!r}).changes(since='7d')",
        shown={
            "name": ask.name,
            "result": result,
            "shown": changes[:SHOWN],
            "spans": SPANS,
            "meanings": KINDS,
            "s": state,
            "says": sentence(state),
            "is_watch": state["command"] == "watch",
        },
    )


def words(ask: Asked, form: dict[str, str]) -> list[str]:
    """Return the command that lists the changes since a time."""
    since = form.get("since", "7d").strip()
    try:
        since_time(since, time.time())
    except SurveyorError as error:
        raise Refused(400, f"{error.problem}.", error.hint) from None
    return ["diff", "--json", f"--since={since}", "--top", str(STORED), "--", str(ask.folder)]

"""The state of a survey for its pages: what a running crawl published, else what its tables hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from surveyor.errors import SurveyorError
from surveyor.stopping import coverage_goal, parse_rule
from surveyor.store import published
from surveyor.store.manifest import Manifest

if TYPE_CHECKING:
    from surveyor.serve.jobs import Jobs
    from surveyor.serve.tables import Tables

ENDINGS = {
    "reached": "The goal is reached.",
    "unreachable": "The goal cannot be reached: too much importance is on pages that cannot be fetched.",
    "exhausted": "No page is left to fetch.",
    "fruitless": "Many requests in a row gave no page.",
    "interrupted": "Stopped; everything is saved.",
}
COUNTS = ("pages", "known", "queued", "requests", "bytes", "hosts")
FROM_TABLES = ("known", "queued", "bytes", "hosts", "coverage", "statuses", "blocked", "as_of")
LIVE_ONLY: dict[str, Any] = {
    "rate": 0.0,
    "left": None,
    "best_possible": None,
    "next": [],
    "recent": [],
    "hosts_waiting": [],
    "messages": [],
    "in_progress": 0,
    "started_at": None,
    "listening": False,
    "http": {},
}


class Server(Protocol):
    """What runs and reads for the surveys of a server."""

    @property
    def jobs(self) -> Jobs:
        """The processes."""

    @property
    def tables(self) -> Tables:
        """The tables of the surveys."""


def snapshot(site: Server, folder: Path) -> dict[str, Any]:
    """Return the state of a survey as plain values; `status` is `unknown` if nothing is known about it yet."""
    state = published.read(folder)
    running = published.is_running(state)
    found: dict[str, Any] = {
        "status": "unknown",
        "running": running,
        "command": "crawl",
        "ending": None,
        "goal": "",
        "goal_coverage": None,
        "strategy": "",
        **dict.fromkeys(COUNTS, 0),
        "coverage": None,
        "blocked": [],
        "statuses": {},
        **LIVE_ONLY,
        "seeds": [],
        "as_of": None,
        "problem": "",
    }
    try:
        manifest = Manifest.read(folder)
        found |= {"seeds": list(manifest.seeds[:20]), "goal": str(manifest.setting("until"))}
        found["strategy"] = str(manifest.setting("strategy"))
        found["goal_coverage"] = _goal(found["goal"])  # the goal in a published state is a sentence
    except (SurveyorError, OSError) as error:
        found["problem"] = error.problem if isinstance(error, SurveyorError) else str(error)
    if state is not None:
        found |= {name: state[name] for name in found if name in state}
        found["as_of"] = state["written_at"]
        found["status"] = state["status"] if running else "ended"
        if not running:
            found |= {"rate": 0.0, "left": None, "next": [], "hosts_waiting": [], "in_progress": 0, "listening": False}
            found["ending"] = state["ending"] or "interrupted"
    summary = None if running else site.tables.summary(folder)
    if summary is not None and (state is None or not summary["as_of"] < state["written_at"] <= time.time()):
        found |= _recorded(found, summary)
    job = site.jobs.find("crawl", folder)
    if job is not None and job.is_running and not running:
        found |= {"status": "starting", "command": "crawl"}
    coverage = found["coverage"]
    if coverage is not None:
        found["best_possible"] = 1 - coverage["blocked"] - coverage["lost"]
    return found


def _recorded(state: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    """Return what the tables say of a survey without a running crawl.

    They are made from the journal, by this user. The last published state may be from elsewhere, or older than the
    journal if the crawl was killed; so it counts only until the tables are made. Requests for robots.txt and the like
    are in that state alone.
    """
    found = {name: summary[name] for name in FROM_TABLES} | {"status": "ended", "pages": summary["fetched"]}
    if (state["pages"], state["known"]) != (summary["fetched"], summary["known"]):
        found |= {"requests": summary["visits"], "http": {}}
    return found


def _goal(text: str) -> float | None:
    try:
        return coverage_goal(parse_rule(text)) if text else None
    except SurveyorError:
        return None


def sentence(state: dict[str, Any]) -> str:
    """Say what a crawl is doing."""
    if state["status"] == "starting":
        return "The crawl is starting."
    if state["status"] == "unknown":
        return "Nothing is known about this survey yet."
    noun = {"watch": "watch", "scout": "scout"}.get(state["command"], "crawl")
    if not state["running"]:
        return ENDINGS.get(state["ending"] or "", f"No {noun} is running.")
    age = time.time() - (state["as_of"] or 0.0)
    late = f" (last sign of life {age:.0f} s ago)" if age > 10 else ""
    verb = {"paused": "paused", "stopping": "stopping"}.get(state["status"], "running")
    return f"The {noun} is {verb}{late}."

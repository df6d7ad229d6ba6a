"""A survey at a glance, live: bounds, goal, accounts, rate, what is fetched next and why, and the controls."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

from surveyor.errors import UsageError
from surveyor.report.numbers import kind_of
from surveyor.serve import drawing
from surveyor.serve.page import Page, Rows, part
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked, Site
from surveyor.serve.status import sentence, snapshot
from surveyor.store import published

LIVE = ("state", "controls", "bounds", "curve", "facts", "next", "recent", "hosts", "messages")
CURVE = ("pages", "seconds", "at_least", "at_most", "sampled")
GOALS = {"coverage": "% of importance", "pages": "pages", "minutes": "minutes"}
SPARK = 60  # points of the rate


def show(ask: Asked) -> Page:
    """Show the state of a survey."""
    state = snapshot(ask.site, ask.folder)
    curve = points(ask.site, ask.folder)
    return Page(
        template="overview.html",
        title=f"Overview of {ask.name}",
        data={**state, "curve": curve, "says": sentence(state)},
        table=Rows(CURVE, curve),
        command=["surveyor", "status", str(ask.folder)],
        python=f"import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\nsurvey.coverage",
        shown=live_values(ask.site, ask.name, state, curve),
    )


def live_values(site: Site, name: str, state: dict[str, Any], curve: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the live parts show besides the state itself."""
    return {
        "s": state,
        "name": name,
        "says": sentence(state),
        "secret": site.identity.form_secret,
        "goals": GOALS,
        "chart": chart(state, curve),
        "rates": drawing.spark(rates(curve), "pages per second over time"),
        "groups": groups(state["blocked"]),
        "note": site.notes.get(name, ""),
    }


def stamp(site: Site, name: str) -> Any:
    """Return a value that changes when the page does."""
    folder = site.surveys.folder(name)
    if folder is None:
        return None
    state = published.read(folder)
    site.tables.want(folder)
    return (state and state["written_at"], published.is_running(state), site.notes.get(name), site.tables.stamp(folder))


def parts(site: Site, name: str) -> dict[str, str]:
    """Return the live parts of the page."""
    folder = site.surveys.folder(name)
    if folder is None:
        return {}
    state = snapshot(site, folder)
    values = live_values(site, name, state, points(site, folder))
    return {f"live-{one}": part(f"live/{one}.html", **values) for one in LIVE}


def points(site: Site, folder: Path) -> list[dict[str, Any]]:
    """Return the growth of the coverage as rows: as the crawl published it, or that of the tables if it was short."""
    curve = published.curve(folder)
    columns = [[None if math.isnan(value) else value for value in column.tolist()] for column in curve]
    if len(columns[0]) < published.ENOUGH and (view := site.tables.open(folder)) is not None:
        found = view.curve()
        columns = [found[name] for name in CURVE]
    return [dict(zip(CURVE, row, strict=True)) for row in zip(*columns, strict=True)]


def chart(state: dict[str, Any], curve: list[dict[str, Any]]) -> Any:
    """Draw the bounds over fetched pages."""
    names = {"at_least": "at least", "at_most": "at most", "sampled": "at least, sampled"}
    series = {
        title: [(row["pages"], row[name]) for row in curve if row[name] is not None and row["pages"] > 0]
        for name, title in names.items()
    }
    return drawing.lines(
        {title: line for title, line in series.items() if line},
        label="bounds of coverage over fetched pages",
        x_title="pages fetched",
        goal=state["goal_coverage"],
    )


def rates(curve: list[dict[str, Any]]) -> list[float]:
    """Return pages per second over time, in at most `SPARK` steps."""
    if len(curve) < 3 or any(row["seconds"] is None for row in curve):
        return []
    first, last = curve[0]["seconds"], curve[-1]["seconds"]
    steps = min(SPARK, len(curve) - 1)
    width = (last - first) / steps
    if width <= 0:
        return []
    found, place = [], 0
    before = curve[0]["pages"]
    for step in range(1, steps + 1):
        end = first + step * width
        while place + 1 < len(curve) and curve[place + 1]["seconds"] <= end + 1e-9:
            place += 1
        found.append(max(0.0, curve[place]["pages"] - before) / width)
        before = curve[place]["pages"]
    return found


def groups(blocked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum blocked importance by kind of reason."""
    sums: dict[str, dict[str, Any]] = {}
    for row in blocked:
        kind = kind_of(row["reason"])
        one = sums.setdefault(kind, {"kind": kind, "pages": 0, "mass": 0.0})
        one["pages"] += row["pages"]
        one["mass"] += row["mass"]
    return sorted(sums.values(), key=lambda row: -row["mass"])


def goal_of(form: dict[str, str]) -> str:
    """Return the stopping rule of a form: a number and its unit."""
    kind, text = form.get("goal_kind", "coverage"), form.get("goal_value", "").strip().removesuffix("%").strip()
    if kind not in GOALS:
        raise Refused(400, f"goal_kind must be one of {', '.join(GOALS)}; got {kind!r:.40}.")
    try:
        value = float(text)
    except ValueError:
        raise Refused(400, f"The goal must be a number; got {text!r:.40}.", "for example 95") from None
    if kind == "coverage":
        if not 0 < value < 100:
            raise Refused(400, f"The goal must be above 0 % and below 100 %; got {text} %.", "for example 95")
        return f"coverage={value:g}%"
    if not 1 <= value <= 1e12 or (kind == "pages" and value != int(value)):
        raise Refused(400, f"The goal must be a whole number from 1 to 10^12; got {text!r:.40}.", "for example 1000")
    return f"{kind}={value:.12g}"


async def control(ask: Asked, form: dict[str, str]) -> None:
    """Carry out a command for the crawl of a survey, or resume it."""
    action = form.get("action", "")
    state = await asyncio.to_thread(published.read, ask.folder)
    running = published.is_running(state)
    if action == "crawl" or (action == "goal" and not running):
        words = ["crawl", str(ask.folder), "--json", "--quiet"]
        if form.get("goal_value"):
            words += ["--until", goal_of(form)]
        job = ask.site.jobs.start("crawl", words, ask.folder)
        for _ in range(60):  # until it publishes, or fails
            await asyncio.sleep(0.1)
            if not job.is_running or published.is_running(await asyncio.to_thread(published.read, ask.folder)):
                break
        ask.site.notes[ask.name] = job.problem
        if job.problem:
            raise Refused(409, f"The crawl was not resumed: {job.problem}", job.hint)
        return
    if action not in published.VERBS:
        raise Refused(400, f"action must be one of {', '.join((*published.VERBS, 'crawl'))}; got {action!r:.40}.")
    value = goal_of(form) if action == "goal" else None
    try:
        sent = await asyncio.to_thread(published.send, ask.folder, action, value)
        await asyncio.to_thread(published.wait_until_taken, ask.folder, sent)
    except UsageError as error:
        raise Refused(400, f"{error.problem}.", error.hint) from None

"""Hosts and domains: their importance and counts, reputation scores side by side, and how politely they are asked."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from surveyor.errors import SurveyorError
from surveyor.serve import drawing
from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.view.schema import SORTS
from surveyor.serve.views.fix import state_of
from surveyor.serve.views.pages import addresses, not_built
from surveyor.store import layout, published
from surveyor.store.journal import Journal
from surveyor.web.urls import host

LIMIT = 50
SCORED = 100  # domains with scores
EVENTS = 40
KINDS = ("backoff", "retry", "robots_retry")
NAMES = {
    "tse": "supporters",
    "trust": "trust",
    "spam_mass": "spam mass",
    "in": "in-links",
    "win": "weighted in-links",
    "pagerank": "PageRank",
    "harmonic": "harmonic",
    "bv": "supporters, bit vectors",
    "qvs": "two-link paths",
}


def show(ask: Asked) -> Page:
    """Show hosts or domains, their scores, and the politeness log."""
    view = ask.view
    if view is None:
        return not_built(ask, "Hosts and domains")
    level = ask.choice("level", ("hosts", "domains"), "hosts")
    order = ask.choice("order", ("down", "up", ""), "")
    sort = ask.choice("sort", tuple(SORTS[level]), "share" if view.summary()["importance"] else "pages")
    descending = {"down": True, "up": False}.get(order)
    query = PageQuery(sort=sort, descending=descending, after=ask.text("after"), limit=LIMIT, text=ask.text("text"))
    found = view.hosts(query) if level == "hosts" else view.domains(query)
    job = ask.site.jobs.state("domains", ask.folder)
    scored = scores_of(job)
    log = politeness(ask)
    columns = [level.removesuffix("s"), *[name for name in SORTS[level] if name not in ("host", "domain")]]
    return Page(
        template="hosts.html",
        title=f"Hosts and domains of {ask.name}",
        data={
            "level": level,
            **{name: found[name] for name in ("rows", "total", "first", "next", "previous", "as_of")},
            "scores": scored["rows"],
            "politeness": log,
            "job": state_of(job),
        },
        table=Rows(columns, found["rows"]),
        command=["surveyor", "domains", str(ask.folder), "--score", "all"],
        python=f'import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\nsv.domains(survey, score="all")',
        shown={
            "name": ask.name,
            "address": addresses(ask),
            "sorting": {"key": sort, "descending": SORTS[level][sort] if descending is None else descending},
            "text": ask.text("text"),
            "level_of": level.removesuffix("s"),
            "score_columns": scored["columns"],
            "best": scored["best"],
            "scatter": scatter(scored["rows"]),
            "names": NAMES,
            "live": ask.live if published.is_running(ask.live) else None,
        },
    )


def scores_of(job: dict[str, Any] | None) -> dict[str, Any]:
    """Return the domains of the last computation with the scores that it has, and the best value of each."""
    rows = [row for row in ((job or {}).get("result") or {}).get("domains") or [] if isinstance(row, dict)][:SCORED]
    found = []
    for row in rows:
        one = {"domain": row.get("domain"), "tse": row.get("score"), "low": row.get("low"), "high": row.get("high")}
        found.append(one | {name: row[name] for name in NAMES if name in row and name != "tse"})
    values = {
        name: [float(row[name] or 0.0) for row in found if isinstance(row.get(name), int | float)] for name in NAMES
    }
    columns = [name for name in NAMES if values[name]]
    best = {name: max(values[name]) for name in columns}
    return {"rows": found, "columns": columns, "best": best}


def scatter(rows: list[dict[str, Any]]) -> Any:
    """Draw trust against popularity, if trusted domains were given."""
    points = [
        {"name": row["domain"], "x": row["popularity"], "y": row["trust"], "heat": row.get("spam_mass") or 0.0}
        for row in rows
        if isinstance(row.get("trust"), int | float) and isinstance(row.get("popularity"), int | float)
    ]
    if not points:
        return ""
    return drawing.scatter(points, x_title="popularity", y_title="trust", label="trust over popularity of domains")


def politeness(ask: Asked) -> list[dict[str, Any]]:
    """Return the last waits that a host asked for or an error caused, latest first."""
    try:
        with closing(Journal.open(ask.folder / layout.JOURNAL, write=False)) as journal:
            events = journal.latest_events(EVENTS, *KINDS)
            rows = []
            for event in events:
                detail = dict(event.detail)
                page = detail.get("page")
                where = str(detail.get("host") or detail.get("origin") or "")
                if not where and isinstance(page, int):
                    where = host(journal.urls_between(page, page + 1)[0])
                rows.append(
                    {
                        "at": event.at,
                        "host": where.partition("://")[2] or where,
                        "what": {"backoff": "wait", "retry": "retry", "robots_retry": "robots.txt again"}[event.kind],
                        "until": detail.get("until"),
                        "tries": detail.get("tries"),
                        "why": str(detail.get("why") or (f"http {detail['status']}" if detail.get("status") else "")),
                    }
                )
            return rows
    except SurveyorError as error:
        raise Refused(409, f"{error.problem}.", error.hint) from None


def words(ask: Asked, form: dict[str, str]) -> list[str]:  # noqa: ARG001
    """Return the command that scores the domains."""
    return ["domains", "--json", "--score", "all", "--top", str(SCORED), "--", str(ask.folder)]

"""One page of a survey: where its importance comes from and goes, its text, and the visits to it."""

from __future__ import annotations

import random
from typing import Any

from surveyor.errors import SurveyorError, UsageError
from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.text import text_of
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.view.view import View
from surveyor.serve.views.pages import not_built

LINKS = 25  # listed
EXPLAINED, VISITS = 10, 20
COLUMNS = ("id", "url", "title", "fraction", "contribution", "links", "out_links", "context")
NONE: dict[str, Any] = {"rows": [], "next": "", "total": 0}


def show(ask: Asked) -> Page:
    """Show a page that is named by `id` or `url`, or drawn at random."""
    view = ask.view
    if view is None:
        return not_built(ask, "Page")
    row = drawn(view) if ask.text("random") else found(ask, view)
    number = row["id"]
    has_graph = bool(view.summary()["keeps_graph"])
    in_links = view.in_links(number, limit=LINKS, after=ask.text("after")) if has_graph else NONE
    out_links = view.out_links(number, limit=LINKS)
    explained = view.explanation(number, top=EXPLAINED)["explanation"] if has_graph else None
    visits = view.visits(number, limit=VISITS)
    job = ask.site.jobs.state("explain", ask.folder)
    what_if = what_if_of(job, row["url"])
    words = ["surveyor", "explain", str(ask.folder), row["url"]]
    return Page(
        template="page.html",
        title=row["title"] or row["url"],
        data={"page": row, "in_links": in_links, "out_links": out_links, "visits": visits}
        | {"explanation": explained, "what_if": what_if, "as_of": view.as_of},
        table=Rows(COLUMNS, in_links["rows"]),
        command=words,
        python=f"import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\n"
        f"sv.explain(survey.graph(), {row['url']!r}, damping=survey.damping)",
        shown={
            "name": ask.name,
            "job": job,
            "mine": job is not None and words[3] in job.get("command", []),
            "explained": explained,
            "what_if": what_if,
            "after": ask.text("after"),
            "text": text(ask, row) if ask.text("text") else None,
            "is_random": bool(ask.text("random")),
        },
    )


def found(ask: Asked, view: View) -> dict[str, Any]:
    """Return the row of the page that an address names."""
    number, url = ask.whole("id", None), ask.text("url")
    if number is None and not url:
        raise Refused(400, "No page is named.", "add ?id=0 or ?url=https://…, or choose one on the page Pages")
    try:
        row: dict[str, Any] = view.page(url if number is None else number)["page"]
    except UsageError as error:
        raise Refused(404, f"{error.problem[:1].upper()}{error.problem[1:]}.", error.hint) from None
    return row


def drawn(view: View) -> dict[str, Any]:
    """Return a fetched page, each with the same probability."""
    known = view.summary()["urls"]
    for _ in range(200):
        row: dict[str, Any] = view.page(random.randrange(known))["page"] if known else {}  # noqa: S311  # to read
        if row.get("status") == "fetched":
            return row
    rows = view.pages(PageQuery(filters={"status": "fetched"}, limit=1000))["rows"]
    if not rows:
        raise Refused(404, "No page is fetched yet.", "start the crawl, or wait for its first pages")
    return dict(random.choice(rows))  # noqa: S311


def what_if_of(job: dict[str, Any] | None, url: str) -> dict[str, Any] | None:
    """Return the score of a page without its template links, if it is the last one computed; empty without any."""
    found = ((job or {}).get("result") or {}).get("explanation")
    return (found.get("without_templates") or {}) if isinstance(found, dict) and found.get("url") == url else None


def text(ask: Asked, row: dict[str, Any]) -> dict[str, Any]:
    """Return the main text of a page, or why there is none."""
    try:
        return {"text": text_of(ask.folder, row["id"]), "problem": "", "hint": ""}
    except SurveyorError as error:
        return {"text": "", "problem": f"{error.problem}.", "hint": error.hint}


def words(ask: Asked, form: dict[str, str]) -> list[str]:
    """Return the command that explains the importance of a page."""
    view = ask.view
    url = form.get("url", "")
    if view is None:
        raise Refused(409, "The tables of this survey are not made yet.", "try again in a moment")
    try:
        url = view.page(url)["page"]["url"]  # only a known page
    except UsageError as error:
        raise Refused(404, f"{error.problem}.", error.hint) from None
    return ["explain", "--json", "--top", str(LINKS), "--", str(ask.folder), url]

"""All known URLs of a survey: facets, text filter, sorting, and paging by key."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.view.schema import FACETS, SORTS, STATUSES
from surveyor.serve.view.view import View

COLUMNS = (
    "position",
    "score",
    "share",
    "url",
    "title",
    "status",
    "http_status",
    "reason",
    "depth",
    "in_links",
    "out_links",
    "type",
    "language",
    "bytes",
    "seconds",
    "fetched_at",
)
WHOLE = frozenset({"depth", "http_status"})
NAMES = {"http_status": "HTTP status", "reason": "blocked by"}
NONE = "none"  # in an address, for a facet without a value
LIMIT, MOST = 50, 1000
FACET_VALUES = 8  # listed
SHORT = 40


def show(ask: Asked) -> Page:
    """Show one page of the table."""
    view = ask.view
    if view is None:
        return not_built(ask, "Pages")
    filters = filters_of(ask)
    default = "share" if view.summary()["importance"] else "url"
    sort = ask.choice("sort", tuple(SORTS["pages"]), default)
    order = ask.choice("order", ("down", "up", ""), "")
    descending = {"down": True, "up": False}.get(order)
    limit = ask.whole("limit", LIMIT, 1, MOST) or LIMIT
    query = PageQuery(
        filters=filters, sort=sort, descending=descending, after=ask.text("after"), limit=limit, text=ask.text("text")
    )
    found = view.pages(query)
    address = addresses(ask)
    shown_descending = SORTS["pages"][sort] if descending is None else descending
    return Page(
        template="pages.html",
        title=f"Pages of {ask.name}",
        data={"rows": found["rows"], **{name: found[name] for name in ("total", "first", "next", "previous", "as_of")}}
        | {"facets": found["facets"]},
        table=Rows(COLUMNS, found["rows"]),
        command=as_command(ask, view, query, filters),
        python=f"import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\nsurvey.top({limit})",
        shown={
            "name": ask.name,
            "address": address,
            "sorting": {"key": sort, "descending": shown_descending},
            "facet_lists": facet_lists(found["facets"], filters, address),
            "filters": filters,
            "text": ask.text("text"),
            "folder": ask.text("folder"),
            "hidden": {key: value for key, value in ask.parameters.items() if key not in ("text", "after")},
        },
    )


def filters_of(ask: Asked) -> dict[str, Any]:
    """Return the filters of an address."""
    filters: dict[str, Any] = {}
    for name in FACETS:
        if name in ask.request.query_params:
            text = ask.text(name)
            if text == NONE:
                filters[name] = None
            elif name == "status":
                filters[name] = ask.choice(name, STATUSES, "fetched")
            else:
                filters[name] = ask.whole(name, None) if name in WHOLE else text
    if ask.text("folder"):
        filters["folder"] = ask.text("folder")
    return filters


def addresses(ask: Asked, drop: tuple[str, ...] = ("after",)) -> Any:
    """Return a function that makes the address of this page with other parameters; None removes one."""
    current = {key: value for key, value in ask.parameters.items() if key not in drop}

    def address(**changes: Any) -> str:
        values = {key: value for key, value in {**current, **changes}.items() if value is not None}
        return f"?{urlencode(values)}"

    return address


def facet_lists(facets: dict[str, Any], filters: dict[str, Any], address: Any) -> list[dict[str, Any]]:
    """Return the facets with an address for each value, which sets or clears the filter."""
    lists = []
    for kind, rows in facets.items():
        if len(rows) < 2 and kind not in filters:
            continue
        values = []
        for row in rows[:FACET_VALUES]:
            word = NONE if row["value"] is None else str(row["value"])
            on = kind in filters and filters[kind] == row["value"]
            href = address(**{kind: None if on else word})
            values.append({"label": word, "pages": row["pages"], "href": href, "on": on})
        lists.append({"kind": kind, "title": NAMES.get(kind, kind), "values": values, "more": len(rows) > FACET_VALUES})
    return lists


def as_command(ask: Asked, view: View, query: PageQuery, filters: dict[str, Any]) -> list[str]:
    """Return the query as SQL over the survey."""
    conditions = []
    columns = {"status": "kind", "http_status": "status"}
    for name, value in filters.items():
        if name in ("host", "domain", "language", "status", "http_status", "depth", "reason"):
            column = columns.get(name, name)
            conditions.append(f"{column} is null" if value is None else f"{column} = {literal(value)}")
        elif name == "folder":
            conditions.append(f"url like {literal(f'{value}%')}")
    if query.text:
        conditions.append(f"(url like {literal(f'%{query.text}%')} or title like {literal(f'%{query.text}%')})")
    if not conditions and query.sort == "share":
        ranking = view.generation.about["ranking"]
        precise = ["--tolerance", f"{ranking['tolerance']:g}"] if ranking else []  # that of these shares
        return ["surveyor", "top", str(ask.folder), "--top", str(query.limit), *precise]
    where = f" where {' and '.join(conditions)}" if conditions else ""
    ranked = bool(view.summary()["keeps_graph"])
    order = " order by share desc" if ranked else ""
    tables = "pages left join ranks using (id)" if ranked else "pages"
    statement = f"select * from {tables}{where}{order} limit {query.limit}"  # noqa: S608  # only shown
    return ["surveyor", "sql", str(ask.folder), statement]


def literal(value: object) -> str:
    """Return a value as a literal of SQL."""
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def not_built(ask: Asked, title: str) -> Page:
    """Return the page that is shown while the tables are made."""
    progress = ask.site.tables.progress(ask.folder)
    return Page(
        template="not_built.html",
        title=f"{title} of {ask.name}",
        data=progress,
        shown={"progress": progress},
        status=503,
    )

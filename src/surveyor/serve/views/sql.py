"""A read-only SQL console over the tables of a survey."""

from __future__ import annotations

from surveyor.errors import SurveyorError
from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked
from surveyor.serve.view.schema import TABLES
from surveyor.serve.views.pages import not_built

SECONDS, ROWS = 2.0, 1000
LONGEST = 4_000  # characters of a query
EXAMPLES = {
    "best hosts": "select host, pages, share from hosts order by share desc limit 20",
    "status by host": "select host, fetched, queued, blocked, gone from hosts order by pages desc limit 20",
    "slow pages": "select url, seconds, bytes from pages order by seconds desc limit 20",
    "languages": "select language, count(*) pages, sum(share) share from pages group by 1 order by 3 desc",
    "deep and important": "select url, depth, share from pages where depth > 4 order by share desc limit 20",
    "duplicate titles": "select title, count(*) pages, sum(share) share from pages where title > '' "
    "group by 1 having pages > 1 order by 3 desc limit 20",
}


def show(ask: Asked) -> Page:
    """Run the query of an address, which can only read."""
    view = ask.view
    if view is None:
        return not_built(ask, "SQL")
    query = ask.text("q").strip()
    result, problem, hint = None, "", ""
    if query:
        try:
            result = view.query(query, seconds=SECONDS, rows=ROWS)
        except SurveyorError as error:
            problem, hint = error.problem, error.hint
    columns = list(result["columns"]) if result else []
    names = [f"{column}" if columns.count(column) == 1 else f"{column}_{place}" for place, column in enumerate(columns)]
    rows = [dict(zip(names, row, strict=True)) for row in result["rows"]] if result else []
    return Page(
        template="sql.html",
        title=f"SQL over {ask.name}",
        data={"query": query, "columns": names, "rows": rows, "problem": problem, "hint": hint}
        | {"truncated": bool(result and result["more"]), "tables": TABLES},
        table=Rows(names, rows) if result else None,
        command=["surveyor", "sql", str(ask.folder), query] if query else [],
        python=f"import surveyor as sv\n\nsv.open({str(ask.folder)!r}).sql({query!r})" if query else "",
        shown={
            "name": ask.name,
            "q": query,
            "result": result,
            "examples": EXAMPLES,
            "seconds": SECONDS,
            "most": ROWS,
        },
        status=400 if problem else 200,
    )

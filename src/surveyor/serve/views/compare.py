"""Two surveys beside each other: their curves, and the pages that are new, gone, risen or fallen."""

from __future__ import annotations

from typing import Any

from surveyor.serve import drawing
from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.status import snapshot
from surveyor.serve.views.fix import state_of
from surveyor.serve.views.overview import points

SHOWN = 20  # of each kind
COLUMNS = ("kind", "url", "old_share", "new_share", "old_position", "new_position")


def show(ask: Asked) -> Page:
    """Show another survey beside this one."""
    others = [name for name in ask.site.surveys.all() if name != ask.name]
    job = ask.site.jobs.state("diff", ask.folder)
    result = (job or {}).get("result") or {}
    old = ask.site.surveys.folder(ask.text("with")) if ask.text("with") else None
    if ask.text("with") and old is None:
        raise Refused(404, f"There is no survey named {ask.text('with')!r:.100}.", "the list of surveys has all names")
    name = ask.text("with") or (others[0] if len(others) == 1 else "")
    folder = ask.site.surveys.folder(name) if name else None
    matching = bool(folder and result.get("old") == str(folder))
    changes = {kind: rows for kind, rows in (result.get("changes") or {}).items() if rows} if matching else {}
    rows: list[dict[str, Any]] = [row for kind in changes.values() for row in kind]
    states = {other: snapshot(ask.site, path) for other, path in ((name, folder), (ask.name, ask.folder)) if path}
    return Page(
        template="compare.html",
        title=f"Compare {ask.name}",
        data={
            "job": state_of(job),
            "with": name,
            "result": {key: value for key, value in result.items() if key != "changes"} if matching else None,
            "changes": changes,
        },
        table=Rows(COLUMNS, rows),
        command=["surveyor", "diff", str(folder) if folder else "OLD", str(ask.folder)],
        python=f"import surveyor as sv\n\nold = sv.open({str(folder) if folder else 'OLD'!r})\n"
        f"sv.open({str(ask.folder)!r}).diff(old)",
        shown={
            "name": ask.name,
            "others": others,
            "other": name,
            "result": result if matching else {},
            "changes": changes,
            "most": SHOWN,
            "states": states,
            "chart": curves(ask, name, folder),
        },
    )


def curves(ask: Asked, name: str, folder: Any) -> Any:
    """Draw the lower bounds of both surveys over fetched pages."""
    series = {}
    for title, path in ((name, folder), (ask.name, ask.folder)):
        if path is not None:
            series[title] = [
                (row["pages"], row["at_least"]) for row in points(ask.site, path) if row["at_least"] is not None
            ]
    label = "lower bounds of coverage over fetched pages"
    return drawing.lines({title: line for title, line in series.items() if line}, label=label, x_title="pages fetched")


def words(ask: Asked, form: dict[str, str]) -> list[str]:
    """Return the command that compares two surveys."""
    folder = ask.site.surveys.folder(form.get("with", ""))
    if folder is None or folder == ask.folder:
        raise Refused(400, "Choose another survey to compare with.")
    return ["diff", "--json", "--top", str(SHOWN), "--", str(folder), str(ask.folder)]

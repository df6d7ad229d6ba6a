"""What holds importance back: blocked pages by rule, and the frontier in the order of the queue."""

from __future__ import annotations

from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked
from surveyor.serve.views.overview import groups
from surveyor.serve.views.pages import addresses, not_built

LIMIT = 50
COLUMNS = ("url", "status", "reason", "mass", "depth", "in_links", "priority")


def show(ask: Asked) -> Page:
    """Show blocked or queued pages."""
    view = ask.view
    if view is None:
        return not_built(ask, "Blocked and frontier")
    which = ask.choice("show", ("blocked", "frontier"), "blocked")
    reason = ask.text("reason") or None
    blocked = view.blocked(limit=LIMIT, after=ask.text("after") if which == "blocked" else "", reason=reason)
    frontier = view.frontier(limit=LIMIT, after=ask.text("after") if which == "frontier" else "")
    chosen = blocked if which == "blocked" else frontier
    most = max([row["mass"] or 0.0 for row in blocked["reasons"]], default=0.0)
    return Page(
        template="blocked.html",
        title=f"Blocked pages and frontier of {ask.name}",
        data={
            "show": which,
            "reasons": blocked["reasons"],
            "hosts": frontier["hosts"],
            **{name: chosen[name] for name in ("rows", "total", "next", "previous", "as_of")},
        },
        table=Rows(COLUMNS, chosen["rows"]),
        command=["surveyor", "top", str(ask.folder), "--blocked"]
        if which == "blocked"
        else ["surveyor", "sql", str(ask.folder), "select * from pages where kind = 'queued' limit 50"],
        python=f"import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\nsurvey.blocked()",
        shown={
            "name": ask.name,
            "address": addresses(ask),
            "reason": reason,
            "most": most,
            "groups": groups(blocked["reasons"]),
            "blocked_total": sum(row["pages"] for row in blocked["reasons"]),
            "queued_total": frontier["total"],
            "coverage": view.summary()["coverage"],
        },
    )

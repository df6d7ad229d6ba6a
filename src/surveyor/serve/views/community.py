"""How the whole web may rank the pages of one site: an estimate from a few pages around it."""

from __future__ import annotations

from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.views.fix import state_of
from surveyor.serve.views.pages import not_built
from surveyor.web.urls import normalise

SHOWN = 100
HOSTS = 200  # offered
COLUMNS = ("position", "local_position", "change", "share", "local_share", "url")
KINDS = ("host", "domain", "prefix")


def show(ask: Asked) -> Page:
    """Show the last estimate, and the form of another one."""
    view = ask.view
    if view is None:
        return not_built(ask, "Community")
    job = ask.site.jobs.state("community", ask.folder)
    result = (job or {}).get("result") or {}
    pages = [row for row in result.get("pages") or [] if isinstance(row, dict)][:SHOWN]
    hosts = [row["host"] for row in view.hosts(PageQuery(limit=HOSTS))["rows"]]
    example = f"host:{(hosts or ['HOST'])[0]}"
    local = str(result.get("local") or "")
    return Page(
        template="community.html",
        title=f"Community of {ask.name}",
        data={"job": state_of(job), "result": {name: value for name, value in result.items() if name != "rounds"}},
        table=Rows(COLUMNS, pages),
        command=[
            "surveyor",
            "community",
            str(ask.folder),
            "--local",
            local or example,
            "--replay",
        ],
        python=f"import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\n"
        f"sv.community(survey, local={local or 'host:…'!r}, replay=True)",
        shown={"name": ask.name, "result": result, "pages": pages, "hosts": hosts, "local": local, "kinds": KINDS},
    )


def words(ask: Asked, form: dict[str, str]) -> list[str]:
    """Return the command of an estimate; it fetches nothing."""
    kind, value = form.get("kind", "host"), form.get("value", "").strip()
    if kind not in KINDS or not value or not value.isprintable() or len(value) > 500:
        raise Refused(400, "Name the local pages by a host, a domain or the prefix of their URLs.", "docs.example.org")
    if kind == "prefix" and normalise(value) is None:
        raise Refused(400, f"{value!r:.100} is not a URL.", "https://docs.example.org/library/")
    return ["community", "--json", "--replay", f"--local={kind}:{value}", "--top", str(SHOWN), "--", str(ask.folder)]

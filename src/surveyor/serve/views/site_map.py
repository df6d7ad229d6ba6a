"""Maps of importance: a treemap of hosts and folders, and the links between the best hosts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from surveyor.serve import drawing
from surveyor.serve.host_graph import host_graph
from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked
from surveyor.serve.views.pages import not_built
from surveyor.web.urls import host

BOXES = 60
HOSTS = 300
COLUMNS = ("prefix", "pages", "share", "own_pages", "own_share")
LINK_COLUMNS = ("source", "target", "links")


def show(ask: Asked) -> Page:
    """Show a folder as a treemap of the folders in it; without one, the sites and their hosts as a graph."""
    view = ask.view
    if view is None:
        return not_built(ask, "Map")
    prefix = ask.text("prefix")
    found = view.folders(prefix)
    here, rows = found["folder"], found["rows"]
    boxes = boxes_of(ask.name, here, rows)
    nodes, links = ([], []) if prefix else host_graph(view, HOSTS)
    shown_nodes = [
        {**node, "href": f"/s/{ask.name}/pages?host={quote(node['name'], safe='')}", "color": node["group"]}
        for node in nodes
    ]
    return Page(
        template="map.html",
        title=f"Map of {ask.name}",
        data={
            "folder": here,
            "folders": rows,
            "hosts": [{"host": node["name"], "share": node["share"], "pages": node["pages"]} for node in nodes],
            "links": [
                {"source": nodes[source]["name"], "target": nodes[target]["name"], "links": int(weight)}
                for source, target, weight in links
            ],
            "as_of": found["as_of"],
        },
        table=Rows(COLUMNS, rows),
        command=["surveyor", "report", str(ask.folder)],
        python=f'import surveyor as sv\n\nsurvey = sv.open({str(ask.folder)!r})\nsurvey.domain_graph("hosts")',
        shown={
            "name": ask.name,
            "prefix": prefix,
            "above": above(prefix),
            "rows": rows[:BOXES],
            "treemap": drawing.treemap(boxes, label="importance by folder; the table below has the numbers"),
            "graph": drawing.graph(shown_nodes, links, label="links between the best hosts; a circle is a host"),
            "most": HOSTS,
            "nodes": nodes,
        },
    )


def boxes_of(name: str, here: dict[str, Any] | None, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the boxes of a treemap: the folders, and the pages directly in this one."""
    boxes = []
    for place, row in enumerate(row for row in rows[:BOXES] if row["share"]):
        label = row["prefix"].removeprefix(here["prefix"]) if here else row["prefix"].partition("://")[2].rstrip("/")
        href = f"/s/{name}/map?prefix={quote(row['prefix'], safe='')}"
        boxes.append({"name": label, "share": row["share"], "pages": row["pages"], "href": href, "color": place})
    if here and here["own_share"]:
        href = f"/s/{name}/pages?folder={quote(here['prefix'], safe='')}"
        own = {"name": "pages here", "share": here["own_share"], "pages": here["own_pages"], "href": href}
        boxes.append({**own, "color": 7})
    rest = rows[BOXES:]
    if share := sum(row["share"] or 0.0 for row in rest):
        boxes.append({"name": "others", "share": share, "pages": sum(row["pages"] for row in rest), "color": 7})
    return boxes


def above(prefix: str) -> list[tuple[str, str]]:
    """Return the folders above one, with their labels, from the site down."""
    if "://" not in prefix:
        return []
    scheme, _, rest = prefix.partition("://")
    parts = rest.rstrip("/").split("/")
    found: list[tuple[str, str]] = []
    path = f"{scheme}://"
    for part in parts:
        path += f"{part}/"
        found.append((path, part if len(found) else host(path) or part))
    return found

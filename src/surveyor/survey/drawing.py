"""Subgraph of a survey for drawing: its best pages or hosts and the links between them, as GEXF or GraphML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from surveyor.errors import UsageError
from surveyor.survey.tables import STATUSES
from surveyor.web.urls import host

if TYPE_CHECKING:
    from surveyor.arrays import IntArray
    from surveyor.survey.survey import Survey

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
GEXF_TYPES = {str: "string", int: "long", float: "double"}
GRAPHML_TYPES = {str: "string", int: "long", float: "double"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """Nodes with attributes, best first, and weighted links between them."""

    kind: str  # "pages" or "hosts"
    facts: dict[str, type]  # attributes of each node, besides its label
    nodes: list[tuple[str, dict[str, Any]]]  # label and attributes
    links: list[tuple[int, int, int]]  # source, target, weight
    left_out: int  # number of other nodes of the survey


def reduced(survey: Survey, level: str, top: int) -> Drawn:
    """Return the best pages or hosts and the links among them."""
    if top < 1:
        raise UsageError(f"the best {top} are none", hint="give 1 or more")
    if level not in ("pages", "hosts"):
        raise UsageError(f"no level {level!r}", hint="there are pages and hosts")
    return _pages(survey, top) if level == "pages" else _hosts(survey, top)


def _pages(survey: Survey, top: int) -> Drawn:
    ranked, ranking, statuses = survey.as_graph(), survey.ranking, survey.tables.statuses
    best, marks = ranking.top(top), ranking.log_scores()
    facts = {"url": str, "host": str, "title": str, "kind": str, "share": float, "score": float, "position": int}
    nodes = []
    for position, number in enumerate(best.tolist(), 1):
        url, page = ranked.graph.name(number), int(ranked.pages[number])
        title = survey.title(page)
        values = (
            url,
            host(url),
            title,
            STATUSES[statuses[page]],
            ranking.share(number),
            float(marks[number]),
            position,
        )
        nodes.append((title or url, dict(zip(facts, values, strict=True))))
    group = np.full(ranked.graph.pages, -1, np.int64)
    group[best] = np.arange(best.size)
    return Drawn("pages", facts, nodes, _links(survey, group), ranked.graph.pages - best.size)


def _hosts(survey: Survey, top: int) -> Drawn:
    ranked, scores = survey.as_graph(), survey.ranking.scores
    number: dict[str, int] = {}
    of_page = np.array([number.setdefault(host(url), len(number)) for url in ranked.graph.names or ()], np.int64)
    share = np.bincount(of_page, scores, len(number))
    pages, fetched = np.bincount(of_page), np.bincount(of_page, ranked.read).astype(int)
    best = np.lexsort((np.arange(share.size), -share))[:top]
    names, facts = list(number), {"pages": int, "fetched": int, "share": float, "position": int}
    nodes = [
        (names[at], dict(zip(facts, (int(pages[at]), int(fetched[at]), float(share[at]), place), strict=True)))
        for place, at in enumerate(best.tolist(), 1)
    ]
    kept = np.full(len(number), -1, np.int64)
    kept[best] = np.arange(best.size)
    return Drawn("hosts", facts, nodes, _links(survey, kept[of_page]), len(number) - best.size)


def _links(survey: Survey, group: IntArray) -> list[tuple[int, int, int]]:
    """Count the links between groups of pages; those inside a group, and pages in none (-1), are left out."""
    graph = survey.graph()
    sources, targets = group[np.repeat(np.arange(graph.pages), graph.out_degrees)], group[graph.indices]
    kept = (sources >= 0) & (targets >= 0) & (sources != targets)
    size = np.int64(group.max(initial=0) + 1)
    keys, weights = np.unique(sources[kept] * size + targets[kept], return_counts=True)
    return [
        (key // int(size), key % int(size), weight) for key, weight in zip(keys.tolist(), weights.tolist(), strict=True)
    ]


def write_gexf(drawn: Drawn, file: TextIO) -> None:
    """Write GEXF, for Gephi."""
    write = _head(file, '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">', drawn)
    write('<graph defaultedgetype="directed" mode="static">\n<attributes class="node">\n')
    for number, (name, kind) in enumerate(drawn.facts.items()):
        write(f'<attribute id="{number}" title="{name}" type="{GEXF_TYPES[kind]}"/>\n')
    write("</attributes>\n<nodes>\n")
    for node, (label, facts) in enumerate(drawn.nodes):
        write(f'<node id="{node}" label={_quoted(label)}><attvalues>')
        for number, value in enumerate(facts.values()):
            write(f'<attvalue for="{number}" value={_quoted(value)}/>')
        write("</attvalues></node>\n")
    write("</nodes>\n<edges>\n")
    for number, (source, target, weight) in enumerate(drawn.links):
        write(f'<edge id="{number}" source="{source}" target="{target}" weight="{weight}"/>\n')
    write("</edges>\n</graph>\n</gexf>\n")


def write_graphml(drawn: Drawn, file: TextIO) -> None:
    """Write GraphML, for yEd, Cytoscape, igraph and others."""
    write = _head(file, '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">', drawn)
    for name, kind in {"label": str, **drawn.facts}.items():
        write(f'<key id="{name}" for="node" attr.name="{name}" attr.type="{GRAPHML_TYPES[kind]}"/>\n')
    write('<key id="weight" for="edge" attr.name="weight" attr.type="long"/>\n<graph edgedefault="directed">\n')
    for node, (label, facts) in enumerate(drawn.nodes):
        data = "".join(f'<data key="{name}">{_text(value)}</data>' for name, value in {"label": label, **facts}.items())
        write(f'<node id="n{node}">{data}</node>\n')
    for source, target, weight in drawn.links:
        write(f'<edge source="n{source}" target="n{target}"><data key="weight">{weight}</data></edge>\n')
    write("</graph>\n</graphml>\n")


def _head(file: TextIO, root: str, drawn: Drawn) -> Callable[[str], Any]:
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    comment = f"The best {len(drawn.nodes)} {drawn.kind} of a survey; {drawn.left_out} others are left out."
    file.write(f"<!-- {comment} -->\n{root}\n")
    return file.write


def _clean(value: Any) -> str:
    return NOT_XML.sub("\ufffd", repr(value) if isinstance(value, float) else str(value))


def _quoted(value: Any) -> str:
    return quoteattr(_clean(value))


def _text(value: Any) -> str:
    return escape(_clean(value))

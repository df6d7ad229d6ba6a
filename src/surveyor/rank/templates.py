"""Detect links that come from the template of a site: its footer, its navigation, a box on many pages.

A link graph does not record the position of a link on a page. But template links occur together: a page that has one
of them has the others. The rule, for a page t and one host at a time:

1. A *companion* of t is a page that at least 10 pages of the host link to, at least 80 % of which link to t as well.
   Where t is linked to by the authors of some pages, the navigation of the site has no companions of t: most pages
   with that navigation do not link to t.
2. Take the companion that most pages linking to t have. Among the pages that have both, those companions that at least
   80 % have, and t itself, are the *core*: at least 3 links, or there is no template here.
3. The pages that link to t and have at least 80 % of the core belong to the template, if they are at least 10 and give
   at least 5 % of what the host gives. They are removed, and the rest is processed from step 2 on, at most 16 times.

A page counts as linking to itself. Hosts that give less than a thousandth of the score are skipped. The cost is
a few passes over the links of the other hosts.

Limits: the rule does not detect a template with a single link, or one whose other links are common without it as
well. It cannot distinguish a template from authors who always link to the same three pages together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.graph.csr import Graph
from surveyor.graph.sites import URL, hosts_of

TOGETHER = 0.8
LINKS = 3  # minimum of a core
PAGES = 10  # minimum of a template
SLIGHT = 1e-3  # of the score: hosts that give less are skipped
SMALL = 0.05  # of what the host gives: a template that gives less is ignored
ROUNDS = 16  # maximum per host
NONE = -1.0  # marks a page that does not link; one that does may give 0


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Pages of one host that link to the explained page together with the same other pages."""

    host: str
    pages: IdArray
    core: IdArray  # the links that they share, including the explained page
    part: float  # of the explained page's score


def find_templates(graph: Graph, target: int, sources: IdArray, given: FloatArray) -> list[Template]:
    """Find the templates by which pages link to a target, most important first.

    Parameters
    ----------
    sources : the pages that link to it, each once.
    given : the part of the target's score that each gives.
    """
    if graph.names is None or not URL.match(graph.name(target)):
        return []
    hosts, names = hosts_of(graph.names)
    there = (hosts[sources] >= 0) & (sources != target)
    parts = np.full(graph.pages, NONE)
    parts[sources[there]] = given[there]
    size, part = (np.bincount(hosts[sources[there]], what, len(names)) for what in (None, given[there]))
    order = np.argsort(hosts, kind="stable")
    starts = np.searchsorted(hosts[order], np.arange(len(names) + 1))
    found = [
        Template(names[host], pages.astype(np.int32), core.astype(np.int32), float(parts[pages].sum()))
        for host in np.flatnonzero((size >= PAGES) & (part >= SLIGHT)).tolist()
        for pages, core in _of_host(graph, target, order[starts[host] : starts[host + 1]], parts)
    ]
    return sorted(found, key=lambda template: -template.part)


def _of_host(graph: Graph, target: int, pages: IntArray, parts: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Return pages and core of each template of a host; `parts` is what each page gives the target, or NONE."""
    found: list[tuple[IntArray, IntArray]] = []
    pages = pages[pages != target]
    free = pages[parts[pages] >= 0]
    own = _linked(graph, free)
    companions = (own >= PAGES) & (own >= TOGETHER * _linked(graph, pages))
    companions[target] = True  # of itself
    least = SMALL * parts[free].sum()
    untried = companions.copy()
    untried[target] = False
    for _ in range(ROUNDS):
        best = int(np.where(untried, own, -1).argmax())
        if not untried[best] or own[best] < PAGES or parts[free].sum() < least:
            break
        untried[best] = False
        both = np.intersect1d(graph.in_links_of(best), free)
        core = np.flatnonzero(companions & (_linked(graph, both) >= TOGETHER * both.size))
        untried[core] = False
        if core.size < LINKS:
            continue
        members = _having(graph, free, core)
        if members.size >= PAGES and parts[members].sum() >= least:
            found.append((members, core))
            own = own - _linked(graph, members)
            free = np.setdiff1d(free, members, assume_unique=True)
    return found


def _linked(graph: Graph, pages: IntArray) -> IntArray:
    """Return how many of `pages` link to each page."""
    return np.bincount(graph.distinct_links_from(pages)[1], minlength=graph.pages)


def _having(graph: Graph, pages: IntArray, core: IntArray) -> IntArray:
    """Return which of some pages have most of the core."""
    inside = np.zeros(graph.pages, np.bool_)
    inside[core] = True
    owners, goals = graph.distinct_links_from(pages)
    others = inside[goals] & (goals != pages[owners])
    had = np.bincount(owners[others], minlength=pages.size) + inside[pages]  # a page counts as linking to itself
    return pages[had >= TOGETHER * core.size]

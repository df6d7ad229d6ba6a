"""A small web with one local site, for tests of `surveyor community`."""

from __future__ import annotations

import surveyor as sv

HOST = "www.example.org"
SITE = [f"https://{HOST}/{name}" for name in ("", "a", "b", "c", "d")]
FAR = [f"https://far{number}.example.net/" for number in range(6)]


def links() -> list[tuple[str, str]]:
    """Return links of a site of five pages, which favours a; far pages, which it links to, favour d."""
    home, *others = SITE
    inside = [*((home, page) for page in others), *((page, home) for page in others), (SITE[2], SITE[1])]
    out = [(page, FAR[number]) for number, page in enumerate(others)]
    back = [(FAR[0], SITE[4]), (FAR[1], SITE[4]), (FAR[2], FAR[5]), (FAR[5], SITE[4]), (FAR[3], home)]
    return [*inside, *out, *back, (FAR[4], SITE[3])]


def web() -> sv.Graph:
    """Return the web as a graph with names."""
    return sv.Graph.from_edges(links())

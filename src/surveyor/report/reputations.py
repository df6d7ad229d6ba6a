"""Domains and their scores as rows of a list, side by side, and in words; `reputation_files.py` writes all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.rank.compare.spam import AT, Admitted, admitted, bad_places, top_lists
from surveyor.rank.domains.tse import outranks
from surveyor.report.numbers import at_most, count, counted, percent
from surveyor.report.spam_plots import FLAG, top_table
from surveyor.report.tables import GAP, INDENT, Table

if TYPE_CHECKING:
    from surveyor.arrays import AnyIntArray, IntArray
    from surveyor.crawler.budgets import Plan
    from surveyor.rank.domains.reputation import Reputation
    from surveyor.rank.domains.scores import Domain, Domains

WORDS = {
    "tse": "supporters", "supp": "supporters", "bv": "supporters", "in": "in-links", "win": "split votes",
    "pagerank": "share", "harmonic": "harmonic", "qvs": "paths",
}  # fmt: skip
SURE = 0.95  # of an order that is called certain
PAIRS = 50  # neighbours in a list whose order is looked into


@dataclass(frozen=True)
class Told:
    """What a list of domains says of each: its score, pages it may take, and whether it is on a list of bad ones."""

    domains: Domains
    plan: Plan | None = None
    bad: IntArray | None = None
    vouched: IntArray | None = None  # trusted domains, which a budget may give more

    def pages(self, places: AnyIntArray, nodes: AnyIntArray) -> IntArray:
        """Return the budgets of domains at these places; none without a plan."""
        if self.plan is None:
            return np.empty(0, np.int64)
        return self.plan.pages(places, None if self.vouched is None else np.isin(nodes, self.vouched))

    @property
    def total(self) -> int:
        """The pages of all domains together, under the budget."""
        known = 0 if self.vouched is None else self.vouched.size
        return 0 if self.plan is None else self.plan.total(self.domains.graph.pages, known)

    @cached_property
    def admitted(self) -> list[Admitted]:
        """Where the bad domains stand in each score; of a stream only in the part that budgets tell apart."""
        if self.bad is None or not self.bad.size:
            return []
        size = self.domains.graph.pages
        reach = min(size, AT[-1]) if self.domains.mode == "streamed" else size
        return [admitted(name, score.top(reach), self.bad) for name, score in self.domains.scores.items()]

    def places(self, nodes: AnyIntArray) -> IntArray:
        """Return the places of some domains, as far as a budget tells them apart; beyond that, ones past all."""
        return bad_places(self._best, nodes)

    @cached_property
    def _best(self) -> IntArray:
        return self.domains.main.top(0 if self.plan is None else self.plan.reach)

    def records(self, rows: list[Domain]) -> list[dict[str, Any]]:
        """Return the rows as JSON and CSV show them."""
        places, nodes = np.array([row.position for row in rows]), np.array([row.id for row in rows])
        budgets = self.pages(places, nodes).tolist()
        bad = set() if self.bad is None else set(self.bad.tolist())
        others = {name: score for name, score in self.domains.scores.items() if score is not self.domains.main}
        told = []
        for place, row in enumerate(rows):
            fields = row.to_dict()
            record = {"position": fields.pop("position"), "id": fields.pop("id"), "domain": fields.pop("name")}
            record |= {**fields, **{name: score.score(row.id) for name, score in others.items()}}
            if self.plan is not None:
                record["pages"] = budgets[place]
            if self.bad is not None:
                record["bad"] = row.id in bad
            told.append({key: value if _sayable(value) else None for key, value in record.items()})
        return told

    def to_dict(self, rows: list[Domain], top: int) -> dict[str, Any]:
        """Return all of it as plain values."""
        domains, sure = self.domains, certain(self.domains, rows)
        several = len(domains.scores) > 1
        return {
            "mode": domains.mode,
            "scores": {name: _method(score) for name, score in domains.scores.items()},
            **({} if self.plan is None else {"budget": str(self.plan), "budget_total": self.total}),
            **({} if self.bad is None else {"bad": int(self.bad.size)}),
            **({"spam": {found.name: found.to_dict() for found in self.admitted}} if self.admitted else {}),
            **({} if sure is None else {"certain_neighbours": sure}),
            **({"tops": {name: [domains.graph.name(node) for node in score.top(top).tolist()]
                         for name, score in domains.scores.items()}} if several else {}),
            "domains": self.records(rows),
        }  # fmt: skip

    def table(self, rows: list[Domain]) -> Table:
        """Lay the best domains out, for people and for machines."""
        main, records = self.domains.main, self.records(rows)
        exact = main.certainty.confidence == 1
        titles = ["", WORDS[main.kind], *([] if exact else [f"{main.certainty.confidence:.0%} between"])]
        titles += ["budget"] if self.plan else []
        titles += ["spam", "trust"] if self.domains.trust else []
        titles += ["in-links"] if main.kind != "in" else []  # the first to give way in a narrow terminal
        cells = [
            [count(row.position), figure(main.kind, row.score), *([] if exact else [between(main.kind, row)]),
             *([count(record["pages"])] if self.plan else []),
             *([f"{row.spam_mass:.2f}", f"{row.trust:.0f}"] if self.domains.trust else []),
             *([count(row.in_links)] if main.kind != "in" else []),
             f"{FLAG} {row.name}" if record.get("bad") else row.name]
            for row, record in zip(rows, records, strict=True)
        ]  # fmt: skip
        keys = list(records[0]) if records else ["position", "id", "domain", "score"]
        plain = [[int(cell) if isinstance(cell, bool) else cell for cell in record.values()] for record in records]
        return Table([*titles, "domain"], cells, keys, plain)


def side_by_side(told: Told, top: int, width: int | None) -> list[Table]:
    """Lay the tops of several scores out beside each other; in a terminal as many as fit, the others below."""
    orders = {name: score.top(top) for name, score in told.domains.scores.items()}
    bad = np.empty(0, np.int64) if told.bad is None else told.bad
    whole = top_table(list(orders), top_lists(orders, bad, top), told.domains.graph.name)
    rows = [whole.titles, *whole.cells]
    widths = [GAP + max(len(row[column]) for row in rows) for column in range(len(whole.titles))]
    groups: list[list[str]] = []
    left = 0
    for name, wide in zip(orders, widths[1:], strict=True):
        left -= wide
        if not groups or (width is not None and left < 0):
            groups.append([])
            left = (width or 0) - INDENT - widths[0] - wide + GAP  # nothing follows the last column
        groups[-1].append(name)
    parts = [{name: orders[name] for name in group} for group in groups]
    return [top_table(list(part), top_lists(part, bad, top), told.domains.graph.name) for part in parts]


def lines(told: Told, rows: list[Domain]) -> list[str]:
    """Say below a list how it came about, how sure it is, and what else was asked for."""
    domains = told.domains
    said = [f"{name}: {how(score, domains.graph.pages)}" for name, score in domains.scores.items()]
    if len(domains.scores) > 1:
        said = [line + _best(score) for line, score in zip(said, domains.scores.values(), strict=True)]
    sure = certain(domains, rows)
    if sure is not None:
        ahead = f"{sure} of {counted(len(rows) - 1, 'domain')}"
        said.append(f"order: {ahead} in the list {'is' if sure == 1 else 'are'} above the next with {SURE:.0%} or more")
    if domains.trust:
        said.append(
            f"spam: share of the popularity that {counted(domains.trust.known, 'trusted domain')} "
            f"{'does' if domains.trust.known == 1 else 'do'} not explain; trust: 0-100, log scale"
        )
    if told.plan:
        size = counted(domains.graph.pages, "domain")
        said.append(f"budget {told.plan}: at most {counted(told.total, 'page')} in {size}")
    return said


def spam_table(told: Told) -> Table:
    """Lay out how many bad domains are among the first of each score."""
    at = [place for place in AT if place <= max(found.ranked for found in told.admitted)]
    titles = ["first bad", *(f"in {count(place)}" for place in at), f"{counted(told.admitted[0].bad, 'bad domain')} by"]
    cells = [
        [count(found.first) if found.first else f"> {count(found.ranked)}",
         *(count(found.among(place)) for place in at), found.name]
        for found in told.admitted
    ]  # fmt: skip
    return Table(titles, cells, titles, cells)


def certain(domains: Domains, rows: list[Domain]) -> int | None:
    """Count the neighbours in a list whose order is as good as certain; None if there is no sample to tell by."""
    if domains.main.kind != "tse" or domains.mode == "streamed" or not 2 <= len(rows) <= PAIRS:
        return None
    return sum(outranks(domains.graph, domains.main, above.id, below.id) >= SURE for above, below in pairwise(rows))


def figure(kind: str, score: float) -> str:
    """Write a score."""
    return percent(score) if kind == "pagerank" else f"{score:,.2f}" if kind in ("win", "harmonic") else count(score)


def between(kind: str, row: Domain) -> str:
    """Write the ends of an interval."""
    return f"{figure(kind, row.low)} - {figure(kind, row.high) if np.isfinite(row.high) else '…'}"


def how(told: Reputation, domains: int) -> str:
    """Say in a line how a score came about and how sure it is."""
    method = told.method
    if told.kind == "tse":
        if method["p"] >= 1:
            return f"level-{method['depth']} supporters, all {counted(domains, 'domain')} walked from: exact"
        sampled = f"{count(method['sampled'])} of {counted(domains, 'domain')} sampled (p = {method['p']:.2g})"
        said = f"level-{method['depth']} supporters: {sampled}"
        error = float(f"{method.get('error', np.inf):.3g}")
        if not np.isfinite(error):  # nobody was found at that rank
            return said
        return f"{said}; error {percent(error)} (one standard deviation) at rank {count(method['top'])}"
    if told.kind == "pagerank":
        return f"PageRank; proven error at most {at_most(method['error'])} in total"
    if told.kind == "harmonic":
        return f"harmonic centrality from counters of {method.get('registers', '')} registers"
    if told.kind == "bv":
        return f"level-{method['depth']} supporters from bit vectors, {counted(method['rounds'], 'round')}"
    words = {
        "supp": f"level-{method.get('depth')} supporters, counted",
        "in": "in-links, counted",
        "win": "in-links, each worth 1 / links of the linking domain",
        "qvs": "paths of two links, counted",
    }
    return words[told.kind]


def _best(score: Reputation) -> str:
    """Say of an estimate how sure its best score is."""
    if score.certainty.confidence == 1 or not score.domains:
        return ""
    first = int(score.top(1)[0])
    low, high = (figure(score.kind, end) if np.isfinite(end) else "…" for end in score.interval(first))
    said = f"{score.name(first)} has {figure(score.kind, score.score(first))}"
    return f"; {said}, {score.certainty.confidence:.0%} between {low} and {high}"


def _method(score: Reputation) -> dict[str, Any]:
    """Return how a score came about, as JSON can say it."""
    plain = {key: value for key, value in score.method.items() if _sayable(value)}
    return {**plain, "confidence": score.certainty.confidence}


def _sayable(value: Any) -> bool:
    return not isinstance(value, float) or bool(np.isfinite(value))

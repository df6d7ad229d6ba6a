"""Present domain scores: list, scores side by side, bad domains in each ranking, and files of all domains.

A file of all domains appears when it is complete:

    .csv, .csv.gz, .parquet   the columns of the list as CSV; best first
    .npy                      the scores only, by id

Scores of a graph in pieces, or one read as a stream, are written by id, without positions: sorting all takes memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.rank.bad_domains import RANKS, BadDomains, bad_domains_in, positions_in, top_lists
from surveyor.rank.domains.scores import IN_MEMORY, DomainTable
from surveyor.rank.domains.tse import order_confidence
from surveyor.report.column_files import ROWS, readable, write_columns, write_scores
from surveyor.report.numbers import at_most, count, counted, percent
from surveyor.report.svg import lines_plot
from surveyor.report.tables import GAP, INDENT, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from surveyor.arrays import AnyIntArray, FloatArray, IntArray
    from surveyor.crawler.budgets import Plan
    from surveyor.rank.bad_domains import TopRow
    from surveyor.rank.domains.reputation import Reputation
    from surveyor.rank.domains.scores import Domain, Domains
    from surveyor.store import tabular

HEADINGS = {
    "tse": "supporters",
    "supp": "supporters",
    "bv": "supporters",
    "in": "in-links",
    "win": "split votes",
    "pagerank": "share",
    "harmonic": "harmonic",
    "qvs": "paths",
}
CERTAIN = 0.95  # confidence from which an order is called certain
MAX_PAIRS = 50  # neighbours in a list whose order is checked
POINTS = 300  # of a curve
FLAG = "!"  # marks a bad domain


@dataclass(frozen=True)
class DomainReport:
    """Scores of domains, with the page budget of each and a list of bad domains."""

    domains: Domains
    plan: Plan | None = None
    bad: IntArray | None = None
    trusted: IntArray | None = None  # to which a budget may give more

    def pages(self, positions: AnyIntArray, nodes: AnyIntArray) -> IntArray:
        """Return the budgets of domains at these positions; empty without a plan."""
        if self.plan is None:
            return np.empty(0, np.int64)
        return self.plan.pages(positions, None if self.trusted is None else np.isin(nodes, self.trusted))

    @property
    def total(self) -> int:
        """The pages of all domains together, under the budget."""
        trusted = 0 if self.trusted is None else self.trusted.size
        return 0 if self.plan is None else self.plan.total(self.domains.graph.pages, trusted)

    @cached_property
    def spam(self) -> list[BadDomains]:
        """The positions of the bad domains by each score; otherwise than in memory only down to the last of `RANKS`."""
        if self.bad is None or not self.bad.size:
            return []
        size = self.domains.graph.pages
        end = size if self.domains.mode == IN_MEMORY else min(size, RANKS[-1])
        return [bad_domains_in(name, score.top(end), self.bad) for name, score in self.domains.scores.items()]

    def positions(self, nodes: AnyIntArray) -> IntArray:
        """Return the positions of some domains as far as the budget depends on them; beyond that, `BEYOND`."""
        return positions_in(self._budgeted, nodes)

    @cached_property
    def _budgeted(self) -> IntArray:
        return self.domains.main.top(0 if self.plan is None else self.plan.reach)

    def records(self, rows: list[Domain]) -> list[dict[str, Any]]:
        """Return the rows as JSON and CSV show them."""
        positions, nodes = np.array([row.position for row in rows]), np.array([row.id for row in rows])
        budgets = self.pages(positions, nodes).tolist()
        bad = set() if self.bad is None else set(self.bad.tolist())
        others = {name: score for name, score in self.domains.scores.items() if score is not self.domains.main}
        records = []
        for index, row in enumerate(rows):
            fields = row.to_dict()
            record = {"position": fields.pop("position"), "id": fields.pop("id"), "domain": fields.pop("name")}
            record |= {**fields, **{name: score.score(row.id) for name, score in others.items()}}
            if self.plan is not None:
                record["pages"] = budgets[index]
            if self.bad is not None:
                record["bad"] = row.id in bad
            records.append({key: value if _is_finite(value) else None for key, value in record.items()})
        return records

    def to_dict(self, rows: list[Domain], top: int) -> dict[str, Any]:
        """Return the scores, the budget, the bad domains and the best domains as plain values."""
        domains, certain = self.domains, certain_neighbours(self.domains, rows)
        fields: dict[str, Any] = {
            "mode": domains.mode,
            "scores": {name: _method(score) for name, score in domains.scores.items()},
        }
        if self.plan is not None:
            fields |= {"budget": str(self.plan), "budget_total": self.total}
        if self.bad is not None:
            fields["bad_domains"] = int(self.bad.size)
        if self.spam:
            fields["spam"] = {bad.name: bad.to_dict() for bad in self.spam}
        if certain is not None:
            fields["certain_neighbours"] = certain
        if len(domains.scores) > 1:
            best = {name: score.top(top).tolist() for name, score in domains.scores.items()}
            fields["top"] = {name: [domains.graph.name(node) for node in nodes] for name, nodes in best.items()}
        return {**fields, "domains": self.records(rows)}

    def table(self, rows: list[Domain]) -> Table:
        """Return the best domains as a table."""
        main, records = self.domains.main, self.records(rows)
        exact = main.error_model.confidence == 1
        titles = ["", HEADINGS[main.kind], *([] if exact else [f"{100 * main.error_model.confidence:.0f} % interval"])]
        titles += ["budget"] if self.plan else []
        titles += ["spam", "trust"] if self.domains.trust else []
        titles += ["in-links"] if main.kind != "in" else []  # the first column that a narrow terminal omits
        cells = [self._cells(row, record) for row, record in zip(rows, records, strict=True)]
        keys = list(records[0]) if records else ["position", "id", "domain", "score"]
        plain = [[int(cell) if isinstance(cell, bool) else cell for cell in record.values()] for record in records]
        return Table([*titles, "domain"], cells, keys, plain)

    def _cells(self, row: Domain, record: dict[str, Any]) -> list[str]:
        main = self.domains.main
        cells = [count(row.position), format_score(main.kind, row.score)]
        if main.error_model.confidence < 1:
            cells.append(format_interval(main.kind, row.low, row.high, " - "))
        if self.plan:
            cells.append(count(record["pages"]))
        if self.domains.trust:
            cells += [f"{row.spam_mass:.2f}", f"{row.trust:.0f}"]
        if main.kind != "in":
            cells.append(count(row.in_links))
        return [*cells, f"{FLAG} {row.name}" if record.get("bad") else row.name]


def side_by_side(report: DomainReport, top: int, width: int | None) -> list[Table]:
    """Return the tops of several scores next to each other; in a terminal as many as fit, the others below."""
    orders = {name: score.top(top) for name, score in report.domains.scores.items()}
    bad = np.empty(0, np.int64) if report.bad is None else report.bad
    whole = top_table(list(orders), top_lists(orders, bad, top), report.domains.graph.name)
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
    return [top_table(list(part), top_lists(part, bad, top), report.domains.graph.name) for part in parts]


def top_table(scores: Sequence[str], rows: Sequence[TopRow], name: Callable[[int], str]) -> Table:
    """Return the tops of rankings next to each other; a bad domain is marked."""
    cells, records = [], []
    for row in rows:
        cell, record = [str(row.position)], list[Any]([row.position])
        for node, bad in zip(row.domains, row.bad, strict=True):
            label = "" if node is None else name(node)
            cell.append(f"{FLAG} {label}" if bad else label)
            record += ["", ""] if node is None else [label, int(bad)]
        cells.append(cell)
        records.append(record)
    keys = ["position", *(key for score in scores for key in (score, f"{score}_bad"))]
    return Table(["", *scores], cells, keys, records, left=len(scores))


def summary_lines(report: DomainReport, rows: list[Domain]) -> list[str]:
    """Describe below a list the method and error of each score, the certainty of the order, trust and budget."""
    domains = report.domains
    lines = [f"{name}: {method_line(score, domains.graph.pages)}" for name, score in domains.scores.items()]
    if len(domains.scores) > 1:
        lines = [line + _best_interval(score) for line, score in zip(lines, domains.scores.values(), strict=True)]
    certain = certain_neighbours(domains, rows)
    if certain is not None:
        above = f"{certain} of {counted(len(rows) - 1, 'domain')} in the list {'is' if certain == 1 else 'are'}"
        lines.append(f"order: {above} ranked above the next one with a confidence of {100 * CERTAIN:.0f} % or more")
    if domains.trust:
        known = domains.trust.trusted
        lines.append(
            f"spam: fraction of the popularity that {counted(known, 'trusted domain')} "
            f"{'does' if known == 1 else 'do'} not explain; trust: 0-100, log scale"
        )
    if report.plan:
        size = counted(domains.graph.pages, "domain")
        lines.append(f"budget {report.plan}: at most {counted(report.total, 'page')} in {size}")
    return lines


def spam_table(report: DomainReport) -> Table:
    """Return the number of bad domains among the first of each score."""
    ranks = [rank for rank in RANKS if rank <= max(bad.ranked for bad in report.spam)]
    number = counted(report.spam[0].bad, "bad domain")
    titles = ["first bad", *(f"in {count(rank)}" for rank in ranks), f"{number} by"]
    cells = [
        [
            count(bad.first) if bad.first else f"> {count(bad.ranked)}",
            *(count(bad.count(rank)) for rank in ranks),
            bad.name,
        ]
        for bad in report.spam
    ]
    return Table(titles, cells, titles, cells)


def spam_plot(rankings: Sequence[BadDomains], first: int | None = None) -> str:
    """Draw how many bad domains are among the first r of each ranking; a line starts at its first bad domain."""
    end = max((bad.ranked for bad in rankings), default=0) if first is None else first
    series = {}
    for bad in rankings:
        last = max(min(end, bad.ranked), 1)
        ranks = np.unique(np.geomspace(min(bad.first or last, last), last, POINTS).astype(np.int64))
        series[bad.name] = (ranks, bad.counts(ranks))
    return lines_plot(
        series,
        x_title="rank",
        y_title="bad domains up to this rank",
        label="bad domains up to each rank, for each score",
        log_x=True,
        log_y=True,
    )


def certain_neighbours(domains: Domains, rows: list[Domain]) -> int | None:
    """Count the neighbours in a list whose order is certain; None without a sample to compare them in."""
    graph, main = domains.graph, domains.main
    if main.kind != "tse" or domains.mode != IN_MEMORY or not 2 <= len(rows) <= MAX_PAIRS:
        return None
    if isinstance(graph, DomainTable):
        return None
    return sum(order_confidence(graph, main, above.id, below.id) >= CERTAIN for above, below in pairwise(rows))


def format_score(kind: str, score: float) -> str:
    """Format a score."""
    return percent(score) if kind == "pagerank" else f"{score:,.2f}" if kind in ("win", "harmonic") else count(score)


def format_interval(kind: str, low: float, high: float, separator: str) -> str:
    """Format the ends of a confidence interval; an infinite end is `…`."""
    return separator.join(format_score(kind, end) if np.isfinite(end) else "…" for end in (low, high))


def method_line(score: Reputation, domains: int) -> str:
    """Describe the method and the error of a score in one line."""
    method = score.method
    if score.kind == "tse":
        if method["p"] >= 1:
            return f"level-{method['depth']} supporters, counted from all {counted(domains, 'domain')}: exact"
        sampled = f"{count(method['sampled'])} of {counted(domains, 'domain')} sampled (p = {method['p']:.2g})"
        line = f"level-{method['depth']} supporters: {sampled}"
        error = float(f"{method.get('error', np.inf):.3g}")
        if not np.isfinite(error):  # no supporter was found at that rank
            return line
        return f"{line}; relative standard error {percent(error)} at rank {count(method['top'])}"
    if score.kind == "pagerank":
        return f"PageRank; proven error at most {at_most(method['error'])} in total"
    if score.kind == "harmonic":
        return f"harmonic centrality from HyperLogLog counters of {method.get('registers', '')} registers"
    if score.kind == "bv":
        return f"level-{method['depth']} supporters from bit vectors, {counted(method['rounds'], 'round')}"
    lines = {
        "supp": f"level-{method.get('depth')} supporters, counted",
        "in": "in-links, counted",
        "win": "in-links, each weighted by 1 / out-links of the linking domain",
        "qvs": "paths of two links, counted",
    }
    return lines[score.kind]


def _best_interval(score: Reputation) -> str:
    """Describe the confidence interval of the best score of an estimate."""
    confidence = score.error_model.confidence
    if confidence == 1 or not score.domains:
        return ""
    first = int(score.top(1)[0])
    interval = format_interval(score.kind, *score.interval(first), " to ")
    best = f"{score.name(first)} has {format_score(score.kind, score.score(first))}"
    return f"; {best}, {100 * confidence:.0f} % interval {interval}"


def _method(score: Reputation) -> dict[str, Any]:
    """Return the method of a score as JSON can hold it."""
    finite = {key: value for key, value in score.method.items() if _is_finite(value)}
    return {**finite, "confidence": score.error_model.confidence}


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or bool(np.isfinite(value))


def write_domains(report: DomainReport, path: str | Path) -> Path:
    """Write all domains in the format of the suffix."""
    path = Path(path)
    if path.name.lower().endswith(".npy"):
        return write_scores(path, report.domains.main.scores)
    names = _columns(report)
    return write_columns(path, names, _batches(report, names))


def _columns(report: DomainReport) -> tabular.Columns:
    """Return the names and types of the columns, in order."""
    names = {"position": "int64"} if report.domains.mode == IN_MEMORY else {}
    names |= {"id": "int64"} | ({} if report.domains.graph.names is None else {"domain": "string"})
    names |= {"score": "float64", "low": "float64", "high": "float64", "in_links": "int64", "out_links": "int64"}
    names |= {"trust": "float64", "popularity": "float64", "spam_mass": "float64"} if report.domains.trust else {}
    names |= dict.fromkeys(list(report.domains.scores)[1:], "float64")
    names |= {"pages": "int64"} if report.plan is not None else {}
    return names | ({"bad": "int32"} if report.bad is not None else {})


def _batches(report: DomainReport, names: tabular.Columns) -> Iterator[tabular.Batch]:
    main, trust = report.domains.main, report.domains.trust
    ranked = "position" in names
    order = main.top(main.domains) if ranked else np.arange(main.domains)
    scaled = None if trust is None else (trust.trust.log_scores(), trust.popularity.log_scores())
    for start in range(0, order.size, ROWS):
        nodes = order[start : start + ROWS]
        positions = np.arange(start + 1, start + 1 + nodes.size) if ranked else report.positions(nodes)
        values = dict(_column_values(report, nodes, positions, scaled))
        yield {name: values[name] for name in names}


def _column_values(
    report: DomainReport, nodes: AnyIntArray, positions: AnyIntArray, scaled: tuple[FloatArray, FloatArray] | None
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of some domains; `scaled` holds trust and popularity of all domains from 0 to 100."""
    domains, main, graph = report.domains, report.domains.main, report.domains.graph
    low, high = main.intervals(nodes)
    yield "position", positions
    yield "id", nodes
    if graph.names is not None:
        yield "domain", readable(graph.names[node] for node in nodes.tolist())
    yield "score", main.raw[nodes].astype(np.float64) * main.scale
    yield "low", low
    yield "high", high
    yield "in_links", graph.in_links.indptr[nodes + 1] - graph.in_links.indptr[nodes]
    yield "out_links", graph.indptr[nodes + 1] - graph.indptr[nodes]
    if domains.trust and scaled:
        yield "trust", scaled[0][nodes]
        yield "popularity", scaled[1][nodes]
        yield "spam_mass", domains.trust.spam_masses(nodes)
    for name in list(domains.scores)[1:]:
        yield name, domains.scores[name].raw[nodes].astype(np.float64) * domains.scores[name].scale
    if report.plan is not None:
        yield "pages", report.pages(positions, nodes)
    if report.bad is not None:
        yield "bad", np.isin(nodes, report.bad).astype(np.int32)

"""Bad domains in rankings: read published lists, match them with a graph, and evaluate how many reach the top.

**Evaluation.** A crawler gives large budgets to the first R domains of a ranking, so only these count, not the order
of all. With u(r) the number of bad domains among the first r, a ranking is described by the position of the first bad
domain, by u at a few r, and by the area under u. The area is a fraction of the worst case: 0 if no bad domain is among
the first R, 1 if all are at the top.

    >>> bad = bad_domains_in("in", np.array([4, 2, 0, 3, 1]), np.array([0, 2]))
    >>> bad.first, bad.count(2), bad.counts(np.arange(1, 6)).tolist()
    (2, 1, [0, 1, 2, 2, 2])

**Lists** of known bad or good domains are read in the formats in which they are published:

- one domain per line, with or without `www.`, `*.` or a whole URL;
- hosts files: an address and the names that resolve to it (`0.0.0.0 bad.example`);
- CSV and TSV, with or without a header row, and optionally a column of labels.

`#` and `!` start a comment. A file may be compressed. Names are mapped to registrable domains, the nodes of a domain
graph. An entry for one host (`ads.news.example`) does not describe its domain, however: with `hosts=False` names below
a domain, other than `www`, are skipped and counted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import AnyIntArray, IntArray, read_only
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import decompressed, plain_suffix
from surveyor.web import urls

if TYPE_CHECKING:
    from surveyor.graph.names import Names

DOMAIN_HEADS = ("domain", "host", "hostname", "url", "site", "website", "name")
LABEL_HEADS = ("label", "class", "category", "type", "kind", "reason")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
HINT = "use a file with one domain per line, a hosts file, or CSV with a column of domains"

_COMMENT = re.compile(r"^\s*[#!].*|\s#.*")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]*(%\w+)?")
Column = str | int | None
RANKS = (10, 100, 1_000, 10_000, 100_000)  # at which bad domains are counted
BEYOND = np.iinfo(np.int64).max  # the position of a domain that a truncated ranking does not include


@dataclass(frozen=True, slots=True, eq=False)
class BadDomains:
    """The positions of the bad domains in one ranking."""

    name: str
    positions: IntArray  # of the bad domains that were ranked, ascending; 1 is the best
    ranked: int  # number of domains in the ranking
    bad: int  # number of bad domains

    @property
    def first(self) -> int | None:
        """The position of the first bad domain."""
        return int(self.positions[0]) if self.positions.size else None

    def count(self, rank: int) -> int:
        """Count the bad domains among the first `rank`."""
        return int(np.searchsorted(self.positions, rank, "right"))

    def counts(self, ranks: AnyIntArray) -> IntArray:
        """Count the bad domains among the first r, for several r."""
        return np.searchsorted(self.positions, ranks, "right")

    def area(self, rank: int | None = None) -> float:
        """Return the area under the counts up to a rank, as a fraction of the worst case."""
        end = self.ranked if rank is None else min(rank, self.ranked)
        worst = area_terms(np.arange(1, min(self.bad, end) + 1), end).sum()
        return float(area_terms(self.positions, end).sum() / worst) if worst else 0.0

    def to_dict(self, ranks: Sequence[int] = RANKS) -> dict[str, Any]:
        """Return the figures as plain values, without ranks beyond the end of the ranking."""
        counts = {str(rank): self.count(rank) for rank in ranks if rank <= self.ranked}
        return {"score": self.name, "first_bad": self.first, "bad_among_first": counts, "area": self.area()}


@dataclass(frozen=True, slots=True)
class TopRow:
    """One position in several rankings."""

    position: int
    domains: tuple[int | None, ...]  # ids, one per ranking
    bad: tuple[bool, ...]


def bad_domains_in(name: str, order: AnyIntArray, bad: AnyIntArray) -> BadDomains:
    """Return the positions of bad domains in a ranking: ids, best first; it may be truncated."""
    positions = positions_in(order, bad)
    ranked = np.sort(positions[positions < BEYOND])
    return BadDomains(name, read_only(ranked), int(np.asarray(order).size), int(positions.size))


def positions_in(order: AnyIntArray, domains: AnyIntArray) -> IntArray:
    """Return the position of each of some domains in a ranking; `BEYOND` if the ranking does not include it."""
    ids, wanted = np.asarray(order, np.int64), np.asarray(domains, np.int64)
    if np.unique(wanted).size < wanted.size:
        raise UsageError("a bad domain is listed twice", hint="pass each id once")
    if ids.size == 0 or wanted.size == 0:
        return np.full(wanted.size, BEYOND)
    by_id = np.argsort(ids, kind="stable")
    ascending = ids[by_id]
    if (ascending[1:] == ascending[:-1]).any():
        raise UsageError("a ranking names a domain twice", hint="pass each id once, best first")
    at = np.minimum(np.searchsorted(ascending, wanted), ids.size - 1)
    return np.where(ascending[at] == wanted, by_id[at] + 1, BEYOND)


def top_lists(orders: Mapping[str, AnyIntArray], bad: AnyIntArray, count: int = 15) -> list[TopRow]:
    """Tabulate the tops of several rankings and flag the bad domains."""
    flagged = set(np.asarray(bad).tolist())
    columns = [np.asarray(order)[:count].tolist() for order in orders.values()]
    rows = []
    for row in range(min(count, max(map(len, columns), default=0))):
        ids = tuple(column[row] if row < len(column) else None for column in columns)
        rows.append(TopRow(row + 1, ids, tuple(node in flagged for node in ids)))
    return rows


def area_terms(positions: IntArray, end: int) -> IntArray:
    """Return for how many r up to `end` each position is among the first r."""
    terms: IntArray = end + 1 - np.minimum(positions, end + 1)
    return terms


@dataclass(frozen=True, slots=True)
class ListedDomains:
    """The domains of a list that a graph contains."""

    ids: IntArray  # in the graph, ascending
    labels: tuple[str, ...]  # of each
    listed: int  # number of domains in the list
    source: str

    @property
    def warning(self) -> str:
        """A one-sentence warning if no listed domain is in the graph, otherwise empty."""
        if self.ids.size:
            return ""
        return f"none of the {self.listed:,} domains in {self.source} is in the graph"


@dataclass(frozen=True, slots=True)
class Labels:
    """Domains and their labels; in a plain list the labels are empty."""

    domains: Mapping[str, str]  # domain -> label
    source: str
    invalid: int = 0  # names that are not domains
    subdomains: int = 0  # that were skipped

    def labelled(self, *labels: str) -> Labels:
        """Return the domains with one of these labels."""
        kept = {domain: label for domain, label in self.domains.items() if label in labels}
        if not kept:
            known = ", ".join(sorted(set(self.domains.values()))[:12])
            raise UsageError(
                f"no domain in {self.source} has the label {' or '.join(labels)}", hint=f"its labels are: {known}"
            )
        return Labels(kept, self.source, self.invalid, self.subdomains)

    def in_graph(self, names: Names) -> ListedDomains:
        """Find the domains of the list in a graph by its names."""
        ids = [(names.find(domain), label) for domain, label in self.domains.items()]
        known = sorted((node, label) for node, label in ids if node is not None)
        nodes = np.array([node for node, _ in known], np.int64)
        return ListedDomains(read_only(nodes), tuple(label for _, label in known), len(self.domains), self.source)


def read_labels(path: str | Path, *, domain: Column = None, label: Column = None, hosts: bool = True) -> Labels:
    """Read a list of domains.

    Parameters
    ----------
    domain, label : columns by name, or by number from 0; detected by common names by default. Without a header
        row the domain is the first cell that looks like one, and there are no labels.
    hosts : count a host as its domain; if false, hosts below a domain are skipped.
    """
    path = Path(path)
    labels: dict[str, str] = {}
    invalid = subdomains = 0
    for name, value in _entries(path, domain, label):
        host = host_of(name)
        if host is None:
            invalid += 1
            continue
        registrable = urls.domain(host)
        if not hosts and registrable not in (host, host.removeprefix("www.")):
            subdomains += 1
            continue
        if not labels.get(registrable):
            labels[registrable] = value
    if not labels:
        raise InputError(f"{path} names no domain", hint=HINT)
    return Labels(labels, str(path), invalid, subdomains)


def host_of(name: str) -> str | None:
    """Return the normalised host of a list entry; None for addresses and names without a dot.

    >>> host_of("||Bad.Example^"), host_of("http://www.bad.example:8080/x"), host_of("localhost"), host_of("0.0.0.0")
    ('bad.example', 'www.bad.example', None, None)
    """
    name = name.strip().strip("\"'").removeprefix("||").rstrip("^").removeprefix("*").removeprefix(".")
    url = urls.normalise(name if "://" in name else f"http://{name}/") if name else None
    if url is None:
        return None
    host = urls.host(url).removesuffix(".")
    return host if "." in host and not _ADDRESS.fullmatch(host) and not host.endswith("]") else None


def _entries(path: Path, domain: Column, label: Column) -> Iterator[tuple[str, str]]:
    """Yield each name in a file and its label."""
    lines = [line for raw in _text(path).splitlines() if (line := _COMMENT.sub("", raw)).strip()]
    separator = _separator(path, lines)
    if separator is None:
        if domain is not None or label is not None:
            raise InputError(f"{path} has no columns", hint="omit the column names, or use CSV or TSV")
        for line in lines:
            first, *others = line.split()
            yield from ((name, "") for name in (others if others and _ADDRESS.fullmatch(first) else [first]))
        return
    try:
        rows = [
            [cell.strip() for cell in row] for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator)
        ]
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table: {error}", hint=HINT) from error
    head = [cell.lower() for cell in rows[0]]
    has_header = not any(_looks_like_a_domain(cell) for cell in head)
    domain_column = _column(path, head, domain, DOMAIN_HEADS, has_header=has_header)
    if domain_column is None:
        domain_column = next((index for index, cell in enumerate(head) if _looks_like_a_domain(cell)), None)
    if domain_column is None:
        raise InputError(f"{path} has no column of domains", hint=f"its columns are: {', '.join(rows[0])[:200]}")
    label_column = _column(path, head, label, LABEL_HEADS, has_header=has_header)
    for row in rows[1 if has_header else 0 :]:
        if domain_column < len(row):
            value = "" if label_column is None or label_column >= len(row) else row[label_column]
            yield row[domain_column], value


def _column(path: Path, head: Sequence[str], column: Column, common: Sequence[str], *, has_header: bool) -> int | None:
    """Return the index of the requested column, or of one with a common name."""
    if isinstance(column, str):
        if not has_header or column.lower() not in head:
            names = ", ".join(head)[:200] if has_header else "not named"
            raise InputError(f"{path} has no column {column!r}", hint=f"its columns are {names}")
        return head.index(column.lower())
    if column is not None:
        if not 0 <= column < len(head):
            raise InputError(f"{path} has no column {column}", hint=f"columns are numbered 0 to {len(head) - 1}")
        return column
    return next((head.index(name) for name in common if name in head), None) if has_header else None


def _separator(path: Path, lines: Sequence[str]) -> str | None:
    """Return the cell separator of a table; None for a list or a hosts file."""
    if not lines:
        return None
    separator = SEPARATORS.get(plain_suffix(path))
    if separator is not None:
        return separator
    first = lines[0].split()[0]
    if _ADDRESS.fullmatch(first):
        return None
    return next((mark for mark in "\t,;" if mark in lines[0]), None)


def _looks_like_a_domain(cell: str) -> bool:
    return "." in cell and not cell.replace(".", "").isdecimal() and host_of(cell) is not None


def _text(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="pass the file of the list")
    with decompressed(path) as (stream, _):
        raw: Any = stream.read()
    if b"\0" in raw[:4096]:
        raise InputError(f"{path} is not a text file", hint=HINT)
    return bytes(raw).decode("utf-8-sig", "surrogateescape")

"""Lists of known bad or good domains: parse the formats in which they are published, and match them with a graph.

- one domain per line, with or without `www.`, `*.` or a whole URL;
- hosts files: an address and the names that resolve to it (`0.0.0.0 bad.example`);
- CSV and TSV, with or without a header row, and optionally a column of labels.

`#` and `!` begin a comment. A file may be compressed. Names are mapped to registrable domains, the nodes of a domain
graph. A list that means one host (`ads.news.example`) does not mean its domain, however: with `hosts=False` names
below a domain, other than `www`, are left out and counted.
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

from surveyor.arrays import IntArray, read_only
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import plain_suffix, unpacked
from surveyor.web import urls

if TYPE_CHECKING:
    from surveyor.graph.names import Names

DOMAIN_HEADS = ("domain", "host", "hostname", "url", "site", "website", "name")
LABEL_HEADS = ("label", "class", "category", "type", "kind", "reason")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
HINT = "give one domain a line, a hosts file, or CSV with a column of domains"

_COMMENT = re.compile(r"^\s*[#!].*|\s#.*")
_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]*(%\w+)?")

Column = str | int | None


@dataclass(frozen=True, slots=True)
class Found:
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
    unread: int = 0  # names that are not domains
    below: int = 0  # subdomains that were left out

    def labelled(self, *labels: str) -> Labels:
        """Return the domains with one of these labels."""
        kept = {domain: label for domain, label in self.domains.items() if label in labels}
        if not kept:
            known = ", ".join(sorted(set(self.domains.values()))[:12])
            raise UsageError(
                f"no domain in {self.source} has a label {' or '.join(labels)}", hint=f"there are: {known}"
            )
        return Labels(kept, self.source, self.unread, self.below)

    def among(self, names: Names) -> Found:
        """Find the domains of the list in a graph by its names."""
        places = sorted((place, label) for domain, label in self.domains.items()
                        if (place := names.find(domain)) is not None)  # fmt: skip
        ids = np.array([place for place, _ in places], np.int64)
        return Found(read_only(ids), tuple(label for _, label in places), len(self.domains), self.source)


def read_labels(path: str | Path, *, domain: Column = None, label: Column = None, hosts: bool = True) -> Labels:
    """Read a list of domains.

    Parameters
    ----------
    domain, label : columns by name, or by number from 0; detected by their usual names by default. Without a header
        row the domain is the first cell that looks like one, and there are no labels.
    hosts : count a host as its domain; if false, hosts below a domain are left out.
    """
    path = Path(path)
    known: dict[str, str] = {}
    unread = below = 0
    for name, said in _entries(path, domain, label):
        host = host_of(name)
        if host is None:
            unread += 1
            continue
        whole = urls.domain(host)
        if not hosts and whole not in (host, host.removeprefix("www.")):
            below += 1
            continue
        if not known.get(whole):
            known[whole] = said
    if not known:
        raise InputError(f"{path} names no domain", hint=HINT)
    return Labels(known, str(path), unread, below)


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
            raise InputError(f"{path} has no columns", hint="leave out the names of columns, or give CSV or TSV")
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
    headed = not any(_looks_like_a_domain(cell) for cell in head)
    named = _column(path, head, domain, DOMAIN_HEADS, headed=headed)
    if named is None:
        named = next((place for place, cell in enumerate(head) if _looks_like_a_domain(cell)), None)
    if named is None:
        raise InputError(f"{path} has no column of domains", hint=f"its columns are: {', '.join(rows[0])[:200]}")
    said = _column(path, head, label, LABEL_HEADS, headed=headed)
    for row in rows[1 if headed else 0 :]:
        if named < len(row):
            yield row[named], "" if said is None or said >= len(row) else row[said]


def _column(path: Path, head: Sequence[str], asked: Column, usual: Sequence[str], *, headed: bool) -> int | None:
    """Return the index of the requested column, or of one with a usual name."""
    if isinstance(asked, str):
        if not headed or asked.lower() not in head:
            there = ", ".join(head)[:200] if headed else "not named"
            raise InputError(f"{path} has no column {asked!r}", hint=f"its columns are {there}")
        return head.index(asked.lower())
    if asked is not None:
        if not 0 <= asked < len(head):
            raise InputError(f"{path} has no column {asked}", hint=f"columns go from 0 to {len(head) - 1}")
        return asked
    return next((head.index(name) for name in usual if name in head), None) if headed else None


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
        raise InputError(f"{path} is a folder", hint="give the file of the list")
    with unpacked(path) as (stream, _):
        raw: Any = stream.read()
    if b"\0" in raw[:4096]:
        raise InputError(f"{path} is no text", hint=HINT)
    return bytes(raw).decode("utf-8-sig", "surrogateescape")

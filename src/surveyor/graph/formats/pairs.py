"""Text with two columns: SNAP edge lists, and TSV or CSV of ids or names.

The first lines tell what a file is: comments (`#`, `%`), a header, the separator, numbers or names. Blocks
of whole lines are then parsed on all cores and taken in order. Columns after the second are left out, and a
note says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import SHOWN, Intake
from surveyor.graph.formats.streams import aside, head, line_blocks, packing
from surveyor.graph.names import Names
from surveyor.kernels.crew import Crew

HEADER_WORD = re.compile(
    r"(source|target|src|dst|dest|destination|from|to|start|end|parent|child|refer+er|subject|object"
    r"|ids?|urls?|nodes?|nodeid|hosts?|domains?|pages?|link|name|(from|to)(node)?id|_|\W)+"
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
AT_ONCE = 1 << 18  # links written at a time


class Block(NamedTuple):
    """What a kernel found in a block of lines."""

    text: ByteArray
    found: tuple[Any, ...]  # arrays
    lines: int
    largest: int
    bad_count: int
    bad: IntArray
    longer: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the first lines of a file tell."""

    skip: int  # bytes before the data
    lines: int  # lines before the data
    header: str
    nodes: int | None  # "# Nodes: N" of SNAP
    separator: int
    numbers: bool


def read_snap(path: Path, intake: Intake) -> None:
    """Read pairs of numbers."""
    _read(path, intake, begin(path), numbers=True)


def read_tsv(path: Path, intake: Intake) -> None:
    """Read pairs of numbers or of names between tabs (blanks where there are no tabs)."""
    first = begin(path)
    _read(path, intake, first, numbers=first.numbers)


def read_csv(path: Path, intake: Intake) -> None:
    """Read pairs of numbers or of names between commas (or semicolons), in quotes where needed."""
    first = begin(path, ",;\t")
    _read(path, intake, first, numbers=first.numbers)


def _read(path: Path, intake: Intake, first: Beginning, *, numbers: bool) -> None:
    if first.header:
        intake.note(f"the first line of {path.name} is a header: {first.header}")
    if not numbers:
        for block in parsed(path, intake, partial(find_names, first.separator), first):
            intake.pairs(block.text, block.found[0])
        return
    if first.nodes is not None and intake.wanted is None:
        intake.expect(first.nodes)
    read_ids(path, intake, first)


def read_ids(path: Path, intake: Intake, first: Beginning) -> None:
    """Read pairs of numbers from one file of a source."""
    task = partial(find_numbers, intake.limit, intake.fits, intake.id_type)
    for block in parsed(path, intake, task, first):
        sources, targets = block.found
        intake.ids(sources, targets, block.largest)


def parsed(path: Path, intake: Intake, task: Callable[[ByteArray], Block], first: Beginning) -> Iterator[Block]:
    """Parse a file on all cores, block by block in order; pass on its malformed lines."""
    line = first.lines
    with Crew(intake.threads) as crew:
        blocks = line_blocks(path, skip=first.skip, progress=intake.progress)
        for block in crew.each(task, ((block,) for block in blocks)):
            yield block
            for number, start, end in block.bad[: block.bad_count]:
                intake.malformed(path, line + int(number), block.text[start:end].tobytes())
            intake.bad_count += max(0, block.bad_count - SHOWN)
            if block.longer:
                intake.note(f"{path.name} has more than two columns: the others are left out")
            line += block.lines


def find_numbers(limit: int, fits: int, dtype: Any, text: ByteArray) -> Block:
    """Find the pairs of numbers in a block."""
    from surveyor.kernels.text import parse_pairs

    sources, targets = np.empty((2, text.size // 4 + 1), dtype)
    bad = np.empty((SHOWN, 3), np.int64)
    links, lines, largest, count, longer = parse_pairs(text, limit, fits, sources, targets, bad)
    return Block(text, (sources[:links], targets[:links]), lines, largest, count, bad, longer)


def find_names(separator: int, text: ByteArray) -> Block:
    """Find the pairs of names in a block."""
    from surveyor.kernels.text import find_pairs

    text = text.copy()  # doubled quotes are mended in place
    spans = np.empty((2 * (np.count_nonzero(text == 10) + 1), 2), np.int64)
    bad = np.empty((SHOWN, 3), np.int64)
    found, lines, largest, count, longer = find_pairs(text, separator, spans, bad)
    return Block(text, (spans[:found],), lines, largest, count, bad, longer)


def begin(path: Path, separators: str = "\t") -> Beginning:
    """Look at the first lines of a file."""
    text = head(path)
    if not text:
        raise InputError(f"{path} is empty", hint="give a file with one link per line")
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:1024]:
        raise InputError(f"{path} is not UTF-8 text", hint="save it as UTF-8, or name its format with --format")
    skip = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    lines, nodes, data = 0, None, list[bytes]()
    place = skip
    for line in text[skip:].splitlines(keepends=True):
        if data or (line.strip() and not line.lstrip().startswith((b"#", b"%"))):
            data.append(line.strip(b"\r\n"))
            continue
        if stated := re.search(rb"(?i)\bnodes:?\s+(\d{1,10})\b", line):
            nodes = int(stated[1])
        place += len(line)
        lines += 1
    separator = _separator(data[:1], separators)
    header = ""
    if data and _is_header(data, separator):
        header = data[0].decode("utf-8", "replace")
        place, lines = place + _line_length(text, place), lines + 1
    numbers = _mostly_numbers(data[1:] if header else data)
    return Beginning(place, lines, header, nodes, separator, numbers)


def has_columns(path: Path) -> bool:
    """Say whether most of the first data lines have two columns or more."""
    lines = [line for line in head(path).splitlines()[:100] if line.strip() and line[:1] not in (b"#", b"%")]
    separator = _separator(lines[:1], "\t")
    return 2 * sum(len(_fields(line, separator)) > 1 for line in lines) > len(lines)


def _line_length(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return (end + 1 if end >= 0 else len(text)) - start


def _separator(data: list[bytes], separators: str) -> int:
    """Choose the first of some separators that the first line has; none means blanks."""
    line = data[0] if data else b""
    default = 0 if separators == "\t" else ord(separators[0])
    return next((ord(mark) for mark in separators if mark.encode() in line), default)


def _fields(line: bytes, separator: int) -> list[str]:
    fields = line.split(bytes([separator])) if separator else line.split()
    return [field.decode("utf-8", "replace").strip(' "\t') for field in fields]


def _is_header(data: list[bytes], separator: int) -> bool:
    """Say whether the first line holds words such as source and target, or words above numbers."""
    fields = _fields(data[0], separator)[:2]
    if len(fields) < 2:
        fields = [field.decode("utf-8", "replace") for field in re.split(rb"[\s,;]+", data[0].strip())][:2]
    if len(fields) < 2 or any(not field or field[0].isdigit() or field[0] in "-+" for field in fields):
        return False
    if all(HEADER_WORD.fullmatch(field.lower()) for field in fields):
        return True
    return len(data) > 1 and not _is_pair(data[0]) and _mostly_numbers(data[1:])


def _is_pair(line: bytes) -> bool:
    return re.match(rb"\s*\d+\s*[\s,;]\s*\d+\s*($|[\s,;])", line) is not None


def _mostly_numbers(data: list[bytes]) -> bool:
    sample = [line for line in data[:100] if line.strip()]
    return 2 * sum(map(_is_pair, sample)) >= len(sample)


def write_snap(graph: Graph, path: Path) -> None:
    """Write ids with the usual comments; pages that were read from a list keep their numbers."""
    names = graph.names
    numbers = names is not None and names.blob.size > 0 and bool(((names.blob >= 48) & (names.blob <= 57)).all())
    kept = "" if names is None or numbers else "# Pages are numbered from 0; their names are not kept\n"
    comments = f"# Nodes: {graph.pages} Edges: {graph.links}\n{kept}# FromNodeId\tToNodeId\n"
    write_lines(graph, path, comments.encode(), 9, names if numbers else None)


def write_tsv(graph: Graph, path: Path) -> None:
    """Write one link a line: two names, or two ids, and a tab between them."""
    table = graph.names
    if table is not None:
        for name in table:
            if not name or name != name.strip(" \r") or name[0] in "#%" or "\t" in name or "\n" in name:
                raise UsageError(f"the name {name!r} cannot be written as TSV", hint="write CSV or Parquet instead")
    write_lines(graph, path, b"" if graph.links else b"# no links\n", 9, table)


def write_csv(graph: Graph, path: Path) -> None:
    """Write a header and one link a line: two names, or two ids, with a comma between them."""
    table = graph.names
    if table is not None and set(b'\n\r \t"#%,') & set(np.unique(table.blob).tolist()):
        table = Names.of(_quoted(name) for name in table)
    write_lines(graph, path, b"source,target\n", 44, table)


def _quoted(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise UsageError(f"the name {name!r} cannot be written as CSV", hint="write Parquet or npz instead")
    plain = not set(name) & set('",') and name == name.strip() and name[:1] not in ("#", "%")
    return name if plain else '"' + name.replace('"', '""') + '"'


def write_lines(graph: Graph, path: Path, start: bytes, separator: int, names: Names | None) -> None:
    """Write all links of a graph as text."""
    from surveyor.kernels.text import write_named, write_pairs

    with aside(path) as draft, packing(draft) as write:
        write(start)
        for sources, targets in link_batches(graph):
            if names is None:
                out = np.empty(22 * sources.size, np.uint8)
                size = write_pairs(sources, targets, separator, out)
            else:
                lengths = np.diff(names.offsets)
                out = np.empty(int(lengths[sources].sum() + lengths[targets].sum()) + 2 * sources.size, np.uint8)
                size = write_named(sources, targets, names.offsets, names.blob, separator, out)
            write(out[:size].data)


def link_batches(graph: Graph, at_once: int = AT_ONCE) -> Iterator[tuple[IdArray, IdArray]]:
    """Yield (sources, targets), some links at a time."""
    for first in range(0, graph.links, at_once):
        last = min(first + at_once, graph.links)
        low = int(np.searchsorted(graph.indptr, first, "right")) - 1
        high = int(np.searchsorted(graph.indptr, last, "left"))
        ends: IntArray = np.clip(graph.indptr[low : high + 1], first, last)
        counts = np.diff(ends)
        yield np.repeat(np.arange(low, high, dtype=np.int32), counts), graph.indices[first:last]

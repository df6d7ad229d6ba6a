"""Text with two columns: SNAP edge lists, and TSV or CSV of ids or names.

The layout is detected from the first lines (`text_header.py`). Blocks of whole lines are then parsed on all cores and
added in order. Columns other than the two of the links are ignored, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import SHOWN, Intake
from surveyor.graph.formats.streams import atomic_write, compressed_writer, line_blocks
from surveyor.graph.formats.text_header import BYTE_ORDER_MARK, NAMES_FOLLOW, TextLayout, is_header, text_layout
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool

AT_ONCE = 1 << 18  # links written at a time


class Block(NamedTuple):
    """The parsed contents of a block of lines."""

    text: ByteArray
    found: tuple[Any, ...]  # arrays
    lines: int
    largest: int
    bad_count: int
    bad: IntArray
    longer: int
    opened: int = 0  # the first line with an unclosed quote


def read_snap(path: Path, intake: Intake) -> None:
    """Read pairs of numbers."""
    _read(path, intake, text_layout(path), numbers=True)


def read_tsv(path: Path, intake: Intake) -> None:
    """Read pairs of numbers or of names, separated by tabs (or blanks)."""
    layout = text_layout(path)
    _read(path, intake, layout, numbers=layout.numbers)


def read_csv(path: Path, intake: Intake) -> None:
    """Read pairs of numbers or of names, separated by commas (or semicolons), quoted where needed."""
    layout = text_layout(path, ",;\t")
    _read(path, intake, layout, numbers=layout.numbers)


def _read(path: Path, intake: Intake, layout: TextLayout, *, numbers: bool) -> None:
    if layout.empty and layout.nodes is None and intake.wanted is None:
        raise InputError(f"{path} contains only comments and blank lines", hint="pass a file with one link per line")
    if layout.header:
        intake.note(f"the first line of {path.name} is a header: {layout.header}")
    source, target = (column + 1 for column in layout.columns)
    if (source, target) != (1, 2):
        intake.note(f"{path.name}: links go from column {source} to column {target}, as the header says")
    if not numbers:
        for block in parsed(path, intake, partial(find_names, layout.separator, layout.columns), layout):
            intake.pairs(block.text, block.found[0])
        return
    if layout.nodes is not None and intake.wanted is None:
        intake.expect(layout.nodes)
    read_ids(path, intake, layout)


def read_ids(path: Path, intake: Intake, layout: TextLayout) -> None:
    """Read pairs of numbers from one file of a source."""
    if max(layout.columns) > 1:
        task = partial(find_numbers_in, layout, intake.limit, intake.id_type)
    else:
        quoting = layout.separator if layout.separator in b",;" else 0
        task = partial(find_numbers, quoting, intake.limit, intake.fits, intake.id_type)
    for block in parsed(path, intake, task, layout):
        sources, targets = block.found[:: -1 if layout.columns == (1, 0) else 1]
        intake.ids(sources, targets, block.largest)


def parsed(path: Path, intake: Intake, task: Callable[[ByteArray], Block], layout: TextLayout) -> Iterator[Block]:
    """Parse a file on all cores, block by block in order; report its malformed lines to the intake."""
    line = layout.lines
    with ThreadPool(intake.threads) as pool:
        blocks = line_blocks(path, skip=layout.skip, progress=intake.progress)
        for block in pool.imap(task, ((block,) for block in blocks)):
            if block.opened:
                raise InputError(
                    f"{path}:{line + block.opened}: a quote is not closed at the end of the line",
                    hint="close the quote; a link must be on one line",
                )
            yield block
            for number, start, end in block.bad[: block.bad_count]:
                intake.malformed(path, line + int(number), block.text[start:end].tobytes())
            intake.bad_count += max(0, block.bad_count - SHOWN)
            if block.longer:
                intake.note(f"{path.name} has more than two columns: the others are ignored")
            line += block.lines


def find_numbers(quoting: int, limit: int, fits: int, dtype: Any, text: ByteArray) -> Block:
    """Find the pairs of numbers in the first two columns of a block."""
    from surveyor.kernels.text_parsing import parse_pairs

    sources, targets = np.empty((2, text.size // 4 + 1), dtype)
    bad = np.empty((SHOWN, 3), np.int64)
    links, lines, largest, count, longer, opened = parse_pairs(text, limit, fits, quoting, sources, targets, bad)
    return Block(text, (sources[:links], targets[:links]), lines, largest, count, bad, longer, opened)


def find_numbers_in(layout: TextLayout, limit: int, dtype: Any, text: ByteArray) -> Block:
    """Find the pairs of numbers in other columns of a block: as names, which are then parsed."""
    from surveyor.kernels.text_parsing import number_spans

    block = find_names(layout.separator, layout.columns, text)
    spans = block.found[0]
    numbers = np.empty(spans.shape[0], np.int64)
    number_spans(block.text, spans, limit, numbers)
    ends = numbers.reshape(-1, 2)
    good = (ends >= 0).all(axis=1)
    bad = [tuple(row) for row in block.bad[: block.bad_count]]
    for start in spans[::2, 0][~good][:SHOWN]:
        before, after = block.text[:start].tobytes(), block.text[start:].tobytes()
        bad.append((before.count(b"\n") + 1, before.rfind(b"\n") + 1, start + after.index(b"\n")))
    rows = np.array(sorted(bad)[:SHOWN], np.int64).reshape(-1, 3)
    ends, largest = ends[good], int(ends.max(initial=-1))
    if largest < np.iinfo(dtype).max:
        ends = ends.astype(dtype)
    return block._replace(
        found=(ends[:, 0].copy(), ends[:, 1].copy()),
        largest=largest,
        bad=rows,
        bad_count=block.bad_count + int(np.count_nonzero(~good)),
    )


def find_names(separator: int, columns: tuple[int, int], text: ByteArray) -> Block:
    """Find the pairs of names in two columns of a block."""
    from surveyor.kernels.text_parsing import find_pairs

    text = text.copy()  # doubled quotes are replaced in place
    spans = np.empty((2 * (np.count_nonzero(text == 10) + 1), 2), np.int64)
    bad = np.empty((SHOWN, 3), np.int64)
    found, lines, count, longer, opened = find_pairs(text, separator, *columns, spans, bad)
    return Block(text, (spans[:found],), lines, -1, count, bad, longer, opened)


def write_snap(graph: Graph, path: Path) -> None:
    """Write ids with the usual comments; numeric names are written instead of ids."""
    names, pages, kept = graph.names, graph.pages, ""
    if names is not None and not _all_digits(names):
        names, kept = None, "# Pages are numbered from 0; their names are not stored\n"
    elif names is not None:
        ids = _numbers(names)
        if ids is None:
            raise UsageError(
                "names with leading zeros, of 2**63 - 1 or more, or duplicates cannot be written as SNAP",
                hint="write CSV, Parquet or npz instead, or ids with names=False",
            )
        linked = np.diff(graph.indptr) > 0
        linked[graph.indices] = True
        if ids.max(initial=-1) >= pages and not linked.all():  # such pages cannot be represented
            pages = int(np.count_nonzero(linked))
            kept = f"# {graph.pages - pages} pages without links are not stored\n"
    comments = f"# Nodes: {pages} Edges: {graph.links}\n{kept}# FromNodeId\tToNodeId\n"
    write_lines(graph, path, comments.encode(), 9, names)


def _all_digits(names: Names) -> bool:
    return names.blob.size > 0 and bool(((names.blob >= 48) & (names.blob <= 57)).all())


def _numbers(names: Names) -> IntArray | None:
    """Return numeric names as numbers; None if some are not numbers or cannot be represented."""
    starts, lengths = names.offsets[:-1], np.diff(names.offsets)
    if not _all_digits(names) or not lengths.all() or lengths.max() > 19:
        return None
    values = np.zeros(lengths.size, np.uint64)
    for step in range(int(lengths.max())):
        more = lengths > step
        values[more] = values[more] * np.uint64(10) + (names.blob[starts[more] + step] - 48)
    padded = (names.blob[starts] == 48) & (lengths > 1)
    if padded.any() or values.max() >= 2**63 - 1 or np.unique(values).size < values.size:
        return None
    return values.astype(np.int64)


def write_tsv(graph: Graph, path: Path) -> None:
    """Write one link per line: two names or two ids, tab-separated."""
    table, digits = graph.names, False
    for name in table or ():
        if not name or name != name.strip(" \r") or name[0] in "#%" or "\t" in name or "\n" in name:
            raise UsageError(f"the name {name!r} cannot be written as TSV", hint="write CSV or Parquet instead")
        digits = digits or (name.isascii() and name.isdigit())
    start = b"" if graph.links else f"# Nodes: {0 if table else graph.pages} Edges: 0\n".encode()
    if table and graph.links:
        source, target = next(iter(link_batches(graph, 1)))
        line = "\t".join((table[int(source[0])], table[int(target[0])])).encode("utf-8", "surrogateescape")
        if is_header([line], 9) or line.startswith(BYTE_ORDER_MARK) or (digits and _numbers(table) is None):
            start = NAMES_FOLLOW
    write_lines(graph, path, start, 9, table)


def write_csv(graph: Graph, path: Path) -> None:
    """Write a header and one link per line: two names or two ids, comma-separated."""
    table = graph.names
    if table is not None and (_some_number(table) or set(b'\n\r \t"#%,') & set(np.unique(table.blob).tolist())):
        table = Names.of(_quoted(name) for name in table)
    write_lines(graph, path, b"source,target\n", 44, table)


def _some_number(names: Names) -> bool:
    """Return whether a name is empty or consists of digits only."""
    other = (names.blob < 48) | (names.blob > 57)
    lengths = np.diff(names.offsets)
    return not lengths.all() or not np.logical_or.reduceat(other, names.offsets[:-1]).all()


def _quoted(name: str) -> str:
    if not name or "\n" in name or "\r" in name:
        raise UsageError(f"the name {name!r} cannot be written as CSV", hint="write Parquet or npz instead")
    plain = not set(name) & set('",') and name == name.strip() and name[:1] not in ("#", "%")
    return name if plain and not name.isdigit() else '"' + name.replace('"', '""') + '"'


def write_lines(graph: Graph, path: Path, start: bytes, separator: int, names: Names | None) -> None:
    """Write all links of a graph as text."""
    from surveyor.kernels.text_writing import write_named, write_pairs

    with atomic_write(path) as draft, compressed_writer(draft) as write:
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

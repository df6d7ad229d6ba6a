"""Text with two columns: SNAP edge lists, and TSV or CSV of ids or names.

The layout (comments, header, separator, numbers or names) is detected from the first lines. Blocks of whole lines are
then parsed on all cores and added in order. Columns other than the two of the links are ignored, with a note.

A header names its columns: one word for the source (source, src, from, ...) and one for the target (target, dst, to,
...) determine the two columns of the links, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.arrays import ByteArray, IdArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import SHOWN, Intake
from surveyor.graph.formats.streams import HEAD, atomic_write, compressed_writer, head, line_blocks
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool

NOUN = r"(?:ids?|urls?|nodes?|hosts?|domains?|pages?|links?|names?|_|\W)*"
SOURCE_WORD = re.compile(NOUN + r"(?:source|src|from|start|parent|refer+er|subject)" + NOUN)
TARGET_WORD = re.compile(NOUN + r"(?:target|dst|dest|destination|to|end|child|object)" + NOUN)
MEASURE = re.compile(rb"[-+]?[\d.][\d.:,eE/TZ+-]*")  # a weight or a time
SENTENCE = re.compile(rb"^(?!\w+://).*(?:[,;:!?]$|[()=`*\"\[\]])|^(?:-|\*|>|=|\+|[\d]+\.)$")  # in a name: prose or code
SAMPLE = 200  # lines
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NAMES_FOLLOW = b"# links between names, without a header\n"  # written if names could be taken for a header or ids
AT_ONCE = 1 << 18  # links written at a time


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The layout of a text of links."""

    skip: int  # bytes before the data
    lines: int  # lines before the data
    header: str
    nodes: int | None  # "# Nodes: N" of SNAP
    separator: int
    numbers: bool  # ids instead of names
    columns: tuple[int, int] = (0, 1)  # of the source and of the target
    empty: bool = False  # only comments and blank lines


def text_layout(path: Path, separators: str = "\t") -> TextLayout:
    """Determine the layout from the first lines of a file."""
    text = head(path)
    if not text:
        raise InputError(f"{path} is empty", hint="give a file with one link per line")
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text[:1024]:
        raise InputError(f"{path} is not UTF-8 text", hint="save it as UTF-8, or name its format with --input-format")
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
    if text.startswith(NAMES_FOLLOW):
        return TextLayout(place, lines, "", None, separator, numbers=False)
    header, columns = "", (0, 1)
    if data and is_header(data, separator):
        fields, between = _header_fields(data[0], separator)
        header, columns = data[0].decode("utf-8", "replace"), ends_of(fields) or (0, 1)
        separator = separator if max(columns) < 2 else between
        place, lines = place + _line_length(text, place), lines + 1
        data = data[1:]
    elif not data and len(text) < HEAD:
        return TextLayout(place, lines, "", nodes, separator, numbers=True, empty=True)
    numbers = _mostly_numbers(data, separator, columns)
    if not (separator or numbers) and _is_prose(data, len(header.split())):
        raise InputError(
            f"{path} is text, not a list of links: most lines contain more than two names and numbers",
            hint="write one source and one target per line, or name the columns in a first line: source target …",
        )
    return TextLayout(place, lines, header, nodes, separator, numbers, columns)


def _is_prose(data: list[bytes], titles: int = 0) -> bool:
    """Return whether lines of blank-separated words are sentences or code rather than links between names.

    After two names, a line of links contains numbers (weights, times) or a dictionary, as NetworkX writes it; below a
    header it may contain anything, in as many columns as the header has.
    """
    rows = [line.split() for line in data[:SAMPLE] if not line.lstrip().startswith((b"#", b"%"))]
    rows = [row for row in rows if len(row) > 1]
    if titles > 1:
        return 2 * sum(len(row) != titles for row in rows) > len(rows) and any(len(row) > 2 for row in rows)
    odd = sum(
        not (all(map(MEASURE.fullmatch, row[2:])) or row[2].startswith(b"{")) or any(map(SENTENCE.search, row[:2]))
        for row in rows
    )
    return 2 * odd > len(rows)


def ends_of(fields: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns that a header names as source and target; of several, the one with the shortest name."""
    words = [field.strip().lower() for field in fields]
    found = []
    for kind in (SOURCE_WORD, TARGET_WORD):
        places = [place for place, word in enumerate(words) if kind.fullmatch(word)]
        if not places:
            return None
        found.append(min(places, key=lambda place: len(words[place])))
    return found[0], found[1]


def is_header(data: list[bytes], separator: int) -> bool:
    """Return whether the first line contains words such as source and target, or words above numbers."""
    fields = _header_fields(data[0], separator)[0]
    if len(fields) < 2 or any(not field or field[0].isdigit() or field[0] in "-+" for field in fields[:2]):
        return False
    if ends_of(fields) or all(_is_word(field.lower()) for field in fields[:2]):
        return True
    return len(data) > 1 and not _is_pair(data[0]) and _mostly_numbers(data[1:], separator, (0, 1))


def _is_word(field: str) -> bool:
    return any(re.fullmatch(kind, field) for kind in (NOUN, SOURCE_WORD, TARGET_WORD))


def has_columns(path: Path) -> bool:
    """Return whether most of the first data lines have at least two columns."""
    lines = [line for line in head(path).splitlines()[:100] if line.strip() and line[:1] not in (b"#", b"%")]
    separator = _separator(lines[:1], "\t")
    return 2 * sum(len(_fields(line, separator)) > 1 for line in lines) > len(lines)


def _line_length(text: bytes, start: int) -> int:
    end = text.find(b"\n", start)
    return (end + 1 if end >= 0 else len(text)) - start


def _separator(data: list[bytes], separators: str) -> int:
    """Return the first of some separators that occurs in the first line; 0 for blanks."""
    line = data[0] if data else b""
    default = 0 if separators == "\t" else ord(separators[0])
    return next((ord(mark) for mark in separators if mark.encode() in line), default)


def _fields(line: bytes, separator: int) -> list[str]:
    fields = line.split(bytes([separator])) if separator else line.split()
    return [field.decode("utf-8", "replace").strip(' "\t') for field in fields]


def _header_fields(line: bytes, separator: int) -> tuple[list[str], int]:
    """Split a header by the separator, or by another that occurs in it; return the fields and the separator."""
    for other in (separator, *b",;", 0):
        if len(fields := _fields(line, other)) > 1:
            return fields, other
    return [], separator


def _is_pair(line: bytes) -> bool:
    return re.match(rb"\s*\d+\s*[\s,;]\s*\d+\s*($|[\s,;])", line) is not None


def _mostly_numbers(data: list[bytes], separator: int, columns: tuple[int, int]) -> bool:
    sample = [line for line in data[:100] if line.strip()]
    if max(columns) > 1:
        rows = [line.split(bytes([separator])) if separator else line.split() for line in sample]
        return 2 * sum(all(row[at : at + 1] and row[at].strip().isdigit() for at in columns) for row in rows) >= len(
            sample
        )
    return 2 * sum(map(_is_pair, sample)) >= len(sample)


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

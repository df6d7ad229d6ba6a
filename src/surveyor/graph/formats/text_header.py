"""The layout of a text of links, from its first lines: comments, header, separator, numbers or names.

A header names its columns: one word for the source (source, src, from, ...) and one for the target (target,
dst, to, ...) determine the two columns of the links, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surveyor.errors import InputError
from surveyor.graph.formats.streams import HEAD, head

NOUN = r"(?:ids?|urls?|nodes?|hosts?|domains?|pages?|links?|names?|_|\W)*"
SOURCE_WORD = re.compile(NOUN + r"(?:source|src|from|start|parent|refer+er|subject)" + NOUN)
TARGET_WORD = re.compile(NOUN + r"(?:target|dst|dest|destination|to|end|child|object)" + NOUN)
MEASURE = re.compile(rb"[-+]?[\d.][\d.:,eE/TZ+-]*")  # a weight or a time
SENTENCE = re.compile(rb"^(?!\w+://).*(?:[,;:!?]$|[()=`*\"\[\]])|^(?:-|\*|>|=|\+|[\d]+\.)$")  # in a name: prose or code
SAMPLE = 200  # lines
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NAMES_FOLLOW = b"# links between names, without a header\n"  # written if names could be taken for a header or ids


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

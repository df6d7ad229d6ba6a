"""Links and matrix entries in text: numbers and names parsed from blocks of whole lines.

Every block ends with a newline, so that the inner loops need no bounds checks: a newline is neither a digit nor a
blank. A malformed line is reported by number and position, never dropped: `bad` receives the first ones as rows (line
of the block, first byte, last byte), and the count continues beyond them. Matrix entries are
`row column [value [imaginary part]]`, or one value per line; the first malformed line ends the parsing.
"""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyInt, AnyIntArray, BoolArray, ByteArray, IdArray, IntArray
from surveyor.kernels._jit import inlined, kernel

NEWLINE, RETURN, TAB, SPACE, QUOTE, HASH, COMMA, DOT, ZERO, NINE, SEMICOLON, PERCENT = b'\n\r\t "#,.09;%'
MAX_INT64 = 2**63 - 1
WHITESPACE = 0  # separator: any run of blanks


@inlined
def is_blank(byte: int) -> bool:
    """Return whether a byte is a space, tab or carriage return."""
    return byte in (SPACE, TAB, RETURN)


@kernel
def record_malformed(text: ByteArray, start: int, line: int, count: int, bad: IntArray) -> tuple[int, int]:
    """Record a line that is not a link, unless blank or a comment; return (malformed lines, start of the next line)."""
    last = start
    while text[last] != NEWLINE:
        last += 1
    first = start
    while is_blank(text[first]):
        first += 1
    if first < last and text[first] != HASH and text[first] != PERCENT:
        if count < bad.shape[0]:
            bad[count, 0], bad[count, 1], bad[count, 2] = line, start, last
        count += 1
    return count, last + 1


@kernel
def ends_open(text: ByteArray, at: int, separator: int) -> bool:
    """Return whether a quote that opens a field after `at` is still open at the end of its line."""
    inside, fresh = False, True
    while text[at] != NEWLINE:
        if text[at] == QUOTE and (inside or fresh):
            inside, fresh = not inside, True  # a doubled quote closes and reopens
        elif not is_blank(text[at]):
            fresh = text[at] == separator
        at += 1
    return inside


@kernel
def parse_number(text: ByteArray, at: int) -> tuple[int, int]:
    """Read a number; return (number, where it ends), number -1 if there is none below 2**63."""
    first = at
    value: AnyInt = np.int64(0)
    while ZERO <= text[at] <= NINE:
        digit = np.int64(text[at]) - ZERO
        if value > (MAX_INT64 - digit) // 10:
            return -1, at
        value = value * 10 + digit
        at += 1
    return (int(value), at) if at > first else (-1, at)


@kernel
def parse_line(text: ByteArray, at: int) -> tuple[int, int, int, bool]:
    """Read a line of two numbers; return (source or -1 if bad, target, next line, has more columns)."""
    while is_blank(text[at]):
        at += 1
    source, at = parse_number(text, at)
    gap = at
    while is_blank(text[at]):
        at += 1
    if text[at] in (COMMA, SEMICOLON):
        at += 1
        while is_blank(text[at]):
            at += 1
    target, after = parse_number(text, at)
    end = text[after]
    separate = end in (NEWLINE, COMMA, SEMICOLON) or is_blank(end)
    if source < 0 or target < 0 or at == gap or not separate:
        return -1, -1, at, False
    at = after
    while is_blank(text[at]):
        at += 1
    more = text[at] != NEWLINE
    while text[at] != NEWLINE:
        at += 1
    return source, target, at + 1, more


@kernel
def parse_pairs(
    text: ByteArray, limit: int, fits: int, quoting: int, sources: AnyIntArray, targets: AnyIntArray, bad: IntArray
) -> tuple[int, int, int, int, int, int]:
    """Parse two numbers per line; return (links, lines, largest, malformed, lines with more columns, open line).

    A number of `limit` or more makes its line malformed; one of `fits` or more ends the work at once, as
    the caller can see from `largest`. Lines of two short numbers and one separator, nearly all there are,
    are read here; the others by `parse_line`. With a separator as `quoting`, the open line is the first
    whose last quote is not closed (0: none).
    """
    links, lines, count, longer, opened = 0, 0, 0, 0, 0
    largest: AnyInt = np.int64(-1)
    # Unsigned indices avoid the check for negative ones.
    at, one, zero, ten = np.uint64(0), np.uint64(1), np.uint64(ZERO), np.uint64(10)
    size, short = np.uint64(text.shape[0]), np.uint64(18)
    while at < size:
        start = at
        lines += 1
        source = target = np.uint64(0)
        digit = np.uint64(text[at]) - zero
        while digit < ten:
            source = source * ten + digit
            at += one
            digit = np.uint64(text[at]) - zero
        gap, mark = at, text[at]
        at += np.uint64(mark != NEWLINE)
        digit = np.uint64(text[at]) - zero
        while digit < ten:
            target = target * ten + digit
            at += one
            digit = np.uint64(text[at]) - zero
        plain = text[at] == NEWLINE and mark in (TAB, SPACE, COMMA)
        first: AnyInt
        second: AnyInt
        begin = int(np.int64(start))
        if plain and gap > start and gap - start <= short and gap + one < at and at - gap <= short:
            first, second = np.int64(source), np.int64(target)
            at += one
        else:
            first, second, following, more = parse_line(text, begin)
            at = np.uint64(following)
            longer += more
            if quoting and not opened and text[start] != HASH and ends_open(text, begin, quoting):
                opened = lines
        larger = max(first, second)
        if first < 0 or larger >= limit:
            count, following = record_malformed(text, begin, lines, count, bad)
            at = np.uint64(following)
        else:
            if larger >= fits:
                return links, lines, int(larger), count, longer, opened
            largest = max(largest, larger)
            sources[links], targets[links] = first, second
            links += 1
    return links, lines, int(largest), count, longer, opened


@kernel
def next_field(text: ByteArray, at: int, separator: int) -> tuple[int, int, int]:
    """Find one field from `at`; return (first, last, end position), first < 0 if a quote is not closed.

    Commas and semicolons respect quotes, and a doubled quote inside them becomes one, in place.
    """
    while is_blank(text[at]) and text[at] != separator:
        at += 1
    first = at
    if text[at] == QUOTE and separator in (COMMA, SEMICOLON):
        at += 1
        first = last = at
        while text[at] != NEWLINE:
            if text[at] == QUOTE:
                if text[at + 1] != QUOTE:
                    break
                at += 1
            if last != at:
                text[last] = text[at]
            last += 1
            at += 1
        if text[at] == NEWLINE:
            return -1, -1, at
        at += 1
        while is_blank(text[at]):
            at += 1
        if text[at] != NEWLINE and text[at] != separator:
            return -1, -1, at
        return first, last, at
    while text[at] != NEWLINE and text[at] != separator and not (separator == WHITESPACE and is_blank(text[at])):
        at += 1
    last = at
    while last > first and is_blank(text[last - 1]):
        last -= 1
    if separator == WHITESPACE:
        while is_blank(text[at]):
            at += 1
    return first, last, at


@kernel
def find_pairs(
    text: ByteArray, separator: int, source: int, target: int, spans: IntArray, bad: IntArray
) -> tuple[int, int, int, int, int]:
    """Find the names in two columns; return (spans, lines, malformed, lines with more columns, open line).

    Spans are (source, target) in turn, whichever column comes first. The open line is the first whose last
    quote is not closed (0: none).
    """
    found, lines, count, longer, opened, at = 0, 0, 0, 0, 0, 0
    wanted = max(source, target)
    quotes = separator in (COMMA, SEMICOLON)
    while at < text.shape[0]:
        start = at
        lines += 1
        if text[at] == HASH or text[at] == PERCENT:
            count, at = record_malformed(text, start, lines, count, bad)
            continue
        good, first = True, at
        for column in range(wanted + 1):
            at += column > 0 and separator != WHITESPACE
            first, last, at = next_field(text, at, separator)
            if column in (source, target):
                place = found + (column == target)
                spans[place, 0], spans[place, 1] = first, last
                good = last > first
            good = good and first >= 0 and (column == wanted or text[at] != NEWLINE)
            if not good:
                break
        more = text[at] != NEWLINE
        if quotes and not opened and ((first < 0 and not more) or (more and ends_open(text, at, separator))):
            opened = lines
        if good:
            found += 2
            longer += more
            while text[at] != NEWLINE:
                at += 1
            at += 1
        else:
            count, at = record_malformed(text, start, lines, count, bad)
    return found, lines, count, longer, opened


@kernel
def number_spans(text: ByteArray, spans: IntArray, limit: int, numbers: IntArray) -> None:
    """Parse the number in each span; -1 where there is none below the limit."""
    for row in range(spans.shape[0]):
        value, end = parse_number(text, spans[row, 0])
        numbers[row] = value if end == spans[row, 1] and value < limit else -1


@kernel
def parse_vertices(text: ByteArray, ids: IntArray, spans: IntArray, bad: IntArray) -> tuple[int, int, int, int, int]:
    """Parse `id TAB name [TAB ...]` per line; return (vertices, lines, -1, malformed, lines with more columns).

    A malformed line becomes a vertex without a name and with id -1, so that later vertices keep their positions.
    """
    found, lines, count, longer, at = 0, 0, 0, 0, 0
    while at < text.shape[0]:
        start, value = at, np.int64(0)
        lines += 1
        while 0 <= np.int64(text[at]) - ZERO <= 9 and at - start < 18:
            value = value * 10 + (np.int64(text[at]) - ZERO)
            at += 1
        first = last = at
        good = at > start and text[at] == TAB
        if good:
            first = at + 1
            last = first
            while text[last] != TAB and text[last] != NEWLINE and text[last] != RETURN:
                last += 1
            good = last > first
        before = count
        after, following = record_malformed(text, start, lines, count, bad)
        if good:
            ids[found], spans[found, 0], spans[found, 1] = value, first, last
            found += 1
            longer += text[last] == TAB
        else:
            count = after
            if count > before:
                ids[found], spans[found, 0], spans[found, 1] = -1, start, start
                found += 1
        at = following
    return found, lines, -1, count, longer


@kernel
def mark_ids(ids: AnyIntArray, used: BoolArray) -> None:
    """Mark every id that occurs."""
    for place in range(ids.shape[0]):
        used[ids[place]] = True


@kernel
def copy_spans(text: ByteArray, spans: IntArray, blob: ByteArray) -> None:
    """Write the strings text[spans[i, 0]:spans[i, 1]] one after another."""
    at = 0
    for row in range(spans.shape[0]):
        for place in range(spans[row, 0], spans[row, 1]):
            blob[at] = text[place]
            at += 1


@kernel
def line_spans(text: ByteArray, spans: IntArray) -> int:
    """Find the lines of a block, without line ends; return their number."""
    found, start = 0, 0
    for at in range(text.shape[0]):
        if text[at] == NEWLINE:
            last = at
            while last > start and is_blank(text[last - 1]):
                last -= 1
            spans[found, 0], spans[found, 1] = start, last
            found += 1
            start = at + 1
    return found


@kernel
def names_are_sorted(blob: ByteArray, offsets: IntArray) -> bool:
    """Return whether the names are strictly ascending, bytewise."""
    for name in range(1, offsets.shape[0] - 1):
        a, b = offsets[name - 1], offsets[name]
        while a < offsets[name] and b < offsets[name + 1] and blob[a] == blob[b]:
            a += 1
            b += 1
        if b == offsets[name + 1] or (a < offsets[name] and blob[a] > blob[b]):
            return False
    return True


@kernel
def reverse_labels(blob: ByteArray, offsets: IntArray, out: ByteArray) -> None:
    """Write each name with its dot-separated labels in reverse order: com.example -> example.com."""
    for name in range(offsets.shape[0] - 1):
        first, last = offsets[name], offsets[name + 1]
        at, end = first, last
        while end >= first:
            start = end
            while start > first and blob[start - 1] != DOT:
                start -= 1
            for place in range(start, end):
                out[at] = blob[place]
                at += 1
            if at < last:
                out[at] = DOT
                at += 1
            end = start - 1
    return


PLUS, MINUS = b"+-"
UPPER_E, UPPER_D, UPPER_N, UPPER_A, UPPER_I, UPPER_F = b"EDNAIF"
CASE = 0xDF  # mask that maps letters to upper case
PATTERN, INTEGER, REAL, COMPLEX = range(4)  # Matrix Market fields: the values of an entry
PARSED, MALFORMED, OUT_OF_RANGE = range(3)  # results


@kernel
def skip_digits(text: ByteArray, at: int) -> tuple[int, bool]:
    """Skip digits; return (end, whether one of them is not 0)."""
    some = False
    while ZERO <= text[at] <= NINE:
        some = some or text[at] != ZERO
        at += 1
    return at, some


@kernel
def skip_value(text: ByteArray, at: int, whole: bool) -> tuple[int, bool]:  # noqa: FBT001  # kernels take no keyword arguments
    """Skip a number; return (end, whether it is not 0), or (-1, False) if there is none."""
    if text[at] in (PLUS, MINUS):
        at += 1
    if not whole:
        a, b, c = text[at] & CASE, 0, 0
        if a in (UPPER_N, UPPER_I):
            b = text[at + 1] & CASE
            c = text[at + 2] & CASE if text[at + 1] != NEWLINE else 0
            if (a == UPPER_N and b == UPPER_A and c == UPPER_N) or (a == UPPER_I and b == UPPER_N and c == UPPER_F):
                return at + 3, True
            return -1, False
    first = at
    at, some = skip_digits(text, at)
    digits = at - first
    if not whole and text[at] == DOT:
        first = at + 1
        at, more = skip_digits(text, first)
        digits += at - first
        some = some or more
    if digits == 0:
        return -1, False
    if not whole and text[at] & CASE in (UPPER_E, UPPER_D):
        at += 1
        if text[at] in (PLUS, MINUS):
            at += 1
        first = at
        at, _ = skip_digits(text, at)
        if at == first:
            return -1, False
    return at, some


@kernel
def skip_blanks(text: ByteArray, at: int) -> int:
    """Skip spaces, tabs and carriage returns."""
    while is_blank(text[at]):
        at += 1
    return at


@kernel
def parse_entries(
    text: ByteArray, pages: int, values: int, rows: IdArray, columns: IdArray, present: BoolArray
) -> tuple[int, int, int]:
    """Parse one entry per line, indices from 1; return (entries, lines, result)."""
    found, lines, at = 0, 0, 0
    while at < text.shape[0]:
        lines += 1
        at = skip_blanks(text, at)
        if text[at] == NEWLINE:
            at += 1
            continue
        row, after = parse_number(text, at)
        at = skip_blanks(text, after)
        if row < 0 or at == after:
            return found, lines, MALFORMED
        column, after = parse_number(text, at)
        at = skip_blanks(text, after)
        some = values == PATTERN
        for _ in range(2 if values == COMPLEX else values != PATTERN):
            if at == after:
                return found, lines, MALFORMED
            after, more = skip_value(text, at, values == INTEGER)
            if after < 0:
                return found, lines, MALFORMED
            some = some or more
            at = skip_blanks(text, after)
        if column < 0 or text[at] != NEWLINE:
            return found, lines, MALFORMED
        if row < 1 or row > pages or column < 1 or column > pages:
            return found, lines, OUT_OF_RANGE
        rows[found], columns[found], present[found] = row - 1, column - 1, some
        found += 1
        at += 1
    return found, lines, PARSED


@kernel
def parse_values(text: ByteArray, values: int, present: BoolArray) -> tuple[int, int, int]:
    """Parse one value per line; return (values, lines, result)."""
    found, lines, at = 0, 0, 0
    while at < text.shape[0]:
        lines += 1
        at = skip_blanks(text, at)
        if text[at] == NEWLINE:
            at += 1
            continue
        some, after = False, -1
        for _ in range(2 if values == COMPLEX else 1):
            if at == after:
                return found, lines, MALFORMED
            after, more = skip_value(text, at, values == INTEGER)
            if after < 0:
                return found, lines, MALFORMED
            some = some or more
            at = skip_blanks(text, after)
        if text[at] != NEWLINE:
            return found, lines, MALFORMED
        present[found] = some
        found += 1
        at += 1
    return found, lines, PARSED

"""Entries of matrices in text: `row column [value [imaginary part]]`, or a value a line, in blocks of whole lines.

As in `text.py` every block ends with a newline, so that the inner loops need no bounds. The first line that is no
entry ends the work; the caller names it.
"""

from __future__ import annotations

from surveyor.arrays import BoolArray, ByteArray, IdArray
from surveyor.kernels._jit import kernel
from surveyor.kernels.text import NEWLINE, NINE, ZERO, is_blank, parse_number

PLUS, MINUS, DOT = b"+-."
UPPER_E, UPPER_D, UPPER_N, UPPER_A, UPPER_I, UPPER_F = b"EDNAIF"
CASE = 0xDF  # takes the bit away that makes a letter small
NONE, WHOLE, REAL, COMPLEX = range(4)  # what follows the two indices of an entry
FINE, WRONG, OUTSIDE = range(3)  # how a call ends


@kernel
def skip_digits(text: ByteArray, at: int) -> tuple[int, bool]:
    """Pass over digits; return (where they end, whether one of them is not 0)."""
    some = False
    while ZERO <= text[at] <= NINE:
        some = some or text[at] != ZERO
        at += 1
    return at, some


@kernel
def skip_value(text: ByteArray, at: int, whole: bool) -> tuple[int, bool]:  # noqa: FBT001  # kernels know no keywords
    """Pass over a number; return (where it ends, whether it is not 0), (-1, False) if there is none."""
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
    """Pass over spaces, tabs and carriage returns."""
    while is_blank(text[at]):
        at += 1
    return at


@kernel
def parse_entries(
    text: ByteArray, pages: int, values: int, rows: IdArray, columns: IdArray, present: BoolArray
) -> tuple[int, int, int]:
    """Read one entry a line, indices from 1; return (entries, lines, how it ended)."""
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
            return found, lines, WRONG
        column, after = parse_number(text, at)
        at = skip_blanks(text, after)
        some = values == NONE
        for _ in range(2 if values == COMPLEX else values != NONE):
            if at == after:
                return found, lines, WRONG
            after, more = skip_value(text, at, values == WHOLE)
            if after < 0:
                return found, lines, WRONG
            some = some or more
            at = skip_blanks(text, after)
        if column < 0 or text[at] != NEWLINE:
            return found, lines, WRONG
        if row < 1 or row > pages or column < 1 or column > pages:
            return found, lines, OUTSIDE
        rows[found], columns[found], present[found] = row - 1, column - 1, some
        found += 1
        at += 1
    return found, lines, FINE


@kernel
def parse_values(text: ByteArray, values: int, present: BoolArray) -> tuple[int, int, int]:
    """Read one value a line; return (values, lines, how it ended)."""
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
                return found, lines, WRONG
            after, more = skip_value(text, at, values == WHOLE)
            if after < 0:
                return found, lines, WRONG
            some = some or more
            at = skip_blanks(text, after)
        if text[at] != NEWLINE:
            return found, lines, WRONG
        present[found] = some
        found += 1
        at += 1
    return found, lines, FINE

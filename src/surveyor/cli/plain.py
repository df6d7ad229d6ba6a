"""What to print where the terminal, or the file, does not speak UTF-8: signs of ours in ASCII, the rest as escapes."""

from __future__ import annotations

NAME = "surveyor.plain"
ASCII = {
    **dict.fromkeys("█▉▊▋▌", "#"), **dict.fromkeys("▍▎▏", "."), "░": "-", "…": "...", "–": "-", "—": "-", "−": "-",
    "“": '"', "”": '"', "’": "'", "±": "+-", "≤": "<=", "≥": ">=", "×": "x", "·": "*", "▲": "^", "▼": "v",
}  # fmt: skip


def plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Stand in for characters that an encoding lacks; a name is bytes, and need not be UTF-8.

    >>> import codecs
    >>> codecs.register_error(NAME, plainly)
    >>> "██▍ 5 % … Ж".encode("ascii", NAME)
    b'##. 5 % ... \\u0416'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(ASCII.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in text), error.end

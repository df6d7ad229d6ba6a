"""Detect the charset of a response body and decode it.

Sources are tried in this order: byte order mark, Content-Type, the declaration in the document, UTF-8 if the bytes are
valid UTF-8, a guess from the first 64 KB, UTF-8 with replacement characters. A label is used only if it is in the table
of labels that browsers support: Python has codecs (hex, zip, idna, …) that no server may select.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

GUESSED = 1 << 16  # bytes used to guess the charset
HEAD = 2_048  # bytes searched for a charset declaration
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
CHARSETS = {  # label -> Python codec, as browsers map it
    **{f"windows-{number}": f"cp{number}" for number in (874, 949, *range(1250, 1259))},
    **{f"iso-8859-{number}": f"iso8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)},
    **{name: name for name in ("utf-8", "utf-16-be", "koi8-r", "koi8-u", "gb18030", "euc-jp", "mac-cyrillic")},
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "euckr", "ks_c_5601-1987", "ksc5601"), "cp949"),
    **dict.fromkeys(("utf-16", "utf-16le"), "utf-16-le"),
    **dict.fromkeys(("gbk", "gb2312"), "gb18030"),
    **dict.fromkeys(("big5", "big5-hkscs"), "big5hkscs"),
    **dict.fromkeys(("iso-8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620"), "cp874"),
    "utf8": "utf-8",
    "utf-16be": "utf-16-be",
    "iso-2022-jp": "iso2022-jp",
    "latin2": "iso8859-2",
    "iso-8859-8-i": "iso8859-8",
    "ibm866": "cp866",
    "macintosh": "mac-roman",
}
GUESSES = [
    *(f"cp{number}" for number in range(1250, 1258)),
    "iso8859_2",
    "koi8_r",
    "euc_jp",
    "cp932",
    "gb18030",
    "big5",
    "cp949",
]
Guess = Callable[[bytes], str]


class Decoded(NamedTuple):
    """Decoded text, its charset, and the body itself where that is the text in UTF-8."""

    text: str
    charset: str
    utf8: bytes | None = None

    def encoded(self) -> bytes:
        """Return the text as UTF-8, without a copy where the body is UTF-8 already."""
        return self.text.encode() if self.utf8 is None else self.utf8


_PARAMETER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.ASCII)
_DECLARED = re.compile(
    rb"""<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?\s*([\w.:-]{1,40})|<\?xml\b[^>]{0,100}?\bencoding\s*=\s*["']"""
    rb"""([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


def decode(body: bytes, content_type: str = "", *, declares: bool = True, guess: Guess | None = None) -> Decoded:
    """Decode a body; with `declares`, the body itself may declare its charset.

    If no charset is named and the body is not UTF-8, call `guess` (default: `guessed`) with the first 64 KB.
    """
    for mark, charset in MARKS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], charset)
    if charset := named(body, content_type, declares=declares):
        return _decoded(body, charset)
    try:
        return Decoded(body.decode(), "utf-8", body)
    except UnicodeDecodeError as error:
        is_truncated = error.start >= len(body) - 3  # cut inside a character
        charset = "utf-8" if is_truncated else (guess or guessed)(body[:GUESSED])
        return Decoded(body.decode(charset, "replace"), charset)


def _decoded(body: bytes, charset: str) -> Decoded:
    """Decode a body of known charset, with replacement characters where it is invalid."""
    if charset == "utf-8":
        try:
            return Decoded(body.decode(), charset, body)
        except UnicodeDecodeError:
            pass
    return Decoded(body.decode(charset, "replace"), charset)


def named(body: bytes, content_type: str = "", *, declares: bool = True) -> str:
    """Return the charset named by the content type or by the document; empty if there is none in the table."""
    found = _PARAMETER.search(content_type.lower())
    charset = CHARSETS.get(found[1], "") if found else ""
    if not charset and declares and (match := _DECLARED.search(_COMMENT.sub(b"", body[:HEAD]))):
        charset = CHARSETS.get((match[1] or match[2]).decode("ascii", "replace").lower(), "")
        charset = "utf-8" if charset.startswith("utf-16") else charset  # the declaration was readable as ASCII
    return charset


def guessed(body: bytes) -> str:
    """Guess the charset of text; may take seconds."""
    from charset_normalizer import from_bytes

    best = from_bytes(body, cp_isolation=GUESSES).best()
    return best.encoding if best else "utf-8"

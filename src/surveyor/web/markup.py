"""Decode a response body, and bound the cost of parsing it. All scanners here take linear time.

**Charsets** are tried in this order: byte order mark, Content-Type, the declaration in the document, UTF-8 if the bytes
are valid UTF-8, a guess from the first 64 KB, UTF-8 with replacement characters. A label is used only if it is in the
table of labels that browsers support: Python has codecs (hex, zip, idna, …) that no server may select.

**Cost.** Under the rules of HTML a few kilobytes can cost hours: the open elements are searched for each tag (quadratic
in nested blocks), unclosed formatting (`<p><b id=1><p><b id=2>…`) creates quadratically many elements, and each
attribute is compared with all others of its element; attributes of repeated `html` and `body` tags accumulate on one
element. `cheap` rejects pages that could cost more than about 65 ms; a crawl parses only the others in its own process.
`tame` reduces the cost of any page:

- a page of more than 30,000 tags (a second in the worst case) is split into pieces of 1,000, which start at tags
  outside of comments and scripts, and is truncated at 500,000;
- a page is truncated where a tag has 1,000 attributes;
- where there is much formatting, `b`, `font` and similar tags are replaced by `span`, and so are `html` and `body` tags
  after the tenth. That changes neither links nor text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count, islice, pairwise
from typing import NamedTuple

import numpy as np

OPENING = ord("<")
CHEAP_TAGS = 3_000
CHEAP_LENGTH = 128_000  # characters
CHEAP_ATTRIBUTES = 100  # of one tag
SMALL = 24_000  # characters, half of it if many are not ASCII: attributes then cost at most 65 ms
FEW_OTHERS = 1_000  # bytes by which UTF-8 may exceed the number of characters
MOST_TAGS = 500_000  # opening and closing
MOST_ATTRIBUTES = 1_000  # of one tag
WHOLE = 30_000  # maximum tags of a page that is parsed in one piece
PIECE = 1_000  # tags after which a larger page is split, where possible; a piece is truncated at twice as many
MOST_FORMATTING = 400  # tags; if there are more, they are replaced by span
MOST_ROOTS = 10  # html and body tags; further ones are replaced by span
MANY_TAGS = 1_000  # minimum for a page to be searched for formatting

_FORMATTING = re.compile(  # the first letters halve the time
    r"<(/?)(?=[bcefinstuBCEFINSTU])(?i:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])"
)
_ROOT = re.compile(r"<(?i:html|body)(?=[\s/>])")
_TAG = re.compile(r"<[a-zA-Z/]")
_TOKEN = re.compile(  # a tag with its attributes, or an element without tags inside
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))|<(script|style|textarea|title|template|iframe|noembed|noframes|xmp)(?=[\s/>])"""
    r""".*?(?:</\1(?=[\s/>])|\Z)|<[a-z/][^>=]*+(?:=\s*+(?:"[^"]*+"?+|'[^']*+'?+)?+[^>=]*+)*+""",
    re.IGNORECASE | re.DOTALL,
)
_SPACE = r" \t\n\f\r"
_ATTRIBUTE = (  # as the HTML tokenizer reads it, with the space before it
    rf"[{_SPACE}/]*+[^{_SPACE}/>][^{_SPACE}/>=]*+"
    rf"""(?:[{_SPACE}]*+=[{_SPACE}]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>"'][^{_SPACE}>]*+)?+)?+"""
)


def _up_to_a_crowded_tag(most: int) -> re.Pattern[str]:
    """Return a pattern that matches a page up to the first tag with more than `most` attributes, without backtracking.

    Comments and scripts are searched too: whether text is a comment or script depends on its context.
    """
    tag = rf"</?[a-zA-Z][^{_SPACE}/>]*+(?:{_ATTRIBUTE}){{0,{most}}}+[{_SPACE}/]*+(?:>|\Z)"
    return re.compile(rf"(?:[^<]++|{tag}|<(?!/?[a-zA-Z]))*+")


_LONG_TAG = re.compile(  # an attribute and its separator take two characters
    rf"</?[a-zA-Z][^>]{{{2 * CHEAP_ATTRIBUTES}}}[^>]*+"
)
_BETWEEN = re.compile(r"""[\s/"']""")  # before every attribute
_QUOTED_END = re.compile(r"""=[ \t\n\f\r]*+(?:"[^">]*+>|'[^'>]*+>)""")  # such a `>` does not end the tag
_CHEAP = _up_to_a_crowded_tag(CHEAP_ATTRIBUTES)
_BEARABLE = _up_to_a_crowded_tag(MOST_ATTRIBUTES)


def cheap(html: str, utf8: bytes) -> bytes | None:
    """Return the HTML to parse, for a page given as text and UTF-8; None if that could take more than about 65 ms."""
    tags = int(np.count_nonzero(np.frombuffer(utf8, np.uint8) == OPENING))  # half the time of bytes.count
    if len(html) > CHEAP_LENGTH or tags > CHEAP_TAGS:
        return None
    if not _is_small(html, len(utf8)) and (not _has_small_tags(html) or _has_more(_ROOT, html, 2)):
        return None
    plain = _without_formatting(html, tags)
    return utf8 if plain is html else plain.encode()


def _is_small(html: str, size: int) -> bool:
    """Return whether a page is too small for costly attributes: ASCII has few one-character names."""
    return len(html) <= SMALL and (2 * len(html) <= SMALL or size - len(html) <= FEW_OTHERS)


def _has_small_tags(html: str) -> bool:
    """Return whether every tag has at most `CHEAP_ATTRIBUTES`; two quick searches suffice for most pages."""
    if not _QUOTED_END.search(html):
        long = (_BETWEEN.findall(tag[0]) for tag in _LONG_TAG.finditer(html))
        if all(len(between) < CHEAP_ATTRIBUTES for between in long):
            return True
    return _is_even(html, _CHEAP)


def tame(html: str) -> tuple[list[str], bool]:
    """Remove what would cost the parser too much and split the page; return the pieces and whether text was removed."""
    tags, cut = html.count("<"), False
    html = _without_formatting(html, tags)
    if _has_more(_ROOT, html, MOST_ROOTS):
        seen = count()
        html = _ROOT.sub(lambda tag: tag[0] if next(seen) < MOST_ROOTS else "<span", html)
    if not _is_small(html, len(html.encode("utf-8", "replace"))) and not _is_even(html, _BEARABLE):
        html, cut = html[: _end(html, _BEARABLE)], True
    if tags <= WHOLE:
        return [html], cut
    places, since = [0], 0
    for number, token in enumerate(_TOKEN.finditer(html)):
        if since >= PIECE:
            places.append(token.start())
            since = 0
        since += token[0].count("<")
        if number >= MOST_TAGS:
            html, cut = html[: token.start()], True
            break
    pieces = [html[start:end] for start, end in pairwise([*places, len(html)])]
    short = [_first_tags(piece, 2 * PIECE) for piece in pieces]
    return short, cut or sum(map(len, short)) < len(html)


def _without_formatting(html: str, tags: int) -> str:
    """Replace formatting tags by span if there are many; otherwise return the same string."""
    if tags > MANY_TAGS and _has_more(_FORMATTING, html, MOST_FORMATTING):
        return _FORMATTING.sub(r"<\1span", html)
    return html


def _end(html: str, pattern: re.Pattern[str]) -> int:
    found = pattern.match(html)
    return found.end() if found else 0


def _is_even(html: str, pattern: re.Pattern[str]) -> bool:
    return _end(html, pattern) == len(html)


def _has_more(pattern: re.Pattern[str], html: str, most: int) -> bool:
    return next(islice(pattern.finditer(html), most, None), None) is not None


def _first_tags(html: str, count: int) -> str:
    """Return the part that has at most `count` tags."""
    last = next(islice(_TAG.finditer(html), count, None), None) if html.count("<") > count else None
    return html[: last.start()] if last else html


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

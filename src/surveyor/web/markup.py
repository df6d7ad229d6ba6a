"""What a page would cost the HTML parser, found out before it is parsed; all scanners here take linear time.

The rules of HTML let a few kilobytes cost hours: open elements are searched for each tag (quadratic in nested blocks),
unclosed formatting (`<p><b id=1><p><b id=2>…`) makes quadratically many elements, and each attribute is compared with
all others of its element; those of repeated `html` and `body` tags gather on one element.

`cheap` rejects pages that could cost more than some 65 ms; a crawl parses only the others in its own process. `tame`
takes out of any page what would cost most: one of more than 30,000 tags (a second at the worst) is divided into pieces
of 1,000, which begin at tags outside of comments and scripts, and is cut at 500,000; a page is cut where a tag has
1,000 attributes; where there is much formatting, `b`, `font` and the like are read as `span`, and so are repeated
`html` and `body` tags beyond the tenth, which changes neither links nor text.
"""

from __future__ import annotations

import re
from itertools import count, islice, pairwise

import numpy as np

OPENING = ord("<")
CHEAP_TAGS = 3_000
CHEAP_LENGTH = 128_000  # characters
CHEAP_ATTRIBUTES = 100  # of one tag
SMALL = 24_000  # characters, half of it if many are not ASCII: attributes cost 65 ms at most
FEW_OTHERS = 1_000  # bytes by which text that is not all ASCII is longer than its characters
MOST_TAGS = 500_000  # opening and closing
MOST_ATTRIBUTES = 1_000  # of one tag
WHOLE = 30_000  # tags of a page that is parsed as a whole
PIECE = 1_000  # tags after which a larger one is divided, where it can be; at the latest after twice as many it is cut
MOST_FORMATTING = 400  # tags; where there are more, they are read as span
MOST_ROOTS = 10  # html and body tags; where there are more, they are read as span
MANY_TAGS = 1_000  # in a page worth searching for formatting

_FORMATTING = re.compile(r"<(/?)(?i:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])")
_ROOT = re.compile(r"<(?i:html|body)(?=[\s/>])")
_TAG = re.compile(r"<[a-zA-Z/]")
_TOKEN = re.compile(  # a tag with its attributes, or what has no tags inside
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))|<(script|style|textarea|title|template|iframe|noembed|noframes|xmp)(?=[\s/>])"""
    r""".*?(?:</\1(?=[\s/>])|\Z)|<[a-z/][^>=]*+(?:=\s*+(?:"[^"]*+"?+|'[^']*+'?+)?+[^>=]*+)*+""",
    re.IGNORECASE | re.DOTALL,
)
_SPACE = r" \t\n\f\r"
_ATTRIBUTE = (  # as the tokenizer of HTML takes it, with the space before it
    rf"[{_SPACE}/]*+[^{_SPACE}/>][^{_SPACE}/>=]*+"
    rf"""(?:[{_SPACE}]*+=[{_SPACE}]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>"'][^{_SPACE}>]*+)?+)?+"""
)


def _up_to_a_crowded_tag(most: int) -> re.Pattern[str]:
    """Match a page up to the first tag with more attributes; in linear time, as nothing is looked at twice.

    Comments and scripts are searched too: whether they are such depends on where they stand.
    """
    tag = rf"</?[a-zA-Z][^{_SPACE}/>]*+(?:{_ATTRIBUTE}){{0,{most}}}+[{_SPACE}/]*+(?:>|\Z)"
    return re.compile(rf"(?:[^<]++|{tag}|<(?!/?[a-zA-Z]))*+")


_LONG_TAG = re.compile(rf"<[^>]{{{2 * CHEAP_ATTRIBUTES}}}")  # an attribute and what is before it take two characters
_QUOTED_END = re.compile(r"""=[ \t\n\f\r]*+(?:"[^">]*+>|'[^'>]*+>)""")  # a tag does not end there
_CHEAP = _up_to_a_crowded_tag(CHEAP_ATTRIBUTES)
_BEARABLE = _up_to_a_crowded_tag(MOST_ATTRIBUTES)


def cheap(html: str, utf8: bytes) -> bytes | None:
    """Return what to parse of a page, given as text and as UTF-8; None if that could take more than some 65 ms."""
    tags = int(np.count_nonzero(np.frombuffer(utf8, np.uint8) == OPENING))  # in half the time of bytes.count
    if len(html) > CHEAP_LENGTH or tags > CHEAP_TAGS:
        return None
    if not _is_small(html, len(utf8)) and (not _has_small_tags(html) or _has_more(_ROOT, html, 2)):
        return None
    plain = _without_formatting(html, tags)
    return utf8 if plain is html else plain.encode()


def _is_small(html: str, size: int) -> bool:
    """Return whether there is no room for attributes that cost much: names of one character are few in ASCII."""
    return len(html) <= SMALL and (2 * len(html) <= SMALL or size - len(html) <= FEW_OTHERS)


def _has_small_tags(html: str) -> bool:
    """Say whether no tag has more attributes than a cheap one; for most pages that takes two quick searches."""
    if not (_LONG_TAG.search(html) or _QUOTED_END.search(html)):
        return True
    return _is_even(html, _CHEAP)


def tame(html: str) -> tuple[list[str], bool]:
    """Take out of a page what would cost the parser too much, and divide it; say whether something is missing."""
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
    """Return a page without its formatting, if there is much; the page itself if not."""
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
    """Return the part before a tag too many."""
    last = next(islice(_TAG.finditer(html), count, None), None) if html.count("<") > count else None
    return html[: last.start()] if last else html

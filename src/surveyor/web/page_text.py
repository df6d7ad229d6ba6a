"""The main text of a page for readers and language models: plain text, Markdown and language.

**Main text.** If the page declares one main region (`main` or `role=main`), all of it is read except navigation
and side bars, and nothing else. On other pages Resiliparse (extra
`text`) removes what looks like navigation, advertisements and the like. Where it keeps less than `LEAST` of the words,
as on tables of contents, all text is kept except marked navigation, headers, footers and side bars.

**Language.** The script decides where it has one language; otherwise Resiliparse detects it. A declared language counts
if the text is short, or if it is among the closest candidates: code and tables of names look like many languages.

Bodies are untrusted. `read_text` may take long for hostile pages: bulk work calls it in a process that can be stopped
(`fetch/parser.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from surveyor.errors import MissingExtra
from surveyor.web.markdown import Block, blocks, to_markdown, to_text
from surveyor.web.markup import decode, tame
from surveyor.web.references import resolve
from surveyor.web.urls import normalise

MOST_TEXT = 2_000_000  # characters of the reduced page
LEAST = 0.3  # share of the words of a page
CONTROL = 0.01  # share of control characters above which a body is not text
DETECTED = 5_000  # characters from which the language is detected
CANDIDATES = 20  # languages
SHORT = 200  # characters: shorter texts have their declared language
NEAR = 1.05  # ratio of the distance to a declared language and to the closest one
_REGION = "main, [role=main]"
_LEFT_OUT = ["nav", "[role=navigation]", "aside", "[role=complementary]", "[role=banner]", "[role=contentinfo]", "form"]
_FIGURE = re.compile(r"<(/?)fig(?:ure|caption)\b", re.IGNORECASE)  # Resiliparse leaves it out, with the code in it
_OUTSIDE = ["header", "footer"]  # within a main region they belong to the content
_SCRIPTS = (  # characters, least share of the letters, languages; the first that applies
    (re.compile(r"[\u3041-\u30ff]"), 0.1, ("ja",)),
    (re.compile(r"[\u1100-\u11ff\uac00-\ud7af]"), 0.2, ("ko",)),
    (re.compile(r"[\u4e00-\u9fff]"), 0.2, ("zh",)),
    (re.compile(r"[\u0370-\u03ff]"), 0.25, ("el",)),
    (re.compile(r"[\u0590-\u05ff]"), 0.25, ("he",)),
    (re.compile(r"[\u0e00-\u0e7f]"), 0.25, ("th",)),
    (re.compile(r"[\u0400-\u04ff]"), 0.25, ("ru", "uk", "bg", "sr", "mk", "be", "kk", "mn", "tg", "ky", "tt", "ba")),
    (re.compile(r"[\u0600-\u06ff]"), 0.25, ("ar", "fa", "ur", "ps", "ug", "sd", "ku")),
)
_BINARY = re.compile("[\0-\x08\x0e-\x1f]")  # invalid bytes may also come from a wrong charset
_REDUCED: dict[str, Any] = {
    "preserve_formatting": "minimal_html",
    "list_bullets": True,
    "alt_texts": False,
    "links": True,
    "comments": False,
    "post_meta": True,  # also "Added in version 2" of a function
}


@dataclass(frozen=True, slots=True)
class PageText:
    """The main text of one page."""

    text: str  # plain, with a blank line between paragraphs
    markdown: str  # CommonMark; headings as on the page; empty if it was not asked for
    language: str = ""  # detected, or as declared; empty if unknown
    cut: bool = False  # the end is missing: the page is too long, or its response was archived in part


def read_text(
    body: bytes,
    url: str,
    headers: Mapping[str, str],
    declared: str = "",
    *,
    demote: int = 0,
    is_markdown: bool = True,
) -> PageText | None:
    """Return the main text of a decoded body; None if it is not text.

    `declared` is the language that the page declares; `demote` lowers the headings by so many levels. Markdown, a fifth
    of the time, is written only with `is_markdown`.
    """
    content_type = headers.get("content-type", "").lower()
    kind = content_type.partition(";")[0].strip()
    is_html = not kind or "html" in kind or kind in ("application/xml", "text/xml")
    if not is_html and not kind.startswith("text/"):
        return None
    decoded = decode(body[: 4 * MOST_TEXT], content_type, declares=is_html).text
    cut = len(body) > 4 * MOST_TEXT
    start = decoded[:50_000]
    if body.startswith(b"%PDF-") or len(_BINARY.findall(start)) > CONTROL * len(start):
        return None
    if is_html:
        found, more = _of_html(decoded, url)
    else:
        lines, more = decoded[:MOST_TEXT].split("\n\n"), len(decoded) > MOST_TEXT
        found = [Block("text", ((" ".join(part.split()), ""),)) for part in lines if part.strip()]
    text = to_text(found)
    markdown = to_markdown(found, demote=demote) if is_markdown else ""
    return PageText(text, markdown, language_of(text, declared), cut or more)


def require_library() -> None:
    """Raise MissingExtra if Resiliparse is not installed."""
    try:
        import resiliparse.extract.html2text  # noqa: F401
    except ImportError as error:
        raise MissingExtra("reading the text of pages", "resiliparse", "text") from error


def _of_html(html: str, url: str) -> tuple[list[Block], bool]:
    """Return the blocks of the main text, and whether a part was left out."""
    pieces, cut = tame(html)
    base, reduced = url, []
    for number, piece in enumerate(pieces):
        region, found_base, is_declared = _region(piece) if len(pieces) == 1 else (piece, "", False)
        base = resolve(found_base, url) or base if number == 0 and found_base else base
        reduced.append(_reduced(region, is_declared=is_declared))
    joined = "\n".join(reduced)
    return blocks(joined[:MOST_TEXT], partial(_absolute, base)), cut or len(joined) > MOST_TEXT


def _region(html: str) -> tuple[str, str, bool]:
    """Return the HTML of the only main region, or else of the page; the base URL; whether a region is declared."""
    from resiliparse.parse.html import HTMLTree

    document: Any = HTMLTree.parse(html).document
    base = document.query_selector("base[href]")
    found = document.query_selector_all(_REGION)
    href: str = base.getattr("href") if base is not None else ""
    if len(found) == 1 and (region := found[0]).text.strip():
        return str(region.html), href, True
    return html, href, False


def _reduced(html: str, *, is_declared: bool) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    html = _FIGURE.sub(r"<\1div", html)
    left_out = _LEFT_OUT + ([] if is_declared else _OUTSIDE)
    whole: str = extract_plain_text(html, main_content=False, skip_elements=left_out, **_REDUCED)
    if is_declared:
        return whole
    main: str = extract_plain_text(html, main_content=True, **_REDUCED)
    return main if len(_words(main)) >= LEAST * len(_words(whole)) else whole


def _words(reduced: str) -> list[str]:
    return re.sub(r"<[^>]*>", " ", reduced).split()


def _absolute(base: str, reference: str) -> str | None:
    url = resolve(reference, base)
    return None if url is None else normalise(url)


def _of_script(sample: str) -> tuple[str, ...]:
    """Return the languages of the script of a text; empty for Latin and for scripts that are not in the table."""
    letters = sum(map(str.isalpha, sample)) or 1
    return next((found for pattern, share, found in _SCRIPTS if len(pattern.findall(sample)) > share * letters), ())


def language_of(text: str, declared: str = "") -> str:
    """Return the language of a text as a code of two or three letters; empty if it is unknown.

    >>> language_of("", "de-AT")
    'de'
    """
    own = re.split(r"[-_]", declared.strip().lower())[0]
    own = own if own.isascii() and own.isalpha() and len(own) in (2, 3) else ""
    sample = " ".join(text[:DETECTED].split())
    candidates = _of_script(sample)
    if len(candidates) == 1:
        return candidates[0]
    if len(sample) < SHORT and own:
        return own
    from resiliparse.parse.lang import detect_fast

    closest: Any = detect_fast(sample, n_results=CANDIDATES, langs=candidates or None)
    if not sample or not closest:
        return own
    best, distance = closest[0]
    if own and any(code == own and rank <= NEAR * distance for code, rank in closest):
        return own
    return str(best)

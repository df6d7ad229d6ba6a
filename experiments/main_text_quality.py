"""Precision and recall of main-text extraction on real pages whose main content is known.

    pip install trafilatura readability-lxml
    python -m experiments.main_text_quality FOLDER... --pages 60

The pages are HTML files of documentation, whose theme marks the main content with an element that `MAIN` knows
(Sphinx, mdBook, rustdoc, Node.js, DocBook). Its visible text, without scripts and permalinks, is the truth. Then that
element and its ancestors lose their names, classes, ids and roles, so that no library can find it by its marker; with
`--marked` the page stays as it is. Everything else on the page is boilerplate.

Precision is the share of the extracted words that are in the truth, recall the share of its words that are extracted,
both as multisets; the means are over pages, so that each page counts once. The libraries see the same pages, in turn.
Pages with fewer than 30 words of main content are left out, and the rest is drawn uniformly, per folder.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from surveyor.web.html import read_page
from surveyor.web.markup import decode, tame

Extract = Callable[[str], str]
MAIN = (
    "div.body[role=main]",  # Sphinx
    "#apicontent",  # Node.js
    "#main-content",  # rustdoc
    "main",  # mdBook
    "[role=main]",
    "div.chapter, div.refentry, div.sect1, div.appendix, div.preface, div.article",  # DocBook
)
NOT_TEXT = "script, style, noscript, template, a.headerlink, a.anchor, button, nav, .navheader, .navfooter"
FEWEST, LONGEST = 100, 300_000  # words of the main content, characters of a page
URL = "https://example.org/page"


class Case(NamedTuple):
    """A page and the words of its main content."""

    source: str
    html: str
    truth: Counter[str]


class Score(NamedTuple):
    """The result of one library on one page."""

    source: str
    precision: float
    recall: float
    seconds: float


def words(text: str) -> Counter[str]:
    """Count the words of a text."""
    return Counter(re.findall(r"\w+", text.lower()))


def case_of(html: str, source: str, *, marked: bool) -> Case | None:
    """Return a page with its truth; None if its theme is not known or it has little content."""
    tree = LexborHTMLParser(html)
    found = next((nodes for selector in MAIN if len(nodes := tree.css(selector)) == 1), None)
    if found is None or tree.body is None:
        return None
    copy = LexborHTMLParser(found[0].html or "")
    for hidden in copy.css(NOT_TEXT):
        hidden.decompose()
    truth = words(copy.body.text(separator=" ") if copy.body else "")
    if truth.total() < FEWEST:
        return None
    if not marked:
        node: LexborNode | None = found[0]
        while node is not None and node.tag not in ("body", "html"):
            for name in list(node.attributes):
                del node.attrs[name]
            node = node.parent
        html = re.sub(r"<(/?)main\b", r"<\1div", tree.html or "")
    return Case(source, html, truth)


def cases(folder: Path, count: int, rng: random.Random, *, marked: bool) -> Iterator[Case]:
    """Yield pages of a folder, drawn uniformly."""
    paths = sorted(path for path in folder.rglob("*.html") if path.stat().st_size <= LONGEST)
    rng.shuffle(paths)
    for path in paths:
        if count and (case := case_of(decode(path.read_bytes()).text, _name(folder), marked=marked)):
            count -= 1
            yield case


def _name(folder: Path) -> str:
    """Return the name of a folder, and that of the one above it if it says nothing."""
    return folder.parent.name if folder.name in ("html", "api") else folder.name


def _visible(html: str) -> str:
    return read_page(html.encode(), URL).text


def _resiliparse() -> Extract:
    extract = import_module("resiliparse.extract.html2text").extract_plain_text
    return lambda html: str(extract(html, main_content=True, list_bullets=False, alt_texts=False))


def _surveyor() -> Extract:
    read = import_module("surveyor.web.page_text").read_text

    def extract(html: str) -> str:
        found = read(html.encode(), URL, {"content-type": "text/html; charset=utf-8"})
        return found.text if found else ""

    return extract


def _trafilatura(**settings: bool) -> Extract:
    extract = import_module("trafilatura").extract
    return lambda html: extract(html, include_comments=False, **settings) or ""


def _readability() -> Extract:
    fromstring, document = import_module("lxml.html").fromstring, import_module("readability").Document
    return lambda html: str(fromstring(document(html).summary()).text_content())


LIBRARIES: dict[str, Callable[[], Extract]] = {
    "all visible text": lambda: _visible,
    "Resiliparse": _resiliparse,
    "surveyor": _surveyor,
    "trafilatura": _trafilatura,
    "trafilatura, favor_recall": lambda: _trafilatura(favor_recall=True),
    "trafilatura, favor_precision": lambda: _trafilatura(favor_precision=True),
    "readability-lxml": _readability,
}


def scored(case: Case, extract: Extract) -> Score:
    """Compare the text that a library extracts with the truth."""
    html = "".join(tame(case.html)[0])  # as a crawl bounds it
    start = time.process_time()
    found = words(extract(html))
    seconds = time.process_time() - start
    both = (found & case.truth).total()
    return Score(case.source, both / max(found.total(), 1), both / case.truth.total(), seconds)


def main() -> None:
    """Print a table of all libraries, and one by source."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=60, help="pages of each folder")
    parser.add_argument("--marked", action="store_true", help="keep the markers of the main content")
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    rng = random.Random(given.rng)  # noqa: S311  # not for secrets
    pages = [case for folder in given.folders for case in cases(folder, given.pages, rng, marked=given.marked)]
    sources = Counter(case.source for case in pages)
    print(f"{len(pages)} pages:", ", ".join(f"{name} {count}" for name, count in sources.items()))
    print("\n| library | precision | recall | F1 | worst tenth of F1 | ms per page: mean, median |")
    print("|---|--:|--:|--:|--:|--:|")
    by_source: dict[str, list[str]] = {}
    for name, load in LIBRARIES.items():
        try:
            extract = load()
        except ImportError:
            continue
        extract(pages[0].html)
        scores = [scored(case, extract) for case in pages]
        shares = sorted(_f1(one) for one in scores)
        seconds = [one.seconds for one in scores]
        print(
            f"| {name} | {mean(one.precision for one in scores):.3f} | {mean(one.recall for one in scores):.3f} "
            f"| {mean(shares):.3f} | {mean(shares[: max(1, len(shares) // 10)]):.3f} "
            f"| {1e3 * mean(seconds):.1f}, {1e3 * median(seconds):.1f} |"
        )
        by_source[name] = [
            f"{mean(one.precision for one in scores if one.source == source):.2f}, "
            f"{mean(one.recall for one in scores if one.source == source):.2f}"
            for source in sources
        ]
    print(f"\nprecision, recall:\n\n| library | {' | '.join(sources)} |\n|---|{'--:|' * len(sources)}")
    for name, cells in by_source.items():
        print(f"| {name} | {' | '.join(cells)} |")


def _f1(score: Score) -> float:
    return 2 * score.precision * score.recall / max(score.precision + score.recall, 1e-9)


if __name__ == "__main__":
    main()

"""Compare libraries that extract the main text of a page: as the basis of a hash that changes only with the content.

    pip install trafilatura resiliparse readability-lxml jusText
    python -m experiments.main_text FOLDER_OR_WARC... --pages 60

Each page is changed in two ways, with markup that a random generator inserts:

- *boilerplate*: both versions have the inserted element, with other values: a generation time, the date, a sidebar of
  random teasers, a counter of comments and views, a navigation with one other entry, session ids in all links, a nonce
  in a script. A good text is the same for both.
- *content*: a sentence, a word or a number in a text outside of `nav`, `header`, `footer`, `aside` and `form` is
  replaced, or a paragraph is added after one. A good text differs. Texts of at least 40 characters are drawn uniformly,
  in `p` and elsewhere separately (elsewhere also in unmarked side bars: 100 % is not the goal there).

The inserted elements are marked as pages mark them (`<div class="sidebar">`, `<nav>`), and half of the times and
counters are not marked at all (`<p>`).

Each library runs in a process of its own, on text that is decoded and bounded as in a crawl (`markup.decode`, `tame`).
Hostile pages (`tests/attacks/hostile_pages.py`) run one by one, in a process that may take 10 seconds and 1 GiB.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Any

from surveyor.web.markup import decode, tame

Extract = Callable[[str], str]
REQUIRES = {
    "visible text": (),
    "visible text, tags left out": (),
    "resiliparse": ("resiliparse",),
    "resiliparse, masked": ("resiliparse",),
    "trafilatura": ("trafilatura",),
    "trafilatura, fast": ("trafilatura",),
    "readability": ("readability-lxml",),
    "jusText": ("jusText",),
}
OURS = {"selectolax", "click", "charset-normalizer"}  # installed with surveyor anyway
HOSTILE_SECONDS, HOSTILE_MEMORY = 10, 1 << 30
LONGEST = 100_000  # characters of a page
WORDS = ["river", "window", "morning", "paper", "garden", "silver", "engine", "letter", "market", "bridge", "winter"]


def extractor(name: str) -> Extract:
    """Return the function of a library from HTML to text."""
    return {
        "visible text": _visible,
        "visible text, tags left out": _outside,
        "resiliparse": _resiliparse,
        "resiliparse, masked": _masked,
        "trafilatura": _trafilatura,
        "trafilatura, fast": _trafilatura_fast,
        "readability": _readability,
        "jusText": _justext,
    }[name]()


def _library(name: str) -> Any:
    return importlib.import_module(name)


def _visible() -> Extract:
    from surveyor.web.html import read_page

    return lambda html: read_page(html.encode(), "https://example.org/").text


def _outside() -> Extract:
    from selectolax.lexbor import LexborHTMLParser

    left_out = "nav, header, footer, aside, form, script, style, noscript, template, iframe, [role=navigation]"

    def extract(html: str) -> str:
        tree = LexborHTMLParser(html)
        for node in tree.css(left_out):
            node.decompose()
        return " ".join(tree.body.text(separator=" ").split()) if tree.body else ""

    return extract


def _resiliparse() -> Extract:
    extract_plain_text = _library("resiliparse.extract.html2text").extract_plain_text

    return lambda html: extract_plain_text(
        html,
        preserve_formatting=False,
        main_content=True,
        list_bullets=False,
        alt_texts=False,
        comments=False,
        post_meta=False,
    )


def _masked() -> Extract:
    from surveyor.web.main_text import without_timestamps

    extract = _resiliparse()
    return lambda html: without_timestamps(extract(html))


def _trafilatura() -> Extract:
    trafilatura = _library("trafilatura")

    return lambda html: trafilatura.extract(html, include_comments=False, favor_recall=True) or ""


def _trafilatura_fast() -> Extract:
    trafilatura = _library("trafilatura")

    return lambda html: trafilatura.extract(html, include_comments=False, favor_recall=True, fast=True) or ""


def _readability() -> Extract:
    fromstring, document = _library("lxml.html").fromstring, _library("readability").Document

    return lambda html: " ".join(fromstring(document(html).summary()).text_content().split())


def _justext() -> Extract:
    justext = _library("justext")

    stop = justext.get_stoplist("English")
    return lambda html: " ".join(p.text for p in justext.justext(html.encode(), stop) if not p.is_boilerplate)


def pages(place: Path) -> Iterator[str]:
    """Yield the HTML pages of a folder or of a WARC file."""
    if place.is_dir():
        for path in sorted(filter(Path.is_file, place.rglob("*.html"))):
            yield decode(path.read_bytes()).text
        return
    with place.open("rb") as file:
        for record in _library("warcio").ArchiveIterator(file):
            head = record.http_headers
            kind = (head.get_header("content-type") or "") if record.rec_type == "response" and head else ""
            if "html" in kind and head.get_statuscode() == "200":
                yield decode(record.content_stream().read(), kind).text


def sample(place: Path, count: int, rng: random.Random) -> list[str]:
    """Return random pages of a source with at most 100,000 characters, more than 200 of them in `p` elements."""
    few = (html for html in islice(pages(place), 2000) if len(html) <= LONGEST)
    found = [html for html in few if sum(map(len, re.findall(r"<p\b[^>]*>([^<]+)", html))) > 200]
    return rng.sample(found, min(count, len(found)))


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=9)).capitalize() + "."


def _into_body(html: str, *, top: str = "", end: str = "") -> str:
    opened = re.search(r"<body\b[^>]*>", html, re.IGNORECASE)
    start = opened.end() if opened else 0
    html = html[:start] + top + html[start:]
    closed = html.lower().rfind("</body")
    return html[:closed] + end + html[closed:] if closed >= 0 else html + end


def _time(rng: random.Random) -> str:
    return f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}"


BOILERPLATE: dict[str, Callable[[str, random.Random], str]] = {
    "time in a footer": lambda html, rng: _into_body(
        html, end=f'<div id="footer">Page generated on {_time(rng)} in {rng.randint(1, 99)} ms</div>'
    ),
    "time in a paragraph": lambda html, rng: _into_body(html, end=f"<p>Generated {_time(rng)}</p>"),
    "date at the top": lambda html, rng: _into_body(
        html, top=f'<div class="header"><span class="date">{_time(rng)}</span></div>'
    ),
    "sidebar": lambda html, rng: _into_body(
        html,
        end='<div class="sidebar"><h3>Most read</h3><ul>'
        + "".join(f'<li><a href="/{rng.randrange(9999)}">{_sentence(rng)}</a></li>' for _ in range(6))
        + "</ul></div>",
    ),
    "advertisement": lambda html, rng: _into_body(
        html, top=f'<div class="ad banner"><a href="/ad?{rng.randrange(9999)}">{_sentence(rng)}</a></div>'
    ),
    "counters": lambda html, rng: _into_body(
        html,
        end=f'<div class="comments"><a href="#c">{rng.randrange(999)} comments</a>, {rng.randrange(9999)} views</div>',
    ),
    "counter in a paragraph": lambda html, rng: _into_body(html, end=f"<p>{rng.randrange(9999)} visitors</p>"),
    "navigation": lambda html, rng: _into_body(
        html,
        top="<nav><ul>"
        + "".join(f'<li><a href="/{word}">{word.title()}</a></li>' for word in [*WORDS[:6], rng.choice(WORDS[6:])])
        + "</ul></nav>",
    ),
    "session ids": lambda html, rng: re.sub(
        r"""(<a\b[^>]*href=["'])([^"'#]+)""", rf"\1\2?sid={rng.getrandbits(64):x}", html
    ),
    "script": lambda html, rng: _into_body(html, end=f"<script>var nonce = '{rng.getrandbits(64):x}';</script>"),
}
_TEXT = re.compile(r"<(p|li|dd|td|pre|div|span|b|a)\b[^>]*>([^<]{40,})", re.IGNORECASE)
_ASIDE = re.compile(r"<(nav|header|footer|aside|form|script|style|title)\b.*?</\1", re.IGNORECASE | re.DOTALL)


def content_changes(html: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the name of a change of the content, and the page changed."""
    hidden = [found.span() for found in _ASIDE.finditer(html)]
    texts = [f for f in _TEXT.finditer(html) if not any(start <= f.start() < end for start, end in hidden)]
    for name, wanted in (("sentence in p", True), ("text elsewhere", False)):
        some = [found for found in texts if (found[1].lower() == "p") == wanted]
        if some:
            chosen = rng.choice(some)
            text = chosen[2]
            end = text.find(". ") + 1 or len(text)
            yield name, html[: chosen.start(2)] + _sentence(rng) + text[end:] + html[chosen.end() :]
            words = text.split(" ")
            longest = max(range(len(words)), key=lambda at: len(words[at]))
            words[longest] = rng.choice(WORDS)
            yield f"word: {name}", html[: chosen.start(2)] + " ".join(words) + html[chosen.end() :]
    numbers = [
        n
        for n in re.finditer(r"<p\b[^>]*>[^<]*?\b(\d+)\b", html, re.IGNORECASE)
        if not any(start <= n.start() < end for start, end in hidden)
    ]
    if numbers:
        chosen = rng.choice(numbers)
        yield "number in p", html[: chosen.start(1)] + str(int(chosen[1][:9]) + 1) + html[chosen.end(1) :]
    ends = [found.end() for found in re.finditer(r"</p>", html, re.IGNORECASE)]
    inside = [end for end in ends if not any(start <= end < stop for start, stop in hidden)]
    if inside:
        end = rng.choice(inside)
        yield "paragraph added", f"{html[:end]}<p>{_sentence(rng)} {_sentence(rng)}</p>{html[end:]}"


def bounded(html: str) -> str:
    """Return a page as a crawl would pass it to an extractor."""
    return "".join(tame(html)[0])


def measure(name: str, places: list[Path], count: int, seed: int) -> dict[str, object]:
    """Measure one library; called in a process of its own."""
    extract = extractor(name)
    rng = random.Random(seed)  # noqa: S311  # not for secrets
    chosen = [bounded(html) for place in places for html in sample(place, count, rng)]
    extract(chosen[0])
    before, seconds, texts, errors = _memory(), [], [], 0
    for html in chosen:
        start = time.process_time()
        try:
            texts.append(extract(html))
        except Exception:
            errors += 1
            texts.append("")
        seconds.append(time.process_time() - start)
    memory = _memory() - before
    same: dict[str, list[bool]] = {kind: [] for kind in BOILERPLATE}
    seen: dict[str, list[bool]] = {}
    for html, text in zip(chosen, texts, strict=True):
        for kind, change in BOILERPLATE.items():
            one, other = (_text(extract, change(html, rng)) for _ in range(2))
            same[kind].append(one == other)
        for kind, changed in content_changes(html, rng):
            seen.setdefault(kind, []).append(_text(extract, changed) != text)
    return {
        "pages": len(chosen),
        "ms": [1e3 * median(seconds), 1e3 * mean(seconds), 1e3 * sorted(seconds)[int(0.99 * len(seconds))]],
        "memory": memory,
        "errors": errors,
        "empty": sum(not text.strip() for text in texts) / len(texts),
        "same": {kind: mean(found) for kind, found in same.items()},
        "seen": {kind: mean(found) for kind, found in seen.items()},
    }


def _text(extract: Extract, html: str) -> str:
    try:
        return extract(html)
    except Exception:
        return ""


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def hostile(name: str, number: int, *, raw: bool) -> None:
    """Extract the text of one hostile page, and exit."""
    from hostile_pages import hostile_pages

    _, body, headers = next(islice(hostile_pages(), number, None))
    extract = extractor(name)
    extract("<p>warm up</p>" * 10)
    text = decode(body, headers.get("content-type", "")).text
    html = text if raw else bounded(text)
    taken = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + HOSTILE_MEMORY,) * 2)
    start = time.process_time()
    try:
        extract(html)
    except MemoryError:
        sys.exit(4)
    except Exception:
        sys.exit(3)
    print(time.process_time() - start)


def hostile_results(name: str, *, raw: bool) -> dict[str, int | float]:
    """Count what hostile pages do to a library: exceptions, crashes, pages that take too long."""
    sys.path.insert(0, "tests/attacks")
    from hostile_pages import hostile_pages

    results: dict[str, int | float] = {
        "pages": 0,
        "exceptions": 0,
        "memory": 0,
        "crashes": 0,
        "too long": 0,
        "max s": 0.0,
    }
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "tests/attacks"])}
    for number, _ in enumerate(hostile_pages()):
        results["pages"] += 1
        command = [sys.executable, "-m", "experiments.main_text", "--hostile", name, str(number), *(["--raw"] * raw)]
        try:
            ended = subprocess.run(command, env=env, capture_output=True, timeout=HOSTILE_SECONDS + 3, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            results["too long"] += 1
            continue
        if ended.returncode in (3, 4):
            results["exceptions" if ended.returncode == 3 else "memory"] += 1
        elif ended.returncode != 0:
            results["crashes"] += 1
        else:
            results["max s"] = max(results["max s"], float(ended.stdout))
    return results


def installed(names: tuple[str, ...]) -> tuple[int, float]:
    """Return the number of packages that a library adds to those of surveyor, and their megabytes."""
    seen: set[str] = set()
    ahead = list(names)
    while ahead:
        name = re.sub(r"[-_.]+", "-", ahead.pop()).lower()
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        if name in seen or name in OURS:
            continue
        seen.add(name)
        needed = (line for line in found.requires or () if "extra ==" not in line)
        ahead += [re.split(r"[\s;<>=!\[(~]", line, maxsplit=1)[0] for line in needed]
    files = [file.locate() for name in seen for file in distribution(name).files or ()]
    return len(seen), sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file()) / 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("places", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, default=60, help="pages of each source")
    parser.add_argument("--rng", type=int, default=7)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--hostile", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", choices=list(REQUIRES), help="a library; repeat it for more")
    parser.add_argument("--without-hostile", action="store_true")
    given = parser.parse_args()
    if given.hostile:
        hostile(given.hostile[0], int(given.hostile[1]), raw=given.raw)
    elif given.one:
        print(json.dumps(measure(given.one, given.places, given.pages, given.rng)))
    else:
        _tables(given)


def _tables(given: argparse.Namespace) -> None:
    results: dict[str, dict[str, object]] = {}
    for name in given.only or REQUIRES:
        sys.stderr.write(f"{name}\n")
        places = map(str, given.places)
        command = [sys.executable, "-m", "experiments.main_text", "--one", name, *places, "--pages", str(given.pages)]
        ended = subprocess.run([*command, "--rng", str(given.rng)], capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode:
            sys.stderr.write(ended.stderr[-500:])
            continue
        results[name] = json.loads(ended.stdout)
    print("| library | packages, MB | ms per page: median, mean, 99 % | memory, MB | errors | empty | same | changed |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, found in results.items():
        packages, size = installed(REQUIRES[name])
        same, seen = (list(found[part].values()) for part in ("same", "seen"))  # type: ignore[attr-defined]
        ms = ", ".join(f"{value:.2f}" for value in found["ms"])  # type: ignore[attr-defined]
        print(
            f"| {name} | {packages}, {size:.1f} | {ms} | {found['memory'] / 1e6:.0f} | {found['errors']} "  # type: ignore[operator]
            f"| {found['empty']:.1%} | {mean(same):.1%} | {mean(seen):.1%} |"
        )
    for part, title in (("same", "unchanged text, by what changes in the boilerplate"), ("seen", "changed text")):
        kinds = list(dict.fromkeys(kind for found in results.values() for kind in found[part]))  # type: ignore[attr-defined]
        print(f"\n{title}:\n\n| | {' | '.join(results)} |\n|---|{'--:|' * len(results)}")
        for kind in kinds:
            print(f"| {kind} | {' | '.join(f'{found[part][kind]:.0%}' for found in results.values())} |")  # type: ignore[index]
    if not given.without_hostile:
        print("\nhostile pages, as a crawl passes them (and as received):\n\n| library | counts |\n|---|---|")
        for name in results:
            counts = [hostile_results(name, raw=raw) for raw in (False, True)]
            print(f"| {name} | {counts[0]} ({counts[1]}) |")


if __name__ == "__main__":
    main()

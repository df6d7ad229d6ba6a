"""A documentation site as files: about 22 KB and 50 links a page, the same each time.

Pages lie in chapters of uneven sizes and link as the pages of documentation do, by relative addresses: a menu of
chapters, the contents of their own chapter around them, the page before and after, places on the page itself, a few
other sites, and words in the text that lead to what others link to already (preferential attachment).
"""

from __future__ import annotations

import posixpath
import random
import re
from dataclasses import dataclass
from pathlib import Path

PAGES, SIZE = 4_000, 22_000  # pages; bytes of each, about
MENU, AROUND, SEE_ALSO, ELSEWHERE, HERE = 12, 18, 14, 2, 3  # links of a page by kind; there is one before and one after
WORDS = re.findall(
    r"\w+",
    """
    a an the of to in is for on with as by this that which when each from be are can may must not all any one only
    value values function method object objects module class argument arguments returns return called default list
    string number file files name names option options type types set given used use see also example note page
    request server client header error raised if else then other between first last next before after index table
""",
)
ROBOTS = "User-agent: *\nDisallow: /search\nDisallow: /*?highlight=\nDisallow: /_sources/\nAllow: /\n"
CODE = '>>> client = Client("https://example.org/", timeout=5)\n>>> client.send(request).status\n200\n'


@dataclass(frozen=True)
class Site:
    """Where each page lies, and the pages that it links to."""

    paths: list[str]
    links: list[list[int]]


def plan(pages: int = PAGES) -> Site:
    """Say which pages there are and how they link; every page can be reached from the first."""
    draw = random.Random(7)  # noqa: S311
    paths, chapters = ["index.html"], [0]
    while len(paths) < pages:
        size = min(int(20 * draw.paretovariate(1.1)), 400, pages - len(paths))
        number = len(chapters)
        chapters.append(len(paths))
        part = f"part{number % 7}/chapter{number}"
        paths += [f"{part}/index.html", *(f"{part}/page{page}.html" for page in range(1, size))]
    popular, links = list(range(min(pages, 50))), []
    for chapter, (first, last) in enumerate(zip(chapters, [*chapters[1:], pages], strict=True)):
        menu = chapters[max(0, chapter - 2) : chapter + MENU - 2]
        for page in range(first, last):
            start = max(first, min(page - AROUND // 2, last - AROUND))
            chosen = [*menu, *range(start, min(start + AROUND, last)), max(page - 1, 0), (page + 1) % pages]
            chosen += [draw.choice(popular) for _ in range(SEE_ALSO - 4)] + [draw.randrange(pages) for _ in range(4)]
            popular += chosen[-SEE_ALSO:]
            links.append(chosen)
    return Site(paths, links)


def write(site: Site, folder: Path) -> None:
    """Write all pages, and a robots.txt that forbids none of them."""
    (folder / "robots.txt").write_text(ROBOTS, "utf-8")
    for path in {posixpath.dirname(path) for path in site.paths}:
        (folder / path).mkdir(parents=True, exist_ok=True)
    for page, path in enumerate(site.paths):
        (folder / path).write_bytes(render(site, page))


def render(site: Site, page: int) -> bytes:
    """Return a page as HTML."""
    draw, here = random.Random(page), site.paths[page]  # noqa: S311
    base, title = posixpath.dirname(here) or ".", f"{page}. {' '.join(draw.choices(WORDS, k=4)).title()}"

    def anchor(goal: int) -> str:
        words = " ".join(draw.choices(WORDS, k=2))
        return f'<a class="reference internal" href="{posixpath.relpath(site.paths[goal], base)}">{words}</a>'

    links = site.links[page]
    around, inside = links[:-SEE_ALSO], [anchor(goal) for goal in links[-SEE_ALSO:]]
    inside += [f'<a class="headerlink" href="#section-{at}">¶</a>' for at in range(HERE)]
    inside += [f'<a href="https://www.example{at}.org/wiki/{draw.choice(WORDS)}">wiki</a>' for at in range(ELSEWHERE)]
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<link rel="stylesheet" href="/static/style.css">\n<meta name="viewport" content="width=device-width">\n'
        '</head>\n<body>\n<div class="sidebar" role="navigation">\n<ul>',
        *(f'<li class="toctree-l1">{anchor(goal)}</li>' for goal in around),
        f'</ul>\n</div>\n<div class="body" role="main">\n<h1>{title}</h1>',
    ]
    size = sum(map(len, parts)) + sum(map(len, inside))
    for at in range(1000):
        if size > SIZE and not inside:
            break
        words = draw.choices(WORDS, k=60)
        if inside:
            words.insert(30, inside.pop())
        text = f'<p id="text-{at}">{" ".join(words).capitalize()}.</p>'
        if at % 4 == 1:
            text = f'<h2 id="section-{at // 4}">{" ".join(words[:3])}</h2>\n{text}\n<pre class="code">{CODE}</pre>'
        parts.append(text)
        size += len(text)
    parts.append("</div>\n</body>\n</html>\n")
    return "\n".join(parts).encode()

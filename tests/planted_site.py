"""A site with planted faults of every kind, and the list of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fake_web import Sites, Time, crawled, moved, page
from surveyor.crawler.seed_pages import SeedPages
from surveyor.fetch.http import Fetched, Timings

HOME = "https://a.example/"
ORPHANS = ("orphan", "listed-gone", "listed-moved", "listed-noindex")


def words(name: str, count: int = 60) -> str:
    """Return a text of words that no other page has."""
    return " ".join(f"{name}word{number}" for number in range(count))


def good(path: str, body: str = "", head: str = "", *, title: str | None = None, text: str | None = None) -> str:
    """Return a page without faults, with more elements in its body and head."""
    title = f"Title of {path or 'home'}" if title is None else title
    text = words(path.replace("-", "") or "home") if text is None else text
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title>"
        f'<meta name=description content="About {path or "home"}">{head}</head>\n'
        f"<body><h1 id=top-{path}>{title or path}</h1>\n<main><p>{text}</p>\n{body}\n</main></body></html>"
    )


def canonical(path: str) -> str:
    return f'<link rel=canonical href="{HOME}{path}">'


def hreflang(language: str, path: str) -> str:
    return f'<link rel=alternate hreflang={language} href="{HOME}{path}">'


LINKS = re.findall(
    r"\S+",
    """broken chain-one once loop-one fails fragments mixed secure-source hidden untitled same-a same-b undescribed
    described-a described-b unheaded near-a near-b thin d1 slow heavy script canon-two canon-gone canon-noindex
    canon-loop-a canon-loop-b english german french source""",
)
MENU = "".join(f'<p><a href="/{path}">to {path}</a></p>\n' for path in LINKS)
NEAR = words("near", 400)
PAGES = {
    "": good("", MENU),
    "source": good("source", '<a href="/broken">Second link</a>\n<a href="/moved-to-gone">Old manual</a>'),
    "target": good("target"),
    "fragments": good(
        "fragments", '<a href="/target#top-target">ok</a><a href="#top">ok</a><a\nhref="/target#none">x</a>'
    ),
    "mixed": good("mixed", '<img alt="" src="http://a.example/i.png"><script src="http://a.example/s.js"></script>'),
    "secure-source": good("secure-source", '<a href="http://a.example/plain">plain</a>'),
    "hidden": good("hidden", head="<meta name=robots content=noindex>"),
    "untitled": good("untitled", title=""),
    "same-a": good("same-a", title="The same"),
    "same-b": good("same-b", title="The Same"),
    "undescribed": good("undescribed").replace('content="About undescribed"', "content=''"),
    "described-a": good("described-a").replace("About described-a", "One description"),
    "described-b": good("described-b").replace("About described-b", "One description"),
    "unheaded": good("unheaded").replace("h1", "h2"),
    "near-a": good("near-a", text=NEAR),
    "near-b": good("near-b", text=NEAR + " changed"),
    "thin": good("thin", text="few words"),
    **{f"d{depth}": good(f"d{depth}", f'<a href="/d{depth + 1}">deeper</a>') for depth in range(1, 5)},
    "d5": good("d5", '<a href="/d5-more">more</a>'),
    "d5-more": good("d5-more", '<a href="/d5">back</a>'),
    "slow": good("slow"),
    "heavy": good("heavy", f"<!-- {'x' * 1_000_001} -->"),
    "script": "<!doctype html><title>App</title><body><div id=root></div><script src=/app.js></script></body>",
    "canon-two": good("canon-two", head=canonical("canon-two") + canonical("target")),
    "canon-gone": good("canon-gone", head=canonical("gone-canonical")),
    "canon-noindex": good("canon-noindex", head=canonical("hidden")),
    "canon-loop-a": good("canon-loop-a", head=canonical("canon-loop-b")),
    "canon-loop-b": good("canon-loop-b", head=canonical("canon-loop-a")),
    "english": good("english", head=hreflang("de", "german") + hreflang("fr", "french")),
    "german": good("german", head=hreflang("en", "english")),
    "french": good("french"),
    "orphan": good("orphan"),
    "listed-noindex": good("listed-noindex", head="<meta name=robots content=noindex>"),
    "new": good("new"),
    "plain": good("plain"),
}

#: rule -> URLs that it is found on, without the host
PLANTED: dict[str, set[str]] = {
    "broken-link": {"broken", "moved-to-gone"},
    "failing-link": {"fails"},
    "redirect-loop": {"loop-one"},
    "redirect-chain": {"chain-one"},
    "redirected-link": {"once"},
    "missing-fragment": {"target#none"},
    "insecure-link": {"http://a.example/plain"},
    "mixed-content": {"http://a.example/i.png", "http://a.example/s.js"},
    "sitemap-error": {"listed-gone", "listed-moved", "listed-noindex"},
    "canonical-conflict": {"canon-two", "canon-gone", "canon-noindex", "canon-loop-a", "canon-loop-b"},
    "linked-noindex": {"hidden"},
    "hreflang-return": {"english"},
    "missing-title": {"untitled"},
    "duplicate-title": {"same-a"},
    "missing-description": {"undescribed"},
    "duplicate-description": {"described-a"},
    "missing-heading": {"unheaded"},
    "near-duplicate": {"near-a"},
    "thin-page": {"thin"},
    "deep-page": {"d5", "d5-more"},
    "slow-page": {"slow"},
    "heavy-page": {"heavy"},
    "needs-javascript": {"script"},
}


def answers(*, fails: bool = True) -> dict[str, Any]:
    """Return the responses of the site."""
    found: dict[str, Any] = {HOME + path: page(HOME + path, extra=html) for path, html in PAGES.items()}
    slow = found[HOME + "slow"]
    found[HOME + "slow"] = page(slow.url, extra=PAGES["slow"], timings=Timings(total=3.5))
    moves = {
        "chain-one": "chain-two",
        "chain-two": "new",
        "once": "new",
        "loop-one": "loop-two",
        "loop-two": "loop-one",
    }
    moves |= {"moved-to-gone": "broken", "listed-moved": "new"}
    found |= {HOME + path: moved(HOME + path, f"/{goal}") for path, goal in moves.items()}
    found["http://a.example/plain"] = page("http://a.example/plain", extra=PAGES["plain"])
    if fails:
        found[HOME + "fails"] = Fetched(HOME + "fails", 500)
    else:
        found |= {HOME + name: page(HOME + name, extra=good(name)) for name in ("fails", "script")}
    return found


def survey_of(path: Path, *, fails: bool = True, **settings: Any) -> Path:
    """Crawl the site completely."""
    seeds: Any = SeedPages.of({HOME: 1.0, **{HOME + name: 0.0 for name in ORPHANS}})
    crawled(path, seeds, Sites(Time(), answers(fails=fails)), backoff=1.0, delay=1.0, scope="host", **settings)
    return path

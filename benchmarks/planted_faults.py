"""Faults of every rule of `surveyor check`, planted into a static site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

AT = "audit/"  # folder of the planted pages
MOST_REAL = 40  # pages that the home page links, to choose some of them
SLOW = 2.6  # seconds
SCRIPT = b"<!doctype html><title>App</title><body><div id=root></div><script src=app.js></script></body>"
ORPHANS = ("orphan", "listed-gone", "listed-moved", "listed-noindex")
MOVES = {
    "chain-one": "chain-two",
    "chain-two": "new",
    "once": "new",
    "loop-one": "loop-two",
    "loop-two": "loop-one",
    "moved-to-gone": "none",
    "listed-moved": "new",
}
LINKED = re.findall(
    r"\S+",
    """none other-none gone moved-to-gone chain-one once loop-one fragments hidden untitled same-a same-b undescribed
    described-a described-b unheaded near-a near-b copy thin d1 slow heavy canon-two canon-gone canon-noindex
    canon-loop-a canon-loop-b english german french new target media""",
)


class Reply(NamedTuple):
    """What the server answers for a path."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    location: str = ""
    delay: float = 0.0


class Plan(NamedTuple):
    """The planted faults (rule, and URL or path), and the answers that differ from the files of the site."""

    expected: tuple[tuple[str, str], ...]
    replies: Mapping[str, Reply]


def words(name: str, count: int = 60) -> str:
    """Return a text of words that no other page has."""
    return " ".join(f"{name.replace('-', '')}word{number}" for number in range(count))


def page(path: str, body: str = "", head: str = "", *, title: str | None = None, text: str | None = None) -> str:
    """Return a page without faults, with more elements in its body and head."""
    title = f"Title of {path}" if title is None else title
    body += "" if path.startswith("d") else "\n<p><a href=d1>more</a></p>"  # so that the chain of pages is important
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title>"
        f'<meta name=description content="About {path}">{head}</head>\n'
        f"<body><h1 id=top-{path}>{title or path}</h1>\n<main><p>{words(path) if text is None else text}</p>\n{body}\n"
        "</main></body></html>"
    )


def plan(root: Path, base: str, other: str, *, secure: bool, fails: bool) -> Plan:
    """Plant faults into the site of a folder that is served at `base`; `other` is the URL of another site."""
    new = {f"{AT}{name}": Reply(body=html.encode()) for name, html in _pages(base, other).items()}
    new |= {f"{AT}{name}": Reply(302, location=f"/{AT}{goal}") for name, goal in MOVES.items()}
    new[f"{AT}gone"] = Reply(410)
    new[f"{AT}slow"] = new[f"{AT}slow"]._replace(delay=SLOW)
    listed = "".join(f"<url><loc>{base}{AT}{name}</loc></url>" for name in ORPHANS)
    start = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    new["sitemap.xml"] = Reply(body=f"{start}{listed}</urlset>".encode(), kind="application/xml")
    new["robots.txt"] = Reply(
        body=f"User-agent: *\nDisallow:\nSitemap: {base}sitemap.xml\n".encode(), kind="text/plain"
    )
    expected = [*EXPECTED, ("external-broken", f"{other}none")]
    menu = [f"/{AT}{name}" for name in LINKED] + [f"{other}none", f"{other}fine"]
    if fails:
        new |= {f"{AT}fails": Reply(500), f"{AT}script": Reply(body=SCRIPT), f"{AT}app.js": Reply()}
        menu += [f"/{AT}fails", f"/{AT}script"]
        expected += [("failing-link", f"{AT}fails"), ("needs-javascript", f"{AT}script")]
    else:  # pages that fail or need a script may hold links, so no page is known to be an orphan
        expected.append(("orphan", f"{AT}orphan"))
    if secure:
        plain = other.replace("localhost", "127.0.0.1")
        media = f'<img alt=x src="{plain}i.png"><script src="{plain}s.js"></script><a href="{plain}fine">plain</a>'
        new[f"{AT}insecure"], menu = Reply(body=page("insecure", media).encode()), [*menu, f"/{AT}insecure"]
        expected += [("mixed-content", f"{plain}i.png"), ("mixed-content", f"{plain}s.js")]
        expected += [("insecure-link", f"{plain}fine"), ("certificate-expiry", base)]
    real, found = _edited(root, new)
    links = "".join(f'<p><a href="{url}">to {url}</a></p>\n' for url in menu)
    home = _added((root / "index.html").read_bytes(), links)
    return Plan((*expected, *found), {**new, **real, "": Reply(body=home), "index.html": Reply(body=home)})


def _added(body: bytes, html: str) -> bytes:
    """Add elements at the end of the body of a page."""
    place = body.lower().rfind(b"</body")
    place = len(body) if place < 0 else place
    return body[:place] + html.encode() + body[place:]


def _real_pages(root: Path) -> list[str]:
    """Return files that the home page links, in the same folder, and that no other planted fault changes."""
    text = (root / "index.html").read_text("utf-8", "replace")
    names = dict.fromkeys(re.findall(r"""href\s*=\s*["']([\w.-]+\.html)["'#]""", text))
    found = [name for name in names if name != "index.html" and (root / name).is_file()]
    big = [name for name in found if 3_000 < (root / name).stat().st_size < 400_000]
    return big[:MOST_REAL]


def _edited(root: Path, new: dict[str, Reply]) -> tuple[dict[str, Reply], list[tuple[str, str]]]:
    """Plant faults into real pages; return them, and what is to be found."""
    titles, headings, links, copied = _real_pages(root)[:4]
    body = {name: (root / name).read_bytes() for name in (titles, headings, links, copied)}
    new[f"{AT}copy"] = Reply(body=_added(body[copied], "<p>one more sentence</p>"))
    untitled = re.sub(rb"(?is)<title\b.*?</title>", b"", body[titles])
    unheaded = re.sub(rb"(?i)<(/?)h1\b", rb"<\1h2", body[headings])
    bad = (
        f'<p><a href="{AT}none-in-a-page">x</a> <a href="{copied}#no-such-place">y</a><img alt=x src="no-such.png"></p>'
    )
    return {
        titles: Reply(body=untitled),
        headings: Reply(body=unheaded),
        links: Reply(body=_added(body[links], bad)),
    }, [
        ("missing-title", titles),
        ("missing-heading", headings),
        ("broken-link", f"{AT}none-in-a-page"),
        ("missing-fragment", f"{copied}#no-such-place"),
        ("broken-resource", "no-such.png"),
        ("near-duplicate", f"{AT}copy"),
    ]


def _pages(base: str, other: str) -> dict[str, str]:
    """Return the planted pages, by name."""

    def canonical(name: str) -> str:
        return f'<link rel=canonical href="{base}{AT}{name}">'

    def translated(language: str, name: str) -> str:
        return f'<link rel=alternate hreflang={language} href="{base}{AT}{name}">'

    hidden = "<meta name=robots content=noindex>"
    near = words("near", 400)
    media = (
        '<img alt=x src=none.png srcset="none-2.png 2x"><script src=none.js></script><link rel=stylesheet href=n.css>'
    )
    return {
        "target": page("target"),
        "new": page("new"),
        "fragments": page(
            "fragments", f'<a href="target#top-target">ok</a><a href="target#none">x</a><a href="{other}fine">z</a>'
        ),
        "media": page("media", media),
        "hidden": page("hidden", head=hidden),
        "untitled": page("untitled", title=""),
        "same-a": page("same-a", title="The same title"),
        "same-b": page("same-b", title="The Same title"),
        "undescribed": page("undescribed").replace('content="About undescribed"', "content=''"),
        "described-a": page("described-a").replace("About described-a", "One description of two pages"),
        "described-b": page("described-b").replace("About described-b", "One description of two pages"),
        "unheaded": page("unheaded").replace("h1", "h2"),
        "near-a": page("near-a", text=near),
        "near-b": page("near-b", text=f"{near} changed"),
        "thin": page("thin", text="few words"),
        **{f"d{depth}": page(f"d{depth}", f'<a href="d{depth + 1}">deeper</a>') for depth in range(1, 5)},
        "d5": page("d5", '<a href="d5-more">more</a>'),
        "d5-more": page("d5-more", '<a href="d5">back</a>'),
        "slow": page("slow"),
        "heavy": page("heavy", f"<!-- {'x' * 1_000_001} -->"),
        "canon-two": page("canon-two", head=canonical("canon-two") + canonical("target")),
        "canon-gone": page("canon-gone", head=canonical("gone-canonical")),
        "canon-noindex": page("canon-noindex", head=canonical("hidden")),
        "canon-loop-a": page("canon-loop-a", head=canonical("canon-loop-b")),
        "canon-loop-b": page("canon-loop-b", head=canonical("canon-loop-a")),
        "english": page("english", head=translated("de", "german") + translated("fr", "french")),
        "german": page("german", head=translated("en", "english")),
        "french": page("french"),
        "orphan": page("orphan"),
        "listed-noindex": page("listed-noindex", head=hidden),
    }


EXPECTED = tuple(
    (rule, f"{AT}{name}")
    for rule, names in {
        "broken-link": "none other-none gone moved-to-gone",
        "redirect-loop": "loop-one",
        "redirect-chain": "chain-one",
        "redirected-link": "once",
        "missing-fragment": "target#none",
        "broken-resource": "none.png none-2.png none.js n.css",
        "sitemap-error": "listed-gone listed-moved listed-noindex",
        "canonical-conflict": "canon-two canon-gone canon-noindex canon-loop-a canon-loop-b",
        "linked-noindex": "hidden",
        "hreflang-return": "english",
        "missing-title": "untitled",
        "duplicate-title": "same-a same-b",
        "missing-description": "undescribed",
        "duplicate-description": "described-a described-b",
        "missing-heading": "unheaded",
        "near-duplicate": "near-a near-b",
        "thin-page": "thin",
        "deep-page": "d5 d5-more",
        "slow-page": "slow",
        "heavy-page": "heavy",
    }.items()
    for name in names.split()
)

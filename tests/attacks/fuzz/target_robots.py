"""robots.txt: rules, verdicts, delays and sitemaps; verdicts on small files are compared with a naive matcher."""

from __future__ import annotations

import math
import re

from surveyor.web.robots import Robots

NAME = "robots"
ORIGIN = "https://example.org"
TOKENS = [
    *(
        b"User-agent: *\n",
        b"User-agent: surveyor\n",
        b"user-agent surveyor/1.0\n",
        b"Disallow: ",
        b"Allow: ",
        b"*",
        b"$",
    ),
    *(
        b"Crawl-delay: ",
        b"Request-rate: 1/5m",
        b"Sitemap: http://",
        b"Disallow: /*",
        b"%2a",
        b"%24",
        b"%2F",
        b"?",
        b"#",
    ),
    *(b"\r", b"\n", b"\xef\xbb\xbf", b"dissallow: /x", b"http://h/x", b"/a", b"*a*a*a*a", b"a$", b"$*", b"\0/a/aa?b=c"),
]


def seeds() -> list[bytes]:
    return [
        b"User-agent: *\nDisallow: /private/\nAllow: /private/a$\nCrawl-delay: 2\nSitemap: /s.xml\n\0/private/a",
        b"User-agent: other\nUser-agent: Surveyor/1\nDisallow: /*.php$\nDisallow: *?s=*&\nRequest-rate: 1/5m\n\0/x?s=1",
        b"user-agent: surveyor\nallow: /%7ea/*b\ndisallow: /\xc3\xbc\ndisallow: /a%2fb$c\n\0/~a/xxb",
        b"User-agent: *\n" + b"Disallow: /*a*a\n" * 20 + b"\0/aaaaaaaa",
    ]


def run(data: bytes) -> None:
    body, _, path = data.partition(b"\0")
    path_text = path.decode("utf-8", "replace")
    rules = Robots.from_text(body)
    for url in (ORIGIN + "/" + path_text.lstrip("/"), path_text):
        why = rules.why(url)
        assert rules.permits(url) == (not why)
        assert "\n" not in why
    delay = rules.crawl_delay
    assert delay is None or (math.isfinite(delay) and delay >= 0)
    assert all(isinstance(one, str) and one for one in rules.sitemaps)
    if b"%" not in data and data.isascii() and len(body) < 2000:
        compare(rules, body.decode(), "/" + path_text.lstrip("/"))


def compare(rules: Robots, text: str, path: str) -> None:
    """Compare with a matcher by regular expressions, where the meaning of each line is plain."""
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text)]
    if not lines or lines[0] != "User-agent: *" or re.search(r"[#?$*:&;=+@\[\]\\\s\"<>^`{|}~]", path):
        return
    best = (-1, True)
    for line in lines[1:]:
        found = re.fullmatch(r"(Allow|Disallow): (/[a-z0-9/.*]*\$?)", line)
        if not found:
            if line and not line.startswith(("Crawl-delay: ", "Sitemap: ")):
                return
            continue
        kind, pattern = found[1], found[2]
        whole = pattern.endswith("$")
        expression = ".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + ("$" if whole else "")
        if pattern.count("*") < 6 and len(path) < 200:
            if re.match(expression, path):
                best = max(best, (len(pattern), kind == "Allow"))
        else:
            return
    if path != "/robots.txt":
        assert rules.permits(ORIGIN + path) == best[1], (text, path, best)

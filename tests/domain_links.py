"""Links between pages on hosts that exercise the Public Suffix List."""

from __future__ import annotations

LINKS = [
    ("https://www.a.org/1", "https://a.org/2"),
    ("https://www.a.org/1", "http://b.co.uk/"),
    ("https://a.org/2", "http://www.b.co.uk:81/x"),
    ("http://b.co.uk/", "https://joe.github.io/"),
    ("https://joe.github.io/", "http://db.intern/"),
    ("https://joe.github.io/", "no page"),
]

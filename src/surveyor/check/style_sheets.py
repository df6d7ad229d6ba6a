"""The files that a style sheet names.

>>> references("a { background: url('b.png') } /* url(no.png) */ @import 'c.css';", "https://a.example/css/d.css")
['https://a.example/css/b.png', 'https://a.example/css/c.css']
"""

from __future__ import annotations

import re

from surveyor.web.references import resolve
from surveyor.web.urls import normalise

MOST = 1_000  # references of one style sheet
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_REFERENCE = re.compile(
    r"""url\(\s{0,20}(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'()]*))|@import\s{1,20}(?:"([^"\n]*)"|'([^'\n]*)')""",
    re.IGNORECASE,
)


def references(text: str, url: str) -> list[str]:
    """Return the distinct URLs of http and https that a style sheet names."""
    found: dict[str, None] = {}
    for match in _REFERENCE.finditer(_COMMENT.sub(" ", text)):
        reference = next((group for group in match.groups() if group), "").partition("#")[0].strip()
        absolute = resolve(reference, url) if reference else None
        if absolute is not None and (plain := normalise(absolute)) is not None:
            found[plain] = None
        if len(found) >= MOST:
            break
    return [*found]

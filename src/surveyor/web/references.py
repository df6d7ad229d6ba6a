"""Resolve references on pages to absolute URLs, with a cache.

Most links of a site occur on many of its pages, so resolved URLs are cached by folder. Most are already in normal form
and can be joined without the URL parser. Both shortcuts give the same result as the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ada_url import join_url

LONGEST_RAW = 20_000  # maximum characters of a reference, or of a URL before normalisation, without the fragment
LONGEST_PLAIN = 2_000  # maximum characters of a URL that is not normalised again
NEAR = 3  # levels above a folder whose URLs are precomputed
FOLDER = 8  # a folder takes as much memory as so many references
REMEMBERED = 1 << 16  # maximum cached references
_SPELT = re.compile(
    r"https?://(?:[a-z0-9.-]+\.[a-z]{2,}|127\.0\.0\.1|localhost)(?::(?!80/|443/)[1-9][0-9]{1,3}|:[1-5][0-9]{4})?/"
    r"[A-Za-z0-9_.~/-]*"
)
_FOLDER = re.compile(r"(https?://[^/?#]+)([^?#]*/)")
_PLAIN = re.compile(r"(?:/(?!/)|((?:\.\./)*)(?=[A-Za-z0-9_~-]))[A-Za-z0-9_.~/-]*(?:\?[A-Za-z0-9_.~=&-]*)?")
_OF_FOLDER = re.compile(r"https?://|[A-Za-z0-9_~./-][^:]*\Z")  # resolves to the same URL from all pages of a folder


class Addresses:
    """A cache of resolved references.

    `spell` normalises a URL, or returns None to drop it. It must return plain URLs (see `is_plain`) of up to 2,000
    characters unchanged. When the cache is full, it is cleared.
    """

    def __init__(self, spell: Callable[[str], str | None] = str) -> None:
        self._spell, self._folders, self._size = spell, dict[str, _Folder](), 0

    def seen_from(self, base: str) -> Mapping[str, str | None]:
        """Return a mapping from reference to URL for a page; valid until the next call."""
        place = _FOLDER.match(base)
        name, origin, path = (place[0], place[1], place[2]) if place else ("", "", "")
        if self._size > REMEMBERED:
            self._folders.clear()
            self._size = 0
        if (folder := self._folders.get(name)) is None:
            folder = self._folders[name] = _Folder(origin, path, self._spell, self._count)
            self._size += FOLDER
        folder.see_from(base)
        return folder

    def _count(self) -> None:
        self._size += 1


class _Folder(dict[str, str | None]):
    """The resolved references of the pages of one folder."""

    def __init__(self, origin: str, path: str, spell: Callable[[str], str | None], count: Callable[[], None]) -> None:
        super().__init__()
        self._base, self._origin, self._spell, self._count = "", origin, spell, count
        self._here: str | None = None  # URL of the page itself
        self._steps = path.split("/")[1:-1]
        self._has_plain_start = is_plain(f"{origin}{path}")
        self._up = [self._above(levels) for levels in range(min(len(self._steps), NEAR) + 1)]

    def _above(self, levels: int) -> str:
        """Return the URL of the folder `levels` above this one."""
        return "/".join([self._origin, *self._steps[: max(0, len(self._steps) - levels)], ""])

    def see_from(self, base: str) -> None:
        """Resolve references relative to this page from now on."""
        self._base, self._here = base, self._spell(base)

    def __missing__(self, reference: str) -> str | None:
        if reference[:1] == "#" and self._origin:
            return self._here
        named = reference.partition("#")[0]
        if named != reference and named[-1:] > " ":  # otherwise the parser would strip white space at the end
            return self[named]
        plain = _PLAIN.fullmatch(reference) if self._origin else None
        up = plain[1] if plain else None
        if plain and "/." not in reference[len(up or "") :]:  # same result as the parser, in a tenth of the time
            levels = 0 if up is None else len(up) // 3
            start = self._origin if up is None else self._up[levels] if levels < len(self._up) else self._above(levels)
            address = start + reference[len(up or "") :]
            url = address if self._has_plain_start and _is_plain_path(address) else self._spell(address)
        elif (url := resolve(reference, self._base)) is not None:
            url = self._spell(url)
        if self._origin and _OF_FOLDER.match(reference):
            self[reference] = url
            self._count()
        return url


def is_plain(url: str) -> bool:
    """Return whether a URL is in a form that no parser changes; most are."""
    return bool(_SPELT.fullmatch(url)) and "/." not in url and ".." not in url and "xn--" not in url


def _is_plain_path(url: str) -> bool:
    """Return whether a URL is plain and short, if its folder is plain and its path matches `_PLAIN`."""
    return "?" not in url and "/." not in url and ".." not in url and "xn--" not in url and len(url) <= LONGEST_PLAIN


def resolve(reference: str, base: str) -> str | None:
    """Return the absolute http(s) URL of a reference, without its fragment; None if there is none."""
    if base and is_plain(reference):
        return reference
    if len(reference) > LONGEST_RAW and len(reference := reference.partition("#")[0]) > LONGEST_RAW:
        return None
    try:
        url = join_url(base or reference, reference)
    except ValueError:
        return None
    return url.partition("#")[0] if url.startswith(("http://", "https://")) else None

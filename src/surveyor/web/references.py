"""Where references on pages lead: by the rules of the parser, and remembered.

Most links of a site stand on many of its pages, so their addresses are kept by folder; and most are spelt so plainly
that they can be put together without the parser. Both ways give what the parser gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ada_url import join_url

LONGEST_PLAIN = 2_000  # characters of an address that is not spelt anew
NEAR = 3  # levels above a folder whose addresses are kept
FOLDER = 8  # references that take as much memory as a folder
REMEMBERED = 1 << 16  # references whose addresses are kept
_SPELT = re.compile(
    r"https?://(?:[a-z0-9.-]+\.[a-z]{2,}|127\.0\.0\.1|localhost)(?::(?!80/|443/)[1-9][0-9]{1,3}|:[1-5][0-9]{4})?/"
    r"[A-Za-z0-9_.~/-]*"
)
_FOLDER = re.compile(r"(https?://[^/?#]+)([^?#]*/)")
_PLAIN = re.compile(r"(?:/(?!/)|((?:\.\./)*)(?=[A-Za-z0-9_~-]))[A-Za-z0-9_.~/-]*(?:\?[A-Za-z0-9_.~=&-]*)?")
_OF_FOLDER = re.compile(r"https?://|[A-Za-z0-9_~./-][^:]*\Z")  # leads to the same place from all pages of a folder


class Addresses:
    """Where references on pages lead, remembered: most links of a site stand on many of its pages.

    `spell` may write an address in another way, or say by None that it is none; plain ones of up to 2,000 characters
    (see `is_plain`) it must return as they are. When there are too many, all are forgotten.
    """

    def __init__(self, spell: Callable[[str], str | None] = str) -> None:
        self._spell, self._folders, self._size = spell, dict[str, _Folder](), 0

    def seen_from(self, base: str) -> Mapping[str, str | None]:
        """Return the addresses by reference, as seen from a page; for as long as no other page is asked for."""
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
    """The addresses of references on the pages of one folder."""

    def __init__(self, origin: str, path: str, spell: Callable[[str], str | None], count: Callable[[], None]) -> None:
        super().__init__()
        self._base, self._origin, self._spell, self._count = "", origin, spell, count
        self._here: str | None = None  # the address of that page itself
        self._steps = path.split("/")[1:-1]
        self._has_plain_start = is_plain(f"{origin}{path}")
        self._up = [self._above(levels) for levels in range(min(len(self._steps), NEAR) + 1)]

    def _above(self, levels: int) -> str:
        """Return the folder so many levels above this one."""
        return "/".join([self._origin, *self._steps[: max(0, len(self._steps) - levels)], ""])

    def see_from(self, base: str) -> None:
        """Resolve references as on this page."""
        self._base, self._here = base, self._spell(base)

    def __missing__(self, reference: str) -> str | None:
        if reference[:1] == "#" and self._origin:
            return self._here
        named = reference.partition("#")[0]
        if named != reference and named[-1:] > " ":  # else the parser would find white space at the end
            return self[named]
        plain = _PLAIN.fullmatch(reference) if self._origin else None
        up = plain[1] if plain else None
        if plain and "/." not in reference[len(up or "") :]:  # as the parser would, at a tenth of the time
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
    """Return whether a URL is spelt so that no parser changes it; most are."""
    return bool(_SPELT.fullmatch(url)) and "/." not in url and ".." not in url and "xn--" not in url


def _is_plain_path(url: str) -> bool:
    """Return whether a URL is plain and short, if its folder is plain and its path matches `_PLAIN`."""
    return "?" not in url and "/." not in url and ".." not in url and "xn--" not in url and len(url) <= LONGEST_PLAIN


def resolve(reference: str, base: str) -> str | None:
    """Return an absolute http(s) address without its fragment, or None."""
    if base and is_plain(reference):
        return reference
    try:
        url = join_url(base or reference, reference)
    except ValueError:
        return None
    return url.partition("#")[0] if url.startswith(("http://", "https://")) else None

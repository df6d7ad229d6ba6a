"""Decide which URLs are in the scope of a survey, and give the reason for those that are not.

A URL is in scope if it is at the place of a seed (`kind`), matches the patterns, is within the depth limit, and does
not have the ending of a file type without links. The kinds are:

- `host`: the host and port of a seed, by http or https;
- `domain`: the registrable domain of a seed, with all its hosts;
- `prefix`: the folder of a seed and below (`example.org/docs/` for the seed `https://example.org/docs/start`);
- `any`: anywhere.

**Patterns** are matched against the URL without its scheme, such as `example.org/docs/a.html?page=2`. A glob must
match all of it; `*` matches any run of characters, including slashes, and every other character (including `?`) is
literal. A pattern that begins with `re:` is a regular expression that may match anywhere. With `include`, a URL must
match at least one of the patterns; a URL that matches any of `exclude` is out of scope. Both narrow the kind; to widen
it, give more seeds or use `any`. With `linear`, for untrusted surveys, regular expressions are matched in linear time,
and those that cannot be are rejected: an unknown author must not control the time spent per URL.

A seed is always in scope.

URLs must be normalised (`urls.normalise`). The function that returns a registrable domain (`urls.domain`) is passed as
`domain`; only the kind `domain` needs it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from surveyor.errors import UsageError

Kind = Literal["host", "domain", "prefix", "any"]
FEW_PLACES = 16  # maximum hosts or folders of seeds in the quick pattern
IN_SCOPE = "in scope"
FILES = frozenset(  # endings of files without links, or whose links are not read
    re.findall(
        r"\w+",
        """7z aac apk avi bin bmp bz2 css csv deb dmg doc docx eot epub exe flac flv gif gz ico ics iso jar jpeg jpg js
        json m4a m4v mid mkv mov mp3 mp4 mpeg mpg msi odp ods odt ogg ogv otf pdf png ppt pptx ps psd rar rpm rtf svg
        swf tar tgz tif tiff torrent ttf vcf wasm wav webm webp wma wmv woff woff2 xls xlsx xz zip zst""",
    )
)


@dataclass(frozen=True)
class Scope:
    """The part of the web that a survey covers."""

    kind: Kind
    seeds: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None  # maximum links from the nearest seed
    types: frozenset[str] = FILES  # endings of paths that are out of scope
    domain: Callable[[str], str] | None = field(default=None, repr=False, compare=False)
    linear: bool = field(default=False, repr=False, compare=False)  # for untrusted patterns

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UsageError(f"no scope {self.kind!r}", hint=f"there are {', '.join(get_args(Kind))}")
        if self.depth is not None and self.depth < 0:
            raise UsageError(f"depth must be at least 0, not {self.depth}", hint="0 admits the seeds alone")
        if self.kind == "domain" and self.domain is None:
            raise UsageError(
                "the scope 'domain' needs a function that returns the registrable domain of a host",
                hint="pass domain=urls.domain",
            )
        for name in ("seeds", "include", "exclude"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if not self.seeds and self.kind != "any":
            raise UsageError(f"the scope {self.kind!r} needs a seed", hint="for example https://example.org/")
        object.__setattr__(self, "types", frozenset(ending.lower().lstrip(".") for ending in self.types))
        object.__setattr__(self, "_named", frozenset(self.seeds))
        object.__setattr__(self, "_places", tuple(sorted({self._place(_after_scheme(seed)) for seed in self.seeds})))
        made = _linear(self.include + self.exclude) if self.linear else list(map(_pattern, self.include + self.exclude))
        object.__setattr__(self, "_include", tuple(made[: len(self.include)]))
        object.__setattr__(self, "_exclude", tuple(zip(self.exclude, made[len(self.include) :], strict=True)))
        object.__setattr__(self, "_surely", self._quick())

    # computed by __post_init__
    _named: frozenset[str] = field(init=False, repr=False, compare=False)
    _places: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _include: tuple[Callable[[str], object], ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[tuple[str, Callable[[str], object]], ...] = field(init=False, repr=False, compare=False)
    _surely: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    @classmethod
    def of_seeds(cls, seeds: Iterable[str], *, depth: int | None = None) -> Scope:
        """Return the default scope of seeds: their folders if all are in a folder, else their hosts.

        >>> Scope.of_seeds(["https://example.org/docs/start"]).why_not("https://example.org/blog/")
        'outside the folders of the seeds'
        """
        seeds = tuple(seeds)
        deep = all(_after_scheme(seed).partition("?")[0].count("/") > 1 for seed in seeds)
        return cls("prefix" if deep else "host", seeds, depth=depth)

    def admits(self, url: str, depth: int = 0) -> bool:
        """Return whether a URL is in scope."""
        if self._surely is not None and self._surely.fullmatch(url) and depth <= (self.depth or 0):
            return True
        return self.why_not(url, depth) is None

    def _quick(self) -> re.Pattern[str] | None:
        """Return a pattern that matches only URLs in scope, most of a site; a fifth of the time of `why_not`."""
        if self.include or self.exclude or self.kind == "domain" or len(self._places) > FEW_PLACES or "" in self.types:
            return None
        folder = "" if self.kind == "prefix" else "/"
        places = "|".join(re.escape(place) + folder for place in self._places) if self.kind != "any" else "[^/?]+/"
        return re.compile(rf"https?://(?:{places})[^?.]*(?:\?.*)?", re.DOTALL)

    def why_not(self, url: str, depth: int = 0) -> str | None:
        """Return the reason why a URL at this depth is out of scope; None if it is in scope.

        >>> scope = Scope("host", ("https://example.org/",), exclude=("*/print/*",), depth=5)
        >>> scope.why_not("https://example.com/"), scope.why_not("https://example.org/print/1")
        ('other host', 'excluded by */print/*')
        >>> scope.why_not("https://example.org/a.zip"), scope.why_not("https://example.org/a", depth=7)
        ('file type zip', 'depth 7 > 5')
        """
        if url in self._named:
            return None
        if not url.startswith(("http://", "https://")):
            return "not http"
        rest = url.partition("://")[2]
        if self.kind == "prefix":
            if not rest.startswith(self._places):
                return "outside the folders of the seeds"
        elif self.kind != "any" and self._place(rest) not in self._places:
            return f"other {self.kind}"
        if self._include and not any(matches(rest) for matches in self._include):
            return "not included"
        for text, matches in self._exclude:
            if matches(rest):
                return f"excluded by {text}"
        ending = _ending(rest)
        if ending in self.types:
            return f"file type {ending}"
        if self.depth is not None and depth > self.depth:
            return f"depth {depth} > {self.depth}"
        return None

    def is_file(self, url: str) -> bool:
        """Return whether a URL has the ending of a file type without links."""
        return _ending(url.partition("://")[2]) in self.types

    def preview(self, links: Iterable[str]) -> Mapping[str, int]:
        """Count links by the reason why they are out of scope, most frequent first; `in scope` counts the others.

        >>> Scope("any", ()).preview(["https://example.org/", "https://example.org/a.zip", "mailto:joe"])
        {'in scope': 1, 'file type zip': 1, 'not http': 1}
        """
        return dict(Counter(self.why_not(link) or IN_SCOPE for link in links).most_common())

    def _place(self, rest: str) -> str:
        """Return the host, domain or folder of a URL that is given without its scheme."""
        if self.kind == "prefix":
            return rest.partition("?")[0].rpartition("/")[0] + "/"
        authority = rest.partition("/")[0]
        if self.kind == "domain" and self.domain is not None:
            return self.domain(authority if authority.endswith("]") else authority.partition(":")[0])
        return authority


def _ending(rest: str) -> str:
    """Return the ending of the path of a URL that is given without its scheme; empty if it has none."""
    name = rest.partition("?")[0].partition("/")[2].rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def _after_scheme(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme not in ("http", "https") or "/" not in rest.partition("?")[0]:
        raise UsageError(f"{url!r} is not a normalised URL", hint="it looks like https://example.org/")
    return rest


def _linear(texts: Iterable[str]) -> list[Callable[[str], object]]:
    """Return functions that match patterns in linear time; the limits on states apply to all automata together."""
    from surveyor.web.linear_regex import MOST_STATES, MOST_WIDE, LinearPattern

    made: list[Callable[[str], object]] = []
    room, wide = MOST_STATES, MOST_WIDE
    for text in texts:
        if text.startswith("re:"):
            pattern = LinearPattern(text[3:], room, wide)
            room -= pattern.states
            wide -= pattern.wide
            made.append(pattern.search)
        else:
            made.append(_pattern(text))
    return made


def _pattern(text: str) -> Callable[[str], object]:
    """Return a function that matches a pattern."""
    if text.startswith("re:"):
        try:
            return re.compile(text[3:]).search
        except (re.error, OverflowError, RecursionError) as error:
            hint = f"{error}; without re: it is a glob"
            raise UsageError(f"{text[:200]!r} is not a regular expression", hint=hint) from None
    glob = re.sub(r"^https?://", "", text.strip())
    if not glob:
        raise UsageError(f"the pattern {text!r} matches nothing", hint="for example *.pdf or example.org/docs/*")
    first, *others = re.sub(r"\*+", "*", glob).split("*")
    if not others:
        return re.compile(re.escape(first)).fullmatch
    *inner, last = others
    # leftmost match of each part, without backtracking: linear for any number of stars
    middle = "".join(f"(?>.*?{re.escape(part)})" for part in inner)
    return re.compile(f"{re.escape(first)}{middle}.*{re.escape(last)}", re.DOTALL).fullmatch

"""Which pages are local: by a rule in a few letters, by a list in a file, or named one by one.

| rule | local pages |
|---|---|
| `host:example.org` | of a host, on any port; `host:example.org:8080` on this port alone |
| `domain:example.org` | of a domain, with all hosts below it |
| `prefix:https://example.org/docs` | this page and all below it; `…/docs*` is whatever begins so; https is http |
| `file:pages.txt` | one name a line; empty lines and lines that begin with `#` are none |
| `ids:0-1999,2500` | by number, for graphs without names |
| `all` | all, where not all that is known was read |

Without its first word a rule is guessed: a file that exists is a list, a URL with a path is a prefix, what looks like
a host is one, numbers are ids. No name is looked at one by one, but for those that a list names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, IdArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.formats.streams import refuse_pipe
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.graph.names import Names

KINDS = ("host", "domain", "prefix", "file", "ids", "all")
THERE_ARE = "there are host:, domain:, prefix:, file: and ids: with something after the colon, and all"
HOST = re.compile(r"[\w-]+(\.[\w-]+)+\.?(:\d+)?|localhost(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")
IDS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
BEYOND = 1_000_000
GIVE = "give a rule, names, ids, or one truth value a page"
SHOWN = 3  # hosts that a hint names
Given = str | Sequence[str] | Sequence[int] | AnyIntArray | BoolArray


@dataclass(frozen=True, slots=True)
class Rule:
    """What makes a page local."""

    kind: str
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule, or guess what is meant.

        >>> str(Rule.parse("https://example.org/docs/")), str(Rule.parse("Example.org")), str(Rule.parse("0-99"))
        ('prefix:https://example.org/docs/', 'host:example.org', 'ids:0-99')
        """
        text = text.strip()
        word, colon, value = (part.strip() for part in text.partition(":"))
        if text == "all":
            return cls("all")
        if word in KINDS and colon and not value.startswith("//"):
            if not value or word == "all":
                raise UsageError(f"the rule {text!r} names no pages", hint=THERE_ARE)
            return cls(word, value.lower() if word in ("host", "domain") else value)
        if _is_file(text):
            return cls("file", text)
        if "/" in text:
            place = text.partition("://")[2] if "://" in text else text
            name, _, path = place.partition("/")
            return cls("prefix", text) if path else cls("host", name.lower())
        if IDS.fullmatch(text):
            return cls("ids", text)
        if HOST.fullmatch(text):
            return cls("host", text.lower())
        near = get_close_matches(word, KINDS, 1) if colon else []
        problem = f"{text!r} is neither a rule for local pages, nor a file, nor a host" if text else "no rule was given"
        raise UsageError(problem, hint=f"did you mean {near[0]}:{value}?" if near else THERE_ARE)

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else self.kind


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """The local pages among some, and what made them so."""

    places: IdArray  # ascending
    rule: str
    missing: int = 0  # pages that a list named, and that are not there


def local_pages(
    given: Given,
    names: Names | None,
    count: int,
    *,
    numbers: AnyIntArray | None = None,
    what: str = "this graph",
    may_be_all: bool = False,
) -> Local:
    """Return which of `count` pages are local, by their places; `names` are theirs, if they have any.

    `numbers` are those by which `ids:` and arrays call them, if other than their places. Unless it `may_be_all`,
    something has to be left outside. `what` is what the pages are of, in words.
    """
    if not isinstance(given, str | list | tuple | np.ndarray):
        raise UsageError(f"{type(given).__name__} is no way to say which pages are local", hint=GIVE)
    if isinstance(given, str):
        rule = Rule.parse(given)
        found, missing, told = *_by_rule(rule, names, count, numbers, what), str(rule)
    elif len(given) and all(isinstance(entry, str) for entry in given):
        found, missing = _listed([str(entry) for entry in given], _named(names, what), count)
        told = f"{len(given):,} pages by name"
    else:
        found, missing = _numbered(np.asarray(given), count, numbers)
        told = f"{int(found.sum()):,} pages by number"
    if not found.any():
        raise UsageError(f"no page of {what} is local by {told}", hint=_there_is(given, names, count, numbers))
    if found.all() and not may_be_all:
        raise UsageError(
            f"all {count:,} pages of {what} are local by {told}: there is nothing outside to learn from",
            hint=_there_is(None, names, count, numbers),
        )
    return Local(read_only(np.flatnonzero(found).astype(np.int32)), told, missing)


def digest_of(given: Given) -> str:
    """Sum up a list of pages, given or in a file; empty for other rules, whose words say it all."""
    rule = Rule.parse(given) if isinstance(given, str) else None
    if rule is not None and rule.kind != "file":
        return ""
    entries = _lines(Path(rule.value)) if rule is not None else [str(entry) for entry in np.asarray(given).tolist()]
    return blake2b("\n".join(sorted(entries)).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _is_file(text: str) -> bool:
    try:
        refuse_pipe(Path(text), "local pages")
        return Path(text).is_file()
    except OSError:  # a name too long for one
        return False


def _by_rule(
    rule: Rule, names: Names | None, count: int, numbers: AnyIntArray | None, what: str
) -> tuple[BoolArray, int]:
    if rule.kind == "all":
        return np.ones(count, np.bool_), 0
    if rule.kind == "ids":
        return _numbered(
            _ids(rule.value, count if numbers is None else int(numbers.max(initial=-1)) + 1), count, numbers
        )
    if rule.kind == "file":
        lines = _lines(Path(rule.value))
        if names is None and all(line.isdecimal() for line in lines):
            return _numbered(np.array(lines, np.int64), count, numbers)
        return _listed(lines, _named(names, what), count)
    from surveyor.graph.located import Prefix, in_domain, on_host

    known = _named(names, what)
    if rule.kind == "prefix":
        return Prefix(rule.value).among(known), 0
    return (on_host if rule.kind == "host" else in_domain)(known, rule.value), 0


def _named(names: Names | None, what: str) -> Names:
    if names is None:
        raise UsageError(f"the pages of {what} have no names", hint="say which are local by number: ids:0-1999")
    return names


def _listed(lines: Sequence[str], names: Names, count: int) -> tuple[BoolArray, int]:
    """Find names as they are written, or as the crawler spells them."""
    found, missing = np.zeros(count, np.bool_), 0
    for line in dict.fromkeys(lines):
        place = names.find(line)
        if place is None and (spelt := normalise(line)) is not None:
            place = names.find(spelt)
        if place is None:
            missing += 1
        else:
            found[place] = True
    return found, missing


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"the local pages in {path} cannot be read: {why}", hint="one page a line") from error
    lines = [line.strip() for line in text.splitlines()]
    if not (kept := [line for line in lines if line and not line.startswith("#")]):
        raise UsageError(f"{path} names no pages", hint="one page a line")
    return kept


def _ids(text: str, end: int) -> AnyIntArray:
    """Read runs of ids; so many beyond the last page are enough to say that pages are missing."""
    end += BEYOND
    if not IDS.fullmatch(text):
        raise UsageError(f"'ids:{text}' does not say which pages", hint="such as ids:0-1999 or ids:3,7,20-29")
    parts: list[AnyIntArray] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not int(first) <= int(last or first) < 1 << 31:
            raise UsageError(f"{part!r} in 'ids:{text}' is no run of pages", hint="such as ids:0-1999 or ids:3,7,20-29")
        parts.append(np.arange(min(int(first), end), min(int(last or first), end) + 1))
    return np.concatenate(parts)


def _numbered(given: AnyIntArray | BoolArray, count: int, numbers: AnyIntArray | None) -> tuple[BoolArray, int]:
    if given.dtype == np.bool_ and given.shape == (count,):
        return given.astype(np.bool_), 0
    if given.size and (given.dtype.kind not in "iu" or given.ndim != 1):
        raise UsageError(f"{type(given[0]).__name__}s are no local pages", hint=GIVE)
    wanted = np.unique(given.astype(np.int64))
    found: BoolArray = np.isin(np.arange(count) if numbers is None else numbers, wanted)
    return found, wanted.size - int(found.sum())


def _there_is(given: object, names: Names | None, count: int, numbers: AnyIntArray | None) -> str:
    """Say what there is to choose from."""
    if names is None or not count:
        last = int(numbers[-1]) if numbers is not None and numbers.size else count - 1
        return f"pages have numbers from 0 to {last:,}" if count else "there are no pages at all"
    hosts = _largest(names)
    if not hosts:
        return f"names look like {names[0]!r}"
    told = ", ".join(f"{name} ({pages:,})" for name, pages in hosts)
    near = _same_domain(given, hosts)
    return f"{near}the largest hosts are {told}" if len(hosts) > 1 else f"{near}all are of {hosts[0][0]}: try a prefix"


def _largest(names: Names) -> list[tuple[str, int]]:
    from surveyor.graph.places import Places

    places = Places("hosts")
    at = places.of(names)
    pages = np.bincount(at[at >= 0], minlength=len(places))
    hosts = places.names()
    return [(hosts[place], int(pages[place])) for place in np.argsort(-pages, kind="stable")[:SHOWN].tolist()]


def _same_domain(given: object, hosts: Iterable[tuple[str, int]]) -> str:
    """Suggest a domain to whoever named it as a host."""
    from surveyor.web.urls import domain

    name = Rule.parse(given) if isinstance(given, str) else Rule("all")
    inside = name.kind == "host" and any(domain(host) == name.value for host, _ in hosts)
    return f"did you mean domain:{name.value}? " if inside else ""

"""Options of a community: its local pages, how many pages to fetch around them, which ones, and how to estimate.

Local pages are selected by a rule, by a list in a file, or by name.

| rule | local pages |
|---|---|
| `host:example.org` | of a host, on any port; `host:example.org:8080` on this port only |
| `domain:example.org` | of a domain and all its subdomains |
| `prefix:https://example.org/docs` | this page and all below it; `…/docs*`: any continuation; https equals http |
| `file:pages.txt` | one name per line; empty lines and lines that start with `#` are skipped |
| `ids:0-1999,2500` | by id, for graphs without names |
| `word:solar`, `words:solar,"heat pump"`, `all:…` | with any of these words and phrases, or with all (surveys only) |
| `model:FILE` | that a trained model accepts (`surveyor topic train`; surveys only) |
| `url:REGEX`, `tld:uk`, `not:RULE` | as in `surveyor sample` |
| `all` | all pages, for surveys that know more pages than they have fetched |

Without the first word the kind of rule is inferred: an existing file is a list, a URL with a path is a prefix, a host
name is a host, numbers are ids. Names are matched in bulk, except those of a list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, IdArray, read_only
from surveyor.errors import UsageError, check_range
from surveyor.estimate.community.estimators import Method
from surveyor.estimate.community.local_topics import TOPIC_KINDS, on_topic, parse_topic
from surveyor.graph.formats.streams import reject_pipe
from surveyor.rank.expansion import SELECTORS, Select
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.graph.back_links import BackLinks
    from surveyor.graph.csr import Graph
    from surveyor.graph.names import Names
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.survey import Survey

KINDS = ("host", "domain", "prefix", "file", "ids", "all", *TOPIC_KINDS)
RULES = (
    "rules are host:HOST, domain:DOMAIN, prefix:URL, file:PATH, ids:0-1999 and all, "
    "and the topics words:a,b, all:a,b, model:FILE, url:REGEX, tld:SUFFIX and not:RULE"
)
HOST = re.compile(r"[\w-]+(\.[\w-]+)+\.?(:\d+)?|localhost(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?")
IDS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
MAX_MISSING = 1_000_000  # ids beyond the last page that are counted as missing
EXPECTED = "give a rule, a list of names or ids, or one boolean per page"
MIN_LOCAL = 5  # local pages: with fewer, the order is worse than that of the local rank
SHOWN = 3  # hosts shown in a hint
LocalPagesLike = str | Sequence[str] | Sequence[int] | AnyIntArray | BoolArray
Known = Literal["all", "local"]
EXTRA, SELECT, DAMPING, RNG = "2n", "explore", 0.85, 7
NUMBER = re.compile(r"(?P<times>\d+(?:\.\d+)?|\.\d+)?\s*\*?\s*n|(?P<pages>\d{1,3}(?:,\d{3})+|\d[\d_]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalRule:
    """A rule that selects local pages."""

    kind: str
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> LocalRule:
        """Parse a rule, or infer its kind.

        >>> [str(LocalRule.parse(text)) for text in ("https://example.org/docs/", "Example.org", "0-99")]
        ['prefix:https://example.org/docs/', 'host:example.org', 'ids:0-99']
        """
        text = text.strip()
        word, colon, value = (part.strip() for part in text.partition(":"))
        if text == "all":
            return cls("all")
        if word in KINDS and colon and not value.startswith("//"):
            if not value:
                raise UsageError(f"the rule {text!r} has no value", hint=RULES)
            if word in TOPIC_KINDS:
                kind, _, value = parse_topic(text).text.partition(":")
                return cls(kind, value)
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
        problem = (
            f"{text!r} is not a rule for local pages, a file or a host" if text else "the rule for local pages is empty"
        )
        raise UsageError(problem, hint=f"did you mean {near[0]}:{value}?" if near else RULES)

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else self.kind


@dataclass(frozen=True, slots=True, eq=False)
class LocalPages:
    """The local pages of a graph or survey, and the rule that selected them."""

    indices: IdArray  # ascending
    rule: str
    missing: int = 0  # pages named by the rule that do not exist


def local_pages(
    local: LocalPagesLike,
    names: Names | None,
    count: int,
    *,
    ids: AnyIntArray | None = None,
    what: str = "this graph",
    allow_all: bool = False,
    archive: SurveyFolder | None = None,
) -> LocalPages:
    """Return the indices of the local ones among `count` pages with these names, if they have any.

    `ids` are the page ids if they differ from the indices. Unless `allow_all`, at least one page must remain outside.
    `what` describes the pages in messages. Words and models read the text of pages from `archive`.
    """
    if not isinstance(local, str | list | tuple | np.ndarray):
        raise UsageError(f"local must be a rule or a list of pages, got {type(local).__name__}", hint=EXPECTED)
    if isinstance(local, str):
        rule = LocalRule.parse(local)
        if rule.kind in TOPIC_KINDS and str(rule) != "all":
            found, missing = on_topic(parse_topic(str(rule)), _named(names, what), count, archive), 0
        else:
            found, missing = _by_rule(rule, names, count, ids, what)
        description = str(rule)
    elif len(local) and all(isinstance(entry, str) for entry in local):
        found, missing = _listed([str(entry) for entry in local], _named(names, what), count)
        description = f"{len(local):,} pages by name"
    else:
        found, missing = _numbered(np.asarray(local), count, ids)
        description = f"{int(found.sum()):,} pages by id"
    if not found.any():
        raise UsageError(f"no page of {what} matches local {description}", hint=_suggestion(local, names, count, ids))
    if found.all() and not allow_all:
        raise UsageError(
            f"all {count:,} pages of {what} match local {description}, and no page is left outside",
            hint=_suggestion(None, names, count, ids),
        )
    return LocalPages(read_only(np.flatnonzero(found).astype(np.int32)), description, missing)


def check_size(pages: int, rule: str) -> None:
    """Raise an error if there are too few local pages."""
    if pages < MIN_LOCAL:
        some = "1 page" if pages == 1 else f"{pages:,} pages"
        raise UsageError(
            f"local {rule} selects {some}, and a global rank is estimated for at least {MIN_LOCAL}",
            hint="select more pages, such as the whole host, and look up these in the result",
        )


def list_digest(local: LocalPagesLike) -> str:
    """Return a digest of a list of pages, in memory or in a file, or of a model; empty for other rules."""
    rule = LocalRule.parse(local) if isinstance(local, str) else None
    if rule is not None and rule.kind == "model":
        return parse_topic(str(rule)).digest
    if rule is not None and rule.kind != "file":
        return ""
    entries = _lines(Path(rule.value)) if rule is not None else [str(entry) for entry in np.asarray(local).tolist()]
    return blake2b("\n".join(sorted(entries)).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _is_file(text: str) -> bool:
    try:
        reject_pipe(Path(text), "local pages")
        return Path(text).is_file()
    except OSError:  # the name is too long for a file
        return False


def _by_rule(
    rule: LocalRule, names: Names | None, count: int, ids: AnyIntArray | None, what: str
) -> tuple[BoolArray, int]:
    if rule.kind == "all":
        return np.ones(count, np.bool_), 0
    if rule.kind == "ids":
        end = count if ids is None else int(ids.max(initial=-1)) + 1
        return _numbered(_parse_ids(rule.value, end), count, ids)
    if rule.kind == "file":
        lines = _lines(Path(rule.value))
        if names is None and all(line.isdecimal() for line in lines):
            return _numbered(np.array(lines, np.int64), count, ids)
        return _listed(lines, _named(names, what), count)
    from surveyor.graph.hosts_and_domains import UrlPrefix, in_domain, on_host

    known = _named(names, what)
    if rule.kind == "prefix":
        return UrlPrefix(rule.value).select(known), 0
    return (on_host if rule.kind == "host" else in_domain)(known, rule.value), 0


def _named(names: Names | None, what: str) -> Names:
    if names is None:
        raise UsageError(f"the pages of {what} have no names", hint="select them by id: ids:0-1999")
    return names


def _listed(lines: Sequence[str], names: Names, count: int) -> tuple[BoolArray, int]:
    """Find names as given, or as normalised URLs."""
    found, missing = np.zeros(count, np.bool_), 0
    for line in dict.fromkeys(lines):
        index = names.find(line)
        if index is None and (url := normalise(line)) is not None:
            index = names.find(url)
        if index is None:
            missing += 1
        else:
            found[index] = True
    return found, missing


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"the local pages in {path} cannot be read: {reason}", hint="one page per line") from error
    lines = [line.strip() for line in text.splitlines()]
    if not (kept := [line for line in lines if line and not line.startswith("#")]):
        raise UsageError(f"{path} contains no pages", hint="one page per line")
    return kept


def _parse_ids(text: str, end: int) -> AnyIntArray:
    """Parse ranges of ids; `end` is one more than the largest id, and of larger ids only a limited number is kept."""
    end += MAX_MISSING
    if not IDS.fullmatch(text):
        raise UsageError(f"'ids:{text}' is not a list of ids", hint="for example ids:0-1999 or ids:3,7,20-29")
    parts: list[AnyIntArray] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not int(first) <= int(last or first) < 1 << 31:
            raise UsageError(
                f"{part!r} in 'ids:{text}' is not a range of ids", hint="for example ids:0-1999 or ids:3,7"
            )
        parts.append(np.arange(min(int(first), end), min(int(last or first), end) + 1))
    return np.concatenate(parts)


def _numbered(given: AnyIntArray | BoolArray, count: int, ids: AnyIntArray | None) -> tuple[BoolArray, int]:
    if given.dtype == np.bool_ and given.shape == (count,):
        return given.astype(np.bool_), 0
    if given.size and (given.dtype.kind not in "iu" or given.ndim != 1):
        raise UsageError(f"local must be a list of ids, got {given.dtype} of shape {given.shape}", hint=EXPECTED)
    wanted = np.unique(given.astype(np.int64))
    found: BoolArray = np.isin(np.arange(count) if ids is None else ids, wanted)
    return found, wanted.size - int(found.sum())


def _suggestion(local: object, names: Names | None, count: int, ids: AnyIntArray | None) -> str:
    """Return a hint: the ids, names or hosts to choose from."""
    if names is None or not count:
        last = int(ids[-1]) if ids is not None and ids.size else count - 1
        return f"page ids range from 0 to {last:,}" if count else "there are no pages"
    hosts = _largest(names)
    if not hosts:
        return f"names look like {names[0]!r}"
    largest = ", ".join(f"{name} ({pages:,})" for name, pages in hosts)
    near = _same_domain(local, hosts)
    one = f"{near}all pages are on {hosts[0][0]}: try prefix:"
    return f"{near}the largest hosts are {largest}" if len(hosts) > 1 else one


def _largest(names: Names) -> list[tuple[str, int]]:
    from surveyor.graph.hosts_and_domains import SiteIndex

    index = SiteIndex("hosts")
    at = index.sites_of(names)
    pages = np.bincount(at[at >= 0], minlength=len(index))
    hosts = index.names()
    return [(hosts[host], int(pages[host])) for host in np.argsort(-pages, kind="stable")[:SHOWN].tolist()]


def _same_domain(local: object, hosts: Iterable[tuple[str, int]]) -> str:
    """Suggest domain: for a domain given as a host."""
    from surveyor.web.urls import domain

    rule = LocalRule.parse(local) if isinstance(local, str) else LocalRule("all")
    inside = rule.kind == "host" and any(domain(host) == rule.value for host, _ in hosts)
    return f"did you mean domain:{rule.value}? " if inside else ""


@dataclass(frozen=True, slots=True, eq=False)
class CommunityOptions:
    """Options of `sv.community`; None is the default, or for an existing community survey the recorded value."""

    extra: int | str | None = None  # pages to request around the local ones: a number, or "2n", "0.5n"
    select: str | None = None  # score by which they are selected
    rng: int | None = None
    rounds: int | None = None  # selection rounds; by default each round requests 4 % of the local pages
    estimator: Method = "auto"
    stable: float = 0.0  # stop when three consecutive rounds change the local ranks by less (L1)
    known: Known | Sequence[int] | IdArray | None = None  # pages known at the start besides the local ones
    back_links: Graph | Survey | BackLinks | Path | str | None = None
    truth: bool = False  # rank the whole graph and compare
    replay: bool = False  # use only the pages that the survey has fetched
    out: Path | str | None = None  # folder of the survey of fetched pages
    damping: float | None = None

    @classmethod
    def split(cls, keywords: Mapping[str, Any]) -> tuple[CommunityOptions, dict[str, Any]]:
        """Return the options among keyword arguments, and the rest: settings of a crawl."""
        names = {field.name for field in fields(cls)}
        options = cls(**{name: value for name, value in keywords.items() if name in names})
        return options, {name: value for name, value in keywords.items() if name not in names}

    @property
    def selector(self) -> Select:
        """The score by which pages are selected."""
        chosen: Any = self.select or SELECT
        return chosen  # type: ignore[no-any-return]

    def extra_pages(self, local: int) -> int:
        """Return the number of pages to request for a number of local pages."""
        return extra_pages(EXTRA if self.extra is None else self.extra, local)

    def check(self) -> None:
        """Raise an error for a value that is out of range."""
        self.extra_pages(1)
        if self.select is not None and self.select not in SELECTORS:
            raise UsageError(f"unknown select {self.select!r}", hint=f"choose {', '.join(SELECTORS)}")
        if self.estimator not in get_args(Method):
            raise UsageError(f"unknown estimator {self.estimator!r}", hint=f"choose {', '.join(get_args(Method))}")
        if self.rounds is not None and (not isinstance(self.rounds, int | np.integer) or self.rounds < 1):
            raise UsageError(
                f"rounds must be an integer of at least 1, got {self.rounds}",
                hint="omit it for rounds of 4 % of the local pages",
            )
        check_range("damping", self.damping, "(0, 1)", hint="the default is 0.85")
        if self.rng is not None and not (isinstance(self.rng, int | np.integer) and 0 <= self.rng < 2**63):
            raise UsageError(f"rng must be an integer of at least 0, got {self.rng}", hint="the default is 7")
        check_range("stable", self.stable, "[0, inf)", hint="for example stable=0.001")
        if isinstance(self.known, str) and self.known not in get_args(Known):
            raise UsageError(f"known must be all or local, got {self.known!r}", hint="omit it for the default")


def extra_pages(extra: str | int, local: int) -> int:
    """Return the number of extra pages: as given, or as a multiple of the number of local pages.

    >>> extra_pages("2n", 150), extra_pages("0.5n", 15), extra_pages("1_500", 10), extra_pages(0, 10)
    (300, 8, 1500, 0)
    """
    match = NUMBER.fullmatch(str(extra).strip())
    if match is None or isinstance(extra, bool):
        raise UsageError(
            f"extra must be a number of pages or a multiple of n, got {str(extra)!r}",
            hint="for example 1500, or 2n for twice the number of local pages; 0 requests no page",
        )
    if match["pages"]:
        return int(re.sub("[_,]", "", match["pages"]))
    return math.ceil(round(float(match["times"] or 1) * local, 6))  # rounded: 1.1 * 100 must be 110

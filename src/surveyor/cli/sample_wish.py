"""What `surveyor sample` is asked for, whether it can work, and how to ask for more."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNTIL, UNTIL_LIVE = "ess=400", "ess=400,fetches=5000"  # nobody fetches without end unasked
GRAPHS = (".graph", ".tsv", ".csv", ".txt", ".gz", ".zst", ".parquet", ".npz", ".mtx", ".graphml", ".gexf")
BUDGET = re.compile(r"((?:fetches|steps)\s*=\s*)([\d.]+)", re.IGNORECASE)
BUDGETS = ("fetches", "steps")  # endings that a larger budget puts off


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for."""

    where: tuple[str, ...]
    topic: str
    method: str | None
    until: tuple[str, ...]
    walks: int | None
    share: tuple[str, ...]
    mean: tuple[str, ...]
    by: tuple[str, ...]
    of: str | None
    size: bool
    recall: str | None
    draws: int | None
    in_links: tuple[str, ...]
    start: tuple[str, ...]
    lists: tuple[str, ...]
    reach: int | None
    window: int | None
    rng: int | None
    out: str | None

    @property
    def goal(self) -> str:
        """When to end."""
        return ",".join(self.until) or (UNTIL_LIVE if self.place == "web" else UNTIL)

    @property
    def place(self) -> str:
        """What kind of place it walks in: web, survey or graph."""
        from surveyor.cli.ranked import is_survey

        if len(self.where) != 1 or self.lists or "://" in self.where[0]:
            return "web"
        (word,) = self.where
        if is_survey(word):
            return "survey"
        return "graph" if _is_file(word) or "." not in word else "web"

    @property
    def watched(self) -> tuple[str, ...]:
        """The properties that the goal is about."""
        return (self.of,) if self.of else (*self.share, *self.mean)


def _is_file(word: str) -> bool:
    return Path(word).exists() or word.endswith(GRAPHS)


ASKED = tuple(one.name for one in fields(Wish) if one.name != "where")


def check(wish: Wish, given: Mapping[str, Any]) -> None:
    """Refuse what cannot work, before any of it is done."""
    from surveyor.estimate.sampling.properties import NUMERIC, check_available
    from surveyor.estimate.sampling.sample_goals import SampleGoal
    from surveyor.estimate.sampling.topics import Topic

    if not wish.where and not wish.lists:
        raise UsageError("nothing says where to walk", hint="name a graph, a survey, or URLs to begin at")
    here = wish.place
    _check_where(wish)
    _check_names(wish)
    rules = [Topic.parse(one) for one in (wish.topic, *wish.share, *wish.watched) if one not in NUMERIC]
    if here == "graph" and (worded := next((rule for rule in rules if not rule.url_only), None)):
        raise UsageError(
            f"{worded.text} needs what pages say, and a graph has their names alone",
            hint="use a rule for URLs (host:, domain:, tld:, prefix:, url:), or walk in a survey or on the web",
        )
    if here != "graph":
        check_available((*wish.mean, *wish.watched), url_only=rules[0].url_only)
    if SampleGoal.parse(wish.goal).width is not None:
        _check_width(wish)
    fetching = {**given, **({"out": wish.out} if wish.out else {})}
    if fetching and here != "web":
        raise UsageError(
            f"--{next(iter(fetching)).replace('_', '-')} is for pages that are fetched, and in a {here} none are",
            hint="leave it out, or give URLs to begin at",
        )
    if wish.start and here == "web":
        raise UsageError("--start is for graphs and surveys", hint="walks on the web begin at the URLs that are named")
    if "language" in wish.by and here == "graph":
        raise UsageError("a graph does not know in which language pages are", hint="--by language needs their text")
    if wish.in_links and here == "survey":
        raise UsageError("--in-links is not for surveys: all links between pages read are known", hint="leave it out")


def _check_where(wish: Wish) -> None:
    """Refuse what is not there, and graphs and surveys among URLs: nobody means to fetch http://web.graph/."""
    from surveyor.cli.ranked import is_survey

    if wish.place == "graph" and not Path(wish.where[0]).exists():
        raise UsageError(
            f"there is no graph or survey {wish.where[0]!r}", hint="check the name; URLs begin with https://"
        )
    for word in wish.where if wish.place == "web" else ():
        if "://" not in word and (is_survey(word) or _is_file(word)):
            raise UsageError(
                f"{word} is a file or folder, and walks go over one of them alone, or over the web",
                hint="name one graph or survey; URLs begin with https://, and lists of them go with --seeds",
            )


def _check_names(wish: Wish) -> None:
    """Refuse to take the share of a number, or to wait for the interval of a category."""
    from surveyor.estimate.sampling.properties import CATEGORICAL, NUMERIC

    if number := next((one for one in wish.share if one in NUMERIC), None):
        raise UsageError(f"{number} is a number, and pages have no share of it", hint=f"ask for --mean {number}")
    if kind := next((one for one in (*wish.share, *wish.watched) if one in CATEGORICAL), None):
        raise UsageError(
            f"{kind} is no rule that a page meets or not", hint=f"ask for --by {kind}, or name one, such as tld:uk"
        )


def _check_width(wish: Wish) -> None:
    """Refuse a width of nothing, or of links: 3 % of a link is never reached."""
    if not wish.watched:
        raise UsageError("nothing says which interval is to be narrow", hint="name it with --share, --mean or --of")
    if number := next((one for one in wish.watched if one in ("out_degree", "degree")), None):
        raise UsageError(
            f"a width is for shares, and {number} is a number of links",
            hint="name a share with --of, or end by ess=400",
        )


def longer(words: Sequence[str], wish: Wish) -> list[str]:
    """Return a command line with twice the budget; empty if it has none.

    A budget that nobody asked for is written down.
    """
    rules = [one for one in (*wish.until, wish.goal) if BUDGET.search(one)]
    if not rules:
        return []
    if not wish.until:
        return [*words, "--until", _twice(wish.goal)]
    return [_twice(word) if word.removeprefix("--until=") in rules else word for word in words]


def _twice(rule: str) -> str:
    """Double a budget; all of its figures are kept.

    >>> _twice("ess=400,fetches=2.50k"), _twice("steps=1234567")
    ('ess=400,fetches=5k', 'steps=2469134')
    """
    return BUDGET.sub(lambda found: found[1] + _plain(2 * Decimal(found[2])), rule)


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

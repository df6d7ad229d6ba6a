"""The budgets of a crawl: how many pages of each domain may be asked for, set at the start and anew as it grows.

Limits lie in the journal, in an event `budgets`, so that whoever goes on with a survey keeps to the same ones. What a
domain has spent is counted from the visits since the survey was begun, or since the user last asked for another try
(`--again`), which begins a new period. A page refused is blocked, and its mass with it.

When limits change, domains that have room again are *opened*, and the event names them: what was refused of them before
waits again, as if it had never been refused. So a replay needs no ranking, and comes to the same state as the crawl.

Budgets by reputation start with the least for all domains. Each time half as many pages again were read, and when
nothing else is left to read, the domains are ranked by what was read so far: geometric steps, so that all rankings
and replays together cost no more than a few passes over the journal.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.budgets import MOST, Limits, Plan, parse, read_limits
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import refuse_pipe
from surveyor.outcome import Event
from surveyor.stopping import Rule, Standing
from surveyor.web.urls import domain, host

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.config import Settings
    from surveyor.crawler.replay import Derived
    from surveyor.store.directory import Folder
    from surveyor.web.urls import Urls

EVENT, REASON = "budgets", "budget"
NONE = frozenset({"", "none"})
FIRST, GROWTH = 100, 1.5  # pages read at the first ranking, and how many times as many at each later one
Rank = Callable[["Folder", int], Sequence[str]]  # the best domains, best first, as many as asked for


@dataclass(frozen=True, slots=True)
class Choice:
    """What the settings ask for: a plan, or limits from a file, or neither."""

    spec: str  # as the journal keeps it
    plan: Plan | None = None
    file: Path | None = None

    @property
    def ranks(self) -> bool:
        """Whether limits follow from ranks, and change with them."""
        return self.plan is not None and self.file is None and self.plan.reach > 0


def chosen(settings: Settings) -> Choice:
    """Read the settings; a budget that names a file is one in a file."""
    text, file = settings.budget.strip(), settings.budget_file
    if text and not file and (text.lower().endswith(".csv") or Path(text).is_file()):
        text, file = "", text
    plan = None if text.lower() in NONE else parse(text)
    if not file or text.lower() == "none":
        return Choice("none" if plan is None else str(plan), plan)
    return Choice(f"{plan or Plan()} file:{file}", plan or Plan(), Path(file))


def check(settings: Settings, before: Mapping[str, Any] | None) -> None:
    """Refuse budgets that would fail later; a file may have gone since the journal of a survey has it."""
    choice = chosen(settings)
    kept = before and all(before.get(name, "") == getattr(settings, name) for name in ("budget", "budget_file"))
    if choice.file is not None and choice.plan is not None and (choice.file.exists() or not kept):
        from_file(choice.file, choice.plan)


def from_file(file: Path, plan: Plan) -> Limits:
    """Read limits; domains that a file does not name may take the least that the plan has."""
    refuse_pipe(file, "budgets")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return read_limits(lines, str(file), plan.least)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a table"
        raise InputError(f"the budgets in {file} cannot be read: {why}", hint="check its name") from error


def raised(settings: Mapping[str, Any]) -> str:
    """Return a budget of twice as many pages, to be suggested; none for one in a file.

    >>> raised({"budget": "star"}), raised({"budget": "500"}), raised({"budget": "", "budget_file": "a.csv"})
    ('star:20-20000@10000', 'flat:1000', 'none')
    """
    try:
        plan = None if settings.get("budget_file") else parse(str(settings.get("budget", "")))
    except UsageError:  # the name of a file
        plan = None
    if plan is None or 2 * plan.most > MOST:
        return "none"
    return str(replace(plan, least=2 * plan.least, most=2 * plan.most))


class Budgeting:
    """Sets the limits of a survey, and says when to set them anew."""

    def __init__(self, folder: Folder, settings: Settings, rank: Rank, clock: Callable[[], float]) -> None:
        self._folder, self._rank, self._clock = folder, rank, clock
        self._choice, self._last = chosen(settings), latest(folder)

    @property
    def ranks(self) -> bool:
        """Whether limits follow from ranks."""
        return self._choice.ranks

    @property
    def again_at(self) -> float:
        """How many pages are read when it is time to rank domains again."""
        if not self.ranks or self._last is None:
            return math.inf
        return max(FIRST, GROWTH * float(self._last.detail["read"]))

    def begin(self, state: Derived) -> bool:
        """Set limits as the settings now say, if they are other than before; say whether domains were opened."""
        plan, file, last = self._choice.plan, self._choice.file, self._last
        same = last is not None and last.detail["spec"] == self._choice.spec
        if (plan is None and last is None) or (same and file is None):
            return False
        if plan is None:
            limits = Limits(MOST)
        elif file is not None:
            kept = last is not None and same and not file.exists()
            limits = limits_of(last) if last is not None and kept else from_file(file, plan)
        else:
            limits = self._by_rank(plan)
        unchanged = same and last is not None and last.detail["digest"] == limits.digest
        return False if unchanged else self._set(limits, state)

    def renew(self, state: Derived) -> bool:
        """Rank domains by what was read so far and set limits; say whether domains were opened."""
        plan, last = self._choice.plan, self._last
        if plan is None or last is None or not self.ranks or state.tally.pages <= last.detail["read"]:
            return False
        return self._set(self._by_rank(plan), state)

    def limit(self, state: Derived) -> None:
        """Put the gate before the frontier of a state."""
        if self._last is not None and self._choice.plan is not None:
            gate = DomainBudgets(limits_of(self._last), state.urls)
            state.crawl.frontier.limit(gate, gate.spent(self._folder))

    def _by_rank(self, plan: Plan) -> Limits:
        best = self._rank(self._folder, plan.reach) if plan.reach and self._folder.journal.position else ()
        return Limits.by_rank(plan, best, [domain(host(seed)) for seed in self._folder.manifest.seeds])

    def _set(self, limits: Limits, state: Derived) -> bool:
        """Write limits down, with the domains that have room again."""
        rooms = sorted(_with_room(DomainBudgets(limits, state.urls), self._folder, state))
        told = {
            "spec": self._choice.spec, "read": state.tally.pages, "rest": limits.rest, "pages": dict(limits.pages),
            "digest": limits.digest, "opened": rooms,
        }  # fmt: skip
        self._folder.journal.commit([], events=[Event(EVENT, self._clock(), told)])
        self._last = latest(self._folder)
        return bool(rooms)


def _with_room(gate: DomainBudgets, folder: Folder, state: Derived) -> set[str]:
    """Return the domains of which pages are blocked for want of a budget, and that now have one."""
    from surveyor.kernels.mass import BLOCKED, LIFE

    life, spent = state.crawl.ledger.state & LIFE, gate.spent(folder)
    pages = [one.page for one in folder.journal.blocked() if one.reason == REASON and life[one.page] == BLOCKED]
    domains = {gate.domain(page) for page in pages}
    names = gate.names()
    return {names[number] for number in domains if spent.get(number, 0) < gate.limit(number)}


def events(folder: Folder) -> Iterator[Event]:
    """Yield what the journal says about budgets."""
    return folder.journal.events(EVENT)


def latest(folder: Folder) -> Event | None:
    """Return the last time that limits were set."""
    return next(iter([*events(folder)][-1:]), None)


def limits_of(event: Event) -> Limits:
    """Return the limits that an event set."""
    return Limits(int(event.detail["rest"]), dict(event.detail["pages"]))


def opened(folder: Folder) -> dict[str, int]:
    """Return the domains that got room again, and after how many visits the last time."""
    return {name: event.visit for event in events(folder) for name in event.detail["opened"]}


class DomainBudgets:
    """The gate of a crawl: domains by number, as pages of them come up."""

    def __init__(self, limits: Limits, urls: Urls) -> None:
        self._limits, self._urls = limits, urls
        self._numbers: dict[str, int] = {}
        self._most: list[int] = []

    def domain(self, page: int) -> int:
        """Return the number of the domain of a page."""
        return self._number(domain(host(self._urls[page])))

    def limit(self, domain: int) -> int:
        """Return how many pages a domain may take."""
        return self._most[domain]

    def names(self) -> list[str]:
        """Return the domains that were met, by number."""
        return list(self._numbers)

    def spent(self, folder: Folder) -> dict[int, int]:
        """Count what each domain has spent in this period."""
        counted: dict[int, int] = {}
        pages = asked(folder)
        hosts, first, counts = np.unique(self._urls.host_ids(pages), return_index=True, return_counts=True)
        for entry in range(hosts.size):
            number = self.domain(int(pages[first[entry]]))
            counted[number] = counted.get(number, 0) + int(counts[entry])
        return counted

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._most))
        if number == len(self._most):
            self._most.append(self._limits.of(name))
        return number


def asked(folder: Folder) -> IdArray:
    """Return the pages that were asked for in this period, each as often as it was."""
    again = [event.visit for event in folder.journal.events("again")]
    return folder.journal.asked(since=again[-1] if again else 0)


class OrRank(Rule):
    """The rule of a crawl, or that it is time to rank domains again."""

    def __init__(self, until: Rule, again_at: float) -> None:
        self._until, self.again_at = until, again_at

    def done(self, standing: Standing) -> bool:
        """Say whether to stop, for either reason."""
        return self._until.done(standing) or standing.pages >= self.again_at

    def hopeless(self, standing: Standing) -> bool:
        """Answer for the rule."""
        return self._until.hopeless(standing)

    def room(self, standing: Standing) -> int:
        """Answer for the rule."""
        return self._until.room(standing)

    def limits(self) -> tuple[float, int] | None:
        """Answer for the rule."""
        return self._until.limits()

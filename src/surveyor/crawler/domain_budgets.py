"""Page budgets of a crawl: the number of pages to request from each domain, set at the start and updated as it grows.

Limits are recorded in the journal as an event `budgets`, so a resumed crawl keeps the same ones. The pages a domain
has spent are counted from the visits since the survey began or since the last retry of blocked pages (`--again`),
which starts a new period. A page refused for its budget is blocked, and so is its mass.

When limits change, domains below their limit again are *opened*, and the event lists them: their refused pages are
queued again as if they had never been refused. A replay therefore needs no ranking and reaches the state of the crawl.

Budgets by reputation start at the minimum for all domains. The domains are ranked again whenever the number of pages
read has grown by half, and when the queue is empty. With these geometric steps, all rankings and replays together cost
no more than a few passes over the journal.
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
from surveyor.stopping import Progress, Rule
from surveyor.web.urls import domain, host

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.config import Settings
    from surveyor.crawler.replay import Derived
    from surveyor.store.directory import SurveyFolder
    from surveyor.web.urls import Urls

EVENT, REASON = "budgets", "budget"
NONE = frozenset({"", "none"})
FIRST, GROWTH = 100, 1.5  # pages read at the first ranking, and growth factor until each later one
Rank = Callable[["SurveyFolder", int], Sequence[str]]  # returns the given number of domains, best first


@dataclass(frozen=True, slots=True)
class Choice:
    """Budget chosen in the settings: a plan, limits from a file, or neither."""

    spec: str  # as recorded in the journal
    plan: Plan | None = None
    file: Path | None = None

    @property
    def ranks(self) -> bool:
        """Whether limits depend on ranks."""
        return self.plan is not None and self.file is None and self.plan.reach > 0


def chosen(settings: Settings) -> Choice:
    """Return the budget chosen in the settings; a budget that names a file is read from it."""
    text, file = settings.budget.strip(), settings.budget_file
    if text and not file and (text.lower().endswith(".csv") or Path(text).is_file()):
        text, file = "", text
    plan = None if text.lower() in NONE else parse(text)
    if not file or text.lower() == "none":
        return Choice("none" if plan is None else str(plan), plan)
    return Choice(f"{plan or Plan()} file:{file}", plan or Plan(), Path(file))


def check(settings: Settings, before: Mapping[str, Any] | None) -> None:
    """Reject invalid budgets before the crawl; an unchanged file may be missing, as the journal has its limits."""
    choice = chosen(settings)
    kept = before and all(before.get(name, "") == getattr(settings, name) for name in ("budget", "budget_file"))
    if choice.file is not None and choice.plan is not None and (choice.file.exists() or not kept):
        from_file(choice.file, choice.plan)


def from_file(file: Path, plan: Plan) -> Limits:
    """Read limits from a file; domains that it does not list get the minimum of the plan."""
    refuse_pipe(file, "budgets")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return read_limits(lines, str(file), plan.least)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a table"
        raise InputError(f"the budgets in {file} cannot be read: {why}", hint="check its name") from error


def raised(settings: Mapping[str, Any]) -> str:
    """Return a budget of twice as many pages, for a hint; "none" for a budget in a file.

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
    """Sets the limits of a survey and schedules their updates."""

    def __init__(self, folder: SurveyFolder, settings: Settings, rank: Rank, clock: Callable[[], float]) -> None:
        self._folder, self._rank, self._clock = folder, rank, clock
        self._choice, self._last = chosen(settings), latest(folder)

    @property
    def ranks(self) -> bool:
        """Whether limits depend on ranks."""
        return self._choice.ranks

    @property
    def again_at(self) -> float:
        """Number of pages read at which domains are ranked again."""
        if not self.ranks or self._last is None:
            return math.inf
        return max(FIRST, GROWTH * float(self._last.detail["read"]))

    def begin(self, state: Derived) -> bool:
        """Set limits from the current settings if they changed; return whether domains were opened."""
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
        """Rank domains by the pages read so far and set limits; return whether domains were opened."""
        plan, last = self._choice.plan, self._last
        if plan is None or last is None or not self.ranks or state.tally.pages <= last.detail["read"]:
            return False
        return self._set(self._by_rank(plan), state)

    def limit(self, state: Derived) -> None:
        """Set the budgets of the frontier of a state."""
        if self._last is not None and self._choice.plan is not None:
            gate = DomainBudgets(limits_of(self._last), state.urls)
            state.crawl.frontier.limit(gate, gate.spent(self._folder))

    def _by_rank(self, plan: Plan) -> Limits:
        best = self._rank(self._folder, plan.reach) if plan.reach and self._folder.journal.position else ()
        return Limits.by_rank(plan, best, [domain(host(seed)) for seed in self._folder.manifest.seeds])

    def _set(self, limits: Limits, state: Derived) -> bool:
        """Record limits, with the domains that are below their limit again."""
        rooms = sorted(_with_room(DomainBudgets(limits, state.urls), self._folder, state))
        detail = {
            "spec": self._choice.spec, "read": state.tally.pages, "rest": limits.rest, "pages": dict(limits.pages),
            "digest": limits.digest, "opened": rooms,
        }  # fmt: skip
        self._folder.journal.commit([], events=[Event(EVENT, self._clock(), detail)])
        self._last = latest(self._folder)
        return bool(rooms)


def _with_room(gate: DomainBudgets, folder: SurveyFolder, state: Derived) -> set[str]:
    """Return the domains with pages blocked by their budget that are now below it."""
    from surveyor.kernels.mass import BLOCKED, STATUS

    life, spent = state.crawl.ledger.state & STATUS, gate.spent(folder)
    pages = [one.page for one in folder.journal.blocked() if one.reason == REASON and life[one.page] == BLOCKED]
    domains = {gate.domain(page) for page in pages}
    names = gate.names()
    return {names[number] for number in domains if spent.get(number, 0) < gate.limit(number)}


def events(folder: SurveyFolder) -> Iterator[Event]:
    """Yield the budget events of the journal."""
    return folder.journal.events(EVENT)


def latest(folder: SurveyFolder) -> Event | None:
    """Return the latest budget event; None if there is none."""
    return next(iter([*events(folder)][-1:]), None)


def limits_of(event: Event) -> Limits:
    """Return the limits that an event set."""
    return Limits(int(event.detail["rest"]), dict(event.detail["pages"]))


def opened(folder: SurveyFolder) -> dict[str, int]:
    """Return the domains that were opened, each with the number of visits before the last time."""
    return {name: event.visit for event in events(folder) for name in event.detail["opened"]}


class DomainBudgets:
    """Budgets of a live crawl; domains are numbered as their pages come up."""

    def __init__(self, limits: Limits, urls: Urls) -> None:
        self._limits, self._urls = limits, urls
        self._numbers: dict[str, int] = {}
        self._most: list[int] = []

    def domain(self, page: int) -> int:
        """Return the number of the domain of a page."""
        return self._number(domain(host(self._urls[page])))

    def limit(self, domain: int) -> int:
        """Return the page budget of a domain."""
        return self._most[domain]

    def names(self) -> list[str]:
        """Return the names of the numbered domains, in order."""
        return list(self._numbers)

    def spent(self, folder: SurveyFolder) -> dict[int, int]:
        """Count the pages requested from each domain in this period."""
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


def asked(folder: SurveyFolder) -> IdArray:
    """Return the pages requested in this period, one entry per request."""
    again = [event.visit for event in folder.journal.events("again")]
    return folder.journal.asked(since=again[-1] if again else 0)


class OrRank(Rule):
    """Stopping rule that is also met when domains are due to be ranked again."""

    def __init__(self, until: Rule, again_at: float) -> None:
        self._until, self.again_at = until, again_at

    def done(self, progress: Progress) -> bool:
        """Return whether to stop, for either reason."""
        return self._until.done(progress) or progress.pages >= self.again_at

    def unreachable(self, progress: Progress) -> bool:
        """Delegate to the wrapped rule."""
        return self._until.unreachable(progress)

    def remaining(self, progress: Progress) -> int:
        """Delegate to the wrapped rule."""
        return self._until.remaining(progress)

    def limits(self) -> tuple[float, int] | None:
        """Delegate to the wrapped rule."""
        return self._until.limits()

"""A crawl that stores no link graph: cash and history are on disk, links are forgotten once cash has moved over them.

OPIC needs no link that it has seen before. So this mode keeps, for each known page, its cash and its earnings, and for
each URL a hash; the journal has the visits without their links. The state is not replayed: the rows of cash that an
outcome changes are committed in the transaction of its visit (`store/cash.py`), and a resumed crawl reads them.

**Order.** Cash moves in memory, then outcome and changed rows are committed together, then the queue follows
(`to_commit`, `apply`). If the commit fails the crawl ends, and the state in memory is not used any more.

**What is missing** follows from the missing links. There is no coverage, no rank, no explanation and no export of
links. Pages are requested unconditionally, since a response 304 would need the links of an earlier visit. Seeds, scope,
strategy and damping are fixed, and a limit of depth or of pages per domain is refused: with other values all links
would have to be seen again.

**Memory** per known URL, whatever its length: 69 bytes of cash and history (77 with `adaptive:bao`), 24 of the queue,
14 to 20 of the URL index and 3 of statuses, plus up to a quarter for growth. docs/explanation/no-graph.md has
measurements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.loop import Crawl, Tally, strategy_errors
from surveyor.crawler.page_states import PageStates
from surveyor.crawler.replay import SCOPE, SINGLE_QUEUE, Derived, Queues, listed_in_scope, scope_of, tried_again
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.adaptive import AdaptiveOpic
from surveyor.crawler.strategies.opic import Opic
from surveyor.crawler.strategies.strategy import Reorder, rereads
from surveyor.errors import UsageError
from surveyor.fetch.responses import Reader
from surveyor.outcome import LISTS, NO_LINKS, Event, Outcome, Visit
from surveyor.stopping import Coverage, Rule, contains, parse_rule, scouting_rule
from surveyor.store.cash import COLUMNS, ROUNDING, CashChanges, StoredCash
from surveyor.store.disk import damaged
from surveyor.web.stored_urls import StoredUrls

if TYPE_CHECKING:
    from surveyor.store.directory import SurveyFolder
    from surveyor.store.manifest import Manifest

FIXED = ("strategy", "damping", *SCOPE)  # settings that determine the cash
AT_ONCE = 1 << 18  # pages queued at a time
HELP = "docs/explanation/no-graph.md states what this mode keeps"
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class GraphlessCrawl(Crawl):
    """The state of a crawl whose links are forgotten."""

    prepared: deque[Reorder] = field(default_factory=deque)  # new priorities of outcomes that are being committed
    touched: list[IdArray] = field(default_factory=list)  # pages whose rows changed since the last commit
    moved: list[int] = field(default_factory=list)  # of these, those whose place changed
    turns: dict[int, None] = field(default_factory=dict)  # greedy: pages whose turn it is, whatever their cash
    placed: list[int] = field(default_factory=lambda: [0])  # number of pages whose place is on disk

    @property
    def opic(self) -> Opic:
        """The strategy."""
        found = self.strategy
        if not isinstance(found, Opic):
            raise UsageError(f"a crawl without a link graph needs OPIC, got {found!r}", hint="use --strategy opic")
        return found

    def begin(self, rng: np.random.Generator) -> None:
        """Let the strategy rank the seeds."""
        Crawl.begin(self, rng)
        self.touched.extend((self.ledger.seeds, self.ledger.listed))

    def to_commit(self, outcomes: Sequence[Outcome]) -> tuple[Sequence[Outcome], CashChanges | None]:
        """Move cash over the links of outcomes; return the outcomes without links, and the rows that changed."""
        for outcome in outcomes:
            if outcome.kind == "redirected" and self.opic.weight_of(outcome.page) > 0:
                self.moved.extend((outcome.page, int(self._final([outcome.target])[0])))
            self.ledger.observe(outcome, NO_LINKS)
            with strategy_errors(self.strategy, f"after page {outcome.page}"):
                change = self.strategy.observe(outcome, NO_LINKS)
            self.prepared.append(change)
            self._touch(outcome, change)
        changes = self._changes() if self.touched else None
        return [without_links(outcome) for outcome in outcomes], changes

    def apply(self, outcome: Outcome) -> None:
        """Update the queue for an outcome that is committed now."""
        self.frontier.settle(outcome)
        with strategy_errors(self.strategy, f"after page {outcome.page}"):
            self.frontier.update(self.prepared.popleft())

    def apply_event(self, event: Event) -> None:
        """Do nothing: no event changes cash."""

    def _final(self, pages: Sequence[int]) -> IdArray:
        return self.opic.final_targets(np.array(pages, np.int32))

    def _touch(self, outcome: Outcome, change: Reorder) -> None:
        """Note which rows an outcome changes: the page, its links, and what these redirect to."""
        named = np.array([outcome.page, *([outcome.target] if outcome.target >= 0 else [])], np.int32)
        pages = np.concatenate([named, outcome.links])
        self.touched.extend((pages, self.opic.final_targets(pages)))
        if self.opic.policy != "greedy":
            self.touched.append(change.pages)
            return
        first = np.isinf(change.priorities)
        if self.turns:
            for page in self.turns.keys() & set(change.pages[~first].tolist()):
                del self.turns[page]
        self.turns.update(dict.fromkeys(change.pages[first].tolist()))

    def _changes(self) -> CashChanges:
        """Return the rows of the touched pages, and the numbers of the whole crawl."""
        from surveyor.kernels.mass import FETCHED, WAITING
        from surveyor.kernels.opic_cash import PAGES

        opic, pages = self.opic, np.unique(np.concatenate(self.touched))
        ids, known = pages.tolist(), int(opic.cash.counts[PAGES])
        columns: dict[str, Sequence[Any]] = dict.fromkeys(COLUMNS, [0] * pages.size)
        columns |= {name: values[pages].tolist() for name, values in columns_of(opic).items()}
        columns |= {"page": ids, "status": self.ledger.state[pages].tolist()}
        goals = opic.redirects_of(pages).tolist()
        columns["target"] = [None if goal == page else goal for page, goal in zip(ids, goals, strict=True)]
        since = self.placed[0]
        places = dict(zip(opic.cash.order[since:known].tolist(), range(since, known), strict=True))
        for page in self.moved:
            places[page] = int(np.flatnonzero(opic.cash.order[:known] == page)[0])
        columns["place"] = [places.get(page) for page in ids]
        columns["priority"] = [None] * pages.size if opic.policy == "greedy" else self._priorities(ids)
        self.placed[0] = known
        self.moved.clear()
        self.touched.clear()
        queued = {WAITING, FETCHED} if self.frontier.rereads else {WAITING}
        turns = [page for page in self.turns if self.ledger.state[page] in queued]
        return CashChanges(columns, {**numbers_of(opic), "turns": turns})

    def _priorities(self, pages: Sequence[int]) -> list[float | None]:
        """Return the new priorities of pages; None for those that have not changed."""
        new: dict[int, float] = {}
        for change in self.prepared or [self.frontier.queued()]:
            new.update(zip(change.pages.tolist(), change.priorities.tolist(), strict=True))
        return [new.get(page) for page in pages]


def without_links(outcome: Outcome) -> Outcome:
    """Return an outcome as it is stored: a fetched page without its links."""
    if outcome.kind != "fetched":
        return outcome
    forgotten = dict.fromkeys(("links", *(LISTS if isinstance(outcome, Visit) else ())), NO_LINKS)
    if isinstance(outcome, Visit):
        outcome = replace(outcome, contexts=b"")
    return replace(outcome, **forgotten)  # type: ignore[arg-type]  # all three are lists of ids


def columns_of(opic: Opic) -> dict[str, Numbers]:
    """Return the arrays of OPIC that have a number for each page, under the names of their columns on disk."""
    cash = opic.cash
    arrays: dict[str, Numbers] = {**cash._asdict(), **cash.earnings._asdict()}
    stored = {name: array for name, array in arrays.items() if name in COLUMNS}
    if "link_set" in stored:
        stored["link_set"] = stored["link_set"].view(np.int64)
    return {name: array for name, array in stored.items() if array.size}


def numbers_of(opic: Opic) -> dict[str, list[float]]:
    """Return the numbers of OPIC that are not of a page."""
    from surveyor.kernels.opic_visits import CLOCK, TICKET, TURN

    plan, pace = opic.changes.plan, opic.changes.pace
    queue = [int(plan[TURN]), int(plan[TICKET]), float(pace[CLOCK])]
    return {"totals": opic.cash.totals.tolist(), "counts": opic.cash.counts.tolist(), "queue": queue}


def load(opic: Opic, stored: StoredCash) -> None:
    """Set the arrays of a strategy after `begin`, with room for all pages; raise ValueError if they disagree."""
    from surveyor.kernels import opic_cash, opic_visits

    pages, state, cash = stored.pages, stored.state, opic.cash
    for name, array in columns_of(opic).items():
        array[:] = 0
        array[pages] = stored.columns[name]
    cash.order[stored.columns["place"]] = pages
    redirected = stored.columns["target"] >= 0
    opic.restore_redirects(pages[redirected], stored.columns["target"][redirected])
    damping, queue = float(cash.totals[opic_cash.DAMPING]), state.get("queue", ())
    for name, numbers in (("totals", cash.totals), ("counts", cash.counts), ("queue", np.empty(3))):
        if len(state.get(name, ())) != numbers.size:
            raise ValueError(f"the {name} of its cash are missing")
        numbers[:] = state[name]
    opic.changes.plan[[opic_visits.TURN, opic_visits.TICKET]] = [int(number) for number in queue[:2]]
    opic.changes.pace[opic_visits.CLOCK] = queue[2]
    counts, totals = cash.counts, cash.totals
    if totals[opic_cash.DAMPING] != damping or counts[opic_cash.UNIFORM] or counts[opic_cash.PAGES] != pages.size:
        raise ValueError("its cash is that of another crawl")
    if min(*queue, *counts.tolist()) < 0 or counts[opic_cash.WEIGHTED] > pages.size:
        raise ValueError("a count of its cash is negative or too large")
    weights = float(cash.weight[pages][cash.state[pages] & opic_cash.OUT == 0].sum())
    if not abs(weights - totals[opic_cash.WEIGHTS]) <= ROUNDING:
        raise ValueError(f"the weights of its pages sum to {weights:g}, not to {totals[opic_cash.WEIGHTS]:g}")
    if not abs(total_cash(opic) - 1) <= ROUNDING:
        raise ValueError(f"its cash is {total_cash(opic):.12g} in total, not 1")


def cash_of(opic: Opic) -> FloatArray:
    """Return the cash of each page, with its share of the jumps."""
    from surveyor.kernels.opic_cash import BETA, OUT

    cash = opic.cash
    owed = np.where(cash.state & OUT, 0.0, cash.weight * (cash.totals[BETA] - cash.settled))
    held: FloatArray = cash.cash + np.where(cash.weight > 0, owed, 0.0)
    return held


def total_cash(opic: Opic) -> float:
    """Return the sum of all cash, that of the virtual page included: 1 except for rounding."""
    from surveyor.kernels.opic_cash import VIRTUAL

    return float(cash_of(opic).sum() + opic.cash.totals[VIRTUAL])


def strategy_of(manifest: Manifest) -> Opic:
    """Return the strategy of a survey without a link graph; raise UsageError for one that needs links."""
    name = str(manifest.setting("strategy"))
    strategy = by_name(name)
    windowed = isinstance(strategy, AdaptiveOpic) and strategy.window not in ("static", "bao")
    if not isinstance(strategy, Opic) or windowed or strategy.teleport != "trusted":
        hint = "use --strategy opic, opic:cycle, opic:random or adaptive:bao"
        raise UsageError(f"strategy {name} cannot crawl without a link graph (--no-graph)", hint=hint)
    return strategy


def check_graphless(manifest: Manifest, before: Mapping[str, Any] | None) -> None:
    """Reject settings that need a link graph, and changes that would have to see all links again."""
    settings = manifest.settings
    strategy_of(manifest)
    _check_rule(parse_rule(str(manifest.setting("until"))))
    for name, option in (("depth", "--depth"), ("budget", "--budget"), ("budget_file", "--budget-file")):
        if settings.get(name) not in (None, "", "none"):
            raise UsageError(f"{option} needs the link graph, which --no-graph does not store", hint=HELP)
    for name in FIXED:
        if before is not None and settings.get(name) != before.get(name):
            raise UsageError(
                f"{name} cannot change in a survey without a link graph, as no link can be seen again",
                hint="leave it out to resume the survey, or begin another one with --fresh",
            )


def _check_rule(until: Rule) -> None:
    if contains(until, Coverage) or scouting_rule(until) is not None:
        raise UsageError(
            f"the goal {until} needs the link graph, which --no-graph does not store",
            hint="set another goal, such as --until requests=10000 or --until minutes=60",
        )


def opic_of(folder: SurveyFolder) -> Opic | None:
    """Return the strategy of a survey with its cash, without URLs and queue; None if nothing was stored yet."""
    stored = folder.journal.read_cash()
    return None if stored is None else _loaded(folder, stored, np.zeros(1, np.int32), [1.0])[1]


def restore(
    folder: SurveyFolder,
    queues: Queues = SINGLE_QUEUE,
    *,
    sent: Mapping[str, str] | None = None,
    until: Rule | None = None,
) -> Derived:
    """Read the state of a survey without a link graph; `until` decides whether fetched pages are fetched again."""
    manifest, journal = folder.manifest, folder.journal
    rule = until or parse_rule(str(manifest.setting("until")))
    _check_rule(rule)
    stored = journal.read_cash()  # first: it says how many URLs there are
    urls = StoredUrls(journal.urls_between, lambda: journal.url_count, journal.hash_key)
    try:
        urls.restore(journal.url_count)
    except ValueError as error:
        raise damaged(journal.path, error) from error
    seeds = urls.ids(manifest.seeds)
    ledger, strategy = _loaded(folder, stored, seeds, manifest.seed_weights)
    if stored is None:
        ledger.announce(urls.ids(listed_in_scope(manifest)))
    reader = Reader(
        urls, scope_of(manifest), seeds.tolist(), follow_nofollow=bool(manifest.setting("follow_nofollow")), sent=sent
    )
    for page, target in journal.redirects():
        urls.alias(page, target)
    frontier = Frontier(ledger, rereads=rereads(strategy, rule), queues=queues(ledger.capacity, urls))
    walks = CoverageWalks(PageStates([0], None, lambda pages: pages, damping=ledger.damping))  # none: they need links
    crawl = GraphlessCrawl(ledger.graph, ledger, strategy, frontier, walks)
    if stored is None:
        crawl.begin(np.random.default_rng(manifest.rng))
    else:
        crawl.placed[0] = stored.pages.size
        _queue(folder, crawl, stored)
    tally = Tally(exact=True)
    tally.pages, tally.bytes, tally.requests = journal.cost()
    return Derived(urls, crawl, reader, tally)


def _loaded(
    folder: SurveyFolder, stored: StoredCash | None, seeds: IdArray, weights: Sequence[float]
) -> tuple[PageStates, Opic]:
    """Return the statuses and the strategy with the stored cash; without any, as at the start."""
    manifest = folder.manifest
    strategy = strategy_of(manifest)
    damping = float(manifest.setting("damping"))
    ledger = PageStates(seeds, weights, lambda pages: strategy.final_targets(pages), damping=damping)
    if stored is not None:
        ledger.restore(stored.pages, stored.columns["status"], folder.journal.url_count)
        strategy.begin(ledger, ledger.graph, np.random.default_rng(manifest.rng))
        try:
            load(strategy, stored)
        except ValueError as error:
            raise damaged(folder.journal.path, error) from error
    return ledger, strategy


def _queue(folder: SurveyFolder, crawl: GraphlessCrawl, stored: StoredCash) -> None:
    """Queue the pages that can be fetched."""
    from surveyor.kernels.mass import BLOCKED, FETCHED, STATUS, WAITING

    opic, state = crawl.opic, crawl.ledger.mass.state
    again = np.array(folder.journal.blocked_before(tried_again(folder)[0]), np.int32)
    state[again[state[again] == BLOCKED]] = WAITING
    priorities = cash_of(opic) if opic.policy == "greedy" else _stored_priorities(folder, opic, stored)
    if turns := [int(page) for page in stored.state.get("turns", ()) if 0 <= page < priorities.size]:
        crawl.turns.update(dict.fromkeys(turns))
        priorities[turns] = np.inf
    also = (WAITING, FETCHED) if crawl.frontier.rereads else (WAITING,)
    pages = stored.pages[np.isin(state[stored.pages] & STATUS, also)]
    for at in range(0, pages.size, AT_ONCE):
        some = pages[at : at + AT_ONCE]
        crawl.frontier.update(Reorder(some, priorities[some]))


def _stored_priorities(folder: SurveyFolder, opic: Opic, stored: StoredCash) -> FloatArray:
    if np.isnan(stored.columns["priority"]).any():
        raise damaged(folder.journal.path, "a page has no place in the queue")
    priorities = np.zeros(opic.cash.cash.size)
    priorities[stored.pages] = stored.columns["priority"]
    if opic.policy == "random":
        opic.changes.due[: priorities.size] = -priorities
    return priorities

"""Replay of the journal of a survey into its state: URLs, graph, accounts and queue.

Coverage and ranks are functions of the journal, the seeds and the settings, so a resumed crawl and a command that reads
the survey meanwhile compute the same numbers. A checkpoint saves replaying the visits before it; it is used only if it
was made with the same seeds and settings.

If seeds were added or the scope was changed, the scope of all links is evaluated again: links that were out of scope
may now be in scope. After a request to retry blocked pages (an event `again`), all pages blocked before it are queued
as if they had never been requested; so are the refused pages of a domain whose budget was raised (`budgets.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

import surveyor
from surveyor.arrays import BoolArray, FloatArray, IdArray
from surveyor.config import names_code
from surveyor.crawler.budgets import REASON, opened
from surveyor.crawler.coverage_walks import CoverageWalks
from surveyor.crawler.frontier import Frontier
from surveyor.crawler.ledger import Ledger, PushOptions
from surveyor.crawler.loop import Crawl, Tally
from surveyor.crawler.queues import HostQueues, SingleQueue
from surveyor.crawler.scout_walks import ScoutWalks
from surveyor.crawler.shards.ledger import ShardLedger
from surveyor.crawler.shards.placement import UrlPlacement
from surveyor.crawler.shards.state import ShardCrawl
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.strategy import Reorder, ReplayStrategy, Strategy, rereads
from surveyor.crawler.topics.focus import focused
from surveyor.errors import UsageError
from surveyor.fetch.responses import Reader
from surveyor.graph.csr import Graph
from surveyor.graph.growing import GrowingGraph
from surveyor.graph.names import Names
from surveyor.outcome import DISCARDING, NO_LINKS, Event, Outcome
from surveyor.stopping import Rule
from surveyor.store import layout
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged
from surveyor.store.manifest import Manifest
from surveyor.store.snapshot import restore, snapshot
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls, domain, host

EFFORT = 2_500.0  # link updates per fetched page, on average: an eighth of a millisecond, where a page takes one
URL = re.compile(r"https?://[!-.0-~]+/[!-~]*")
SCOPE = ("scope", "include", "exclude", "depth", "follow_nofollow")
DELETED = "deleted"  # reason of pages of a deleted host: permanently blocked
Queues = Callable[[int, Urls], SingleQueue | HostQueues]
Make = Callable[[Urls], Strategy]  # makes a strategy for these URLs
SINGLE_QUEUE: Queues = lambda pages, _: SingleQueue(pages)  # noqa: E731


@dataclass(frozen=True, slots=True)
class Derived:
    """The state of a survey."""

    urls: Urls
    crawl: Crawl
    reader: Reader
    tally: Tally


def derive(
    folder: SurveyFolder,
    queues: Queues = SINGLE_QUEUE,
    *,
    sent: Mapping[str, str] | None = None,
    watch: Callable[[Derived, Outcome], None] | None = None,
    make: Make | None = None,
    until: Rule | None = None,
    code: bool = False,
) -> Derived:
    """Replay a journal; `watch` is called after each outcome. With `sent`, later visits carry these request headers.

    The rule `until` decides whether fetched pages are queued again (`strategy.rereads`); by default the stored one.

    A user-defined strategy class is imported only with `code`: because the user named it now, never because a survey
    does. Otherwise a neutral strategy replaces it, and the numbers are the same. `make` replaces the strategy named in
    the manifest. It observes every outcome, including refused pages that are queued again, as the original run did.
    """
    require_graph(folder)
    kept = None if watch is not None or make is not None else _from_checkpoint(folder, queues, sent, until, code=code)
    if kept is None:
        make_one = make or partial(_strategy, folder, code=code)
        kept = _initial_state(folder, urls_of(folder), queues, sent, make_one, until=until), 0, 0
    derived, since, applied = kept
    events, end = deque(_effective(folder.journal.state_events()[applied:])), folder.journal.position  # it may grow
    again, rooms = (tried_again(folder)[0], opened(folder)) if make is None else (0, {})
    for position, outcome in enumerate(_outcomes(folder, derived.reader, since), since):
        _apply_events(derived, events, position)
        if position < again and outcome.kind == "blocked" and outcome.reason != DELETED:
            continue
        if rooms and outcome.reason == REASON and position < rooms.get(domain(host(derived.urls[outcome.page])), 0):
            continue
        derived.reader.recall(outcome)
        derived.crawl.apply(outcome)
        if watch is not None:
            watch(derived, outcome)
    _apply_events(derived, events, end)
    if isinstance(derived.crawl.strategy, ReplayStrategy) and not derived.crawl.strategy.eager:
        derived.crawl.ledger.close()  # its own strategy would have done so
    derived.tally.pages, derived.tally.bytes, derived.tally.requests = folder.journal.cost()
    return derived


def _effective(events: list[Event]) -> list[Event]:
    """Leave out walks that a later event discards, and all scouts but the last.

    Their epochs remain, because their stakes are used.
    """
    last_scout = max((place for place, event in enumerate(events) if event.kind == "scout"), default=0)
    discarded = max((place for place, event in enumerate(events) if event.kind in DISCARDING), default=0)
    kept = []
    for place, event in enumerate(events):
        if place < discarded and event.kind == "epoch":
            kept.append(event._replace(detail={**event.detail, "starts": []}))
        elif not (place < discarded and event.kind == "walks") and (
            place >= last_scout or event.kind not in ("scout", "scout_sample")
        ):
            kept.append(event)
    return kept


def require_graph(folder: SurveyFolder) -> None:
    """Reject a survey without a link graph."""
    if not folder.journal.keeps_graph:
        words = ["surveyor", "top", str(folder.folder), "--importance", str(folder.manifest.setting("strategy"))]
        raise UsageError(
            f"{folder.folder} was crawled with --no-graph: it has no links, so no coverage, ranks or explanations",
            hint=f"`{shlex.join(words)}` lists its best pages",
        )


def tried_again(folder: SurveyFolder) -> tuple[int, float]:
    """Return the number of visits before, and the time of, the last request to retry blocked pages; 0 if none."""
    asked = [(event.visit, event.at) for event in folder.journal.events("retry_blocked")]
    return asked[-1] if asked else (0, 0.0)


def _apply_events(state: Derived, events: deque[Event], position: int) -> None:
    """Apply the events up to a position, and remove them."""
    while events and events[0].visit <= position:
        state.crawl.apply_event(events.popleft())


def save(folder: SurveyFolder, state: Derived) -> bool:
    """Save a checkpoint; return False if the strategy cannot be saved or the write fails."""
    if not folder.journal.keeps_graph:
        return False  # the journal has all of it
    lasting = getattr(state.crawl.strategy, "lasting", True) and not state.reader.counts_depth
    frozen = snapshot(_parts(state)) if lasting else None
    if frozen is None:
        return False
    arrays, about = frozen
    waiting = state.crawl.frontier.queued()
    arrays |= {"waiting": waiting.pages, "priorities": waiting.priorities, "by_host": state.crawl.frontier.by_host()}
    more = {
        "events": len(folder.journal.state_events()),
        **_trust(folder, state),
        "rereads": state.crawl.frontier.rereads,
    }
    return folder.save_checkpoint(arrays, {"made_under": _terms(folder), "frozen": about, **more})


def _trust(folder: SurveyFolder, state: Derived) -> dict[str, Any]:
    """Return the ids of the seeds, in order, with their weights: the ledger is made from them again."""
    manifest = folder.manifest
    weights = dict(zip(state.urls.ids(manifest.seeds).tolist(), manifest.seed_weights, strict=True))
    seeds = state.crawl.ledger.seeds.tolist()
    return {"seeds": seeds, "weights": [weights[seed] for seed in seeds]}


def _strategy(folder: SurveyFolder, urls: Urls, *, code: bool) -> Strategy:
    """Make the strategy named in the manifest, or a neutral one in place of code that the user did not name."""
    manifest = folder.manifest
    named = str(manifest.settings.get("strategy", "rankmass"))
    if names_code(named) and not code:
        return ReplayStrategy(**manifest.replay)
    try:
        strategy = by_name(named)
        if (topic := str(manifest.setting("topic"))) and manifest.authentic:  # else only its order is missing
            strategy = focused(strategy, topic, urls)
    except UsageError as error:
        if names_code(named):
            raise
        raise damaged(folder.folder / layout.MANIFEST, f"{error.problem}; {error.hint}") from error
    if int(getattr(strategy, "local", 0)) > max(folder.journal.url_count, len(manifest.seeds)):
        raise damaged(folder.folder / layout.MANIFEST, f"the strategy {named} names pages that are not known")
    return strategy


def _from_checkpoint(
    folder: SurveyFolder, queues: Queues, sent: Mapping[str, str] | None, until: Rule | None = None, *, code: bool
) -> tuple[Derived, int, int] | None:
    """Return the latest state saved with these seeds and settings, its position, and its number of events.

    For a crawl (`until`), its queue must hold the pages that this rule needs.
    """
    kept = folder.load_checkpoint()
    if kept is None or kept.about.get("made_under") != _terms(folder):
        return None
    arrays = dict(kept.arrays)
    try:
        urls, make = Urls(key=folder.journal.hash_key), partial(_strategy, folder, code=code)
        trust = kept.about["seeds"], kept.about["weights"]
        state = _initial_state(folder, urls, SINGLE_QUEUE, sent, make, trust, until=until)
        again = bool(kept.about["rereads"])
        if until is not None and again != state.crawl.frontier.rereads:
            return None
        waiting, by_host = Reorder(arrays.pop("waiting"), arrays.pop("priorities")), arrays.pop("by_host")
        restore(_parts(state), arrays, kept.about["frozen"])
    except (KeyError, ValueError):
        return None
    _add_urls(folder, state.urls)
    crawl = state.crawl  # its queue holds the seeds, under other ids
    state = _state(folder, state.urls, crawl.ledger, crawl.strategy, queues, sent, again=again)
    state = replace(state, crawl=replace(state.crawl, walks=crawl.walks, scout=crawl.scout))
    state.crawl.frontier.restore(waiting, by_host)
    state.crawl.frontier.prefer(crawl.walks.wanted)
    return state, kept.position, int(kept.about["events"])


def _parts(state: Derived) -> dict[str, object]:
    crawl = state.crawl
    return {
        "urls": state.urls,
        "graph": crawl.graph,
        "ledger": crawl.ledger,
        "strategy": crawl.strategy,
        "walks": crawl.walks,
        "scout": crawl.scout,
    }


def _terms(folder: SurveyFolder) -> str:
    """Return a digest of the inputs of a state other than the journal."""
    manifest = folder.manifest
    settings = {name: manifest.settings.get(name) for name in ("strategy", "damping", "topic", *SCOPE)}
    trust = [list(manifest.seeds), manifest.seed_weights, list(manifest.listed)]
    terms = [surveyor.__version__, trust, manifest.rng, settings, tried_again(folder)[0], opened(folder)]
    return hashlib.blake2b(json.dumps(terms, sort_keys=True, default=list).encode(), digest_size=16).hexdigest()


def urls_of(folder: SurveyFolder) -> Urls:
    """Return the URLs of a journal, each under its id."""
    urls = Urls(folder.journal.url_count + (1 << 12), folder.journal.hash_key)
    _add_urls(folder, urls)
    return urls


def _add_urls(folder: SurveyFolder, urls: Urls) -> None:
    """Add the missing URLs of the journal, each under its id there."""
    rest = folder.journal.urls(len(urls))
    while some := list(islice(rest, 1 << 16)):
        first = len(urls)
        sound = all(isinstance(url, str) and URL.fullmatch(url) for url in some)
        if not sound or urls.ids(some)[-1] != first + len(some) - 1:
            raise damaged(folder.journal.path, f"some pages after {first} have no URLs")


def _initial_state(
    folder: SurveyFolder,
    urls: Urls,
    queues: Queues,
    sent: Mapping[str, str] | None,
    make: Make,
    trust: tuple[Sequence[int], Sequence[float]] | None = None,
    *,
    until: Rule | None = None,
) -> Derived:
    """Return the state before the first page.

    `trust` has the ids of the seeds and their weights, by default those of their URLs; listed pages then follow.
    """
    manifest = folder.manifest
    settings, known = manifest.settings, urls.ids(manifest.seeds)
    listed = urls.ids(listed_in_scope(manifest)) if trust is None else NO_LINKS
    seeds, weights = (known, manifest.seed_weights) if trust is None else trust
    strategy = make(urls)
    graph = GrowingGraph(len(urls))
    place = placement_of(folder, urls, knows_pages=trust is None)
    new: Callable[..., Ledger] = Ledger
    if place is not None:
        new = partial(ShardLedger, placement=place)
    ledger = new(
        graph,
        seeds,
        weights,
        damping=settings.get("damping", 0.85),
        push=PushOptions(getattr(strategy, "closure", 0.1), getattr(strategy, "eager", True), EFFORT),
        pages=max(1024, len(urls)),
        aliases=True,
    )
    ledger.announce(listed)
    again = rereads(strategy, until or str(manifest.setting("until")))
    state = _state(folder, urls, ledger, strategy, queues, sent, again=again)
    state.crawl.begin(np.random.default_rng(manifest.rng))
    return state


def _state(
    folder: SurveyFolder,
    urls: Urls,
    ledger: Ledger,
    strategy: Strategy,
    queues: Queues,
    sent: Mapping[str, str] | None,
    *,
    again: bool,
) -> Derived:
    """Return a state with an empty queue."""
    manifest, walks, scout = folder.manifest, CoverageWalks(ledger), ScoutWalks(ledger)
    follows = bool(manifest.settings.get("follow_nofollow", False))
    seeds = [*urls.ids(manifest.seeds).tolist(), *ledger.listed.tolist()]
    texts = bool(manifest.settings.get("main_text", False))
    reader = Reader(urls, scope_of(manifest), seeds, follow_nofollow=follows, main_text=texts, sent=sent)
    frontier = Frontier(ledger, rereads=again, queues=queues(ledger.capacity, urls))
    new = ShardCrawl if isinstance(ledger, ShardLedger) else Crawl
    return Derived(urls, new(ledger.graph, ledger, strategy, frontier, walks, scout), reader, Tally(exact=True))


def placement_of(folder: SurveyFolder, urls: Urls, *, knows_pages: bool) -> UrlPlacement | None:
    """Return the shards of the URLs of a survey that is a shard; None if it is not."""
    started = next(folder.journal.events("shard_start"), None)
    if started is None:
        return None
    index, count = int(started.detail["shard"]), int(started.detail["shards"])
    return UrlPlacement(urls, index, count, knows_pages=knows_pages)


def listed_in_scope(manifest: Manifest) -> list[str]:
    """Return the listed pages that are in scope."""
    if not manifest.listed:
        return []
    scope = scope_of(manifest)
    return [url for url in manifest.listed if scope.admits(url)]


def scope_of(manifest: Manifest) -> Scope:
    """Return the scope defined by the seeds and settings of a survey."""
    settings = manifest.settings
    kind = settings.get("scope") or Scope.of_seeds(manifest.seeds).kind
    return Scope(
        kind,
        tuple(manifest.seeds),
        tuple(settings.get("include", ())),
        tuple(settings.get("exclude", ())),
        settings.get("depth"),
        domain=domain,
        linear=not manifest.own_patterns,
    )


def _outcomes(folder: SurveyFolder, reader: Reader, since: int) -> Iterator[Outcome]:
    """Yield the outcomes of a journal up to its end when it was opened, as another process may be writing.

    The scope of links is evaluated again if it was changed.
    """
    journal = folder.journal
    rescoped = any(True for _ in journal.events("scope_changed"))
    every: Iterator[Outcome] = map(reader.judged, journal.visits(since)) if rescoped else journal.outcomes(since)
    return islice(every, journal.position - since)


@dataclass(frozen=True, slots=True)
class Ranked:
    """The graph of a survey: every known page in scope, without aliases."""

    graph: Graph  # a multigraph: a page that linked to two URLs of a page has two links to it
    pages: IdArray  # page id in the journal of each node
    read: BoolArray  # whether it was fetched
    teleport: FloatArray


def to_graph(state: Derived, *, crawled_only: bool = False) -> Ranked:
    """Return the links as fetched, aliases merged; pages that were not fetched have no links."""
    from surveyor.kernels import mass

    ledger, growing = state.crawl.ledger, state.crawl.graph
    size = min(len(state.urls), ledger.capacity)  # URLs out of scope have no account
    life = ledger.state[:size] & mass.STATUS
    stands_for = ledger.stands_for()[:size]
    kept = (life == mass.FETCHED) if crawled_only else (life != mass.UNKNOWN) & (life != mass.REDIRECTED)
    pages = np.flatnonzero(kept).astype(np.int32)
    number = np.full(size, -1, np.int32)
    number[pages] = np.arange(pages.size)
    starts, ends, targets = growing.rows
    known = pages[pages < starts.size]
    degrees = np.zeros(pages.size, np.int64)
    degrees[: known.size] = ends[known] - starts[known]
    first = np.zeros(pages.size, np.int64)  # index of the first link of each page
    first[: known.size] = starts[known]
    where = np.arange(degrees.sum()) + np.repeat(first - np.cumsum(degrees) + degrees, degrees)
    sources, goals = np.repeat(np.arange(pages.size), degrees), number[stands_for[targets[where]]]
    links = np.sort((sources * np.int64(pages.size) + goals)[goals >= 0])
    indptr = np.searchsorted(links, np.arange(pages.size + 1) * np.int64(pages.size))
    indices = (links % max(pages.size, 1)).astype(np.int32)
    seeds = number[stands_for[ledger.seeds]]
    teleport: FloatArray = np.bincount(seeds[seeds >= 0], ledger.teleport[seeds >= 0], pages.size).astype(np.float64)
    names = Names.of(state.urls[page] for page in pages.tolist())
    if not teleport.any():
        teleport = np.ones(pages.size)  # no seed is in the graph
    read: BoolArray = life[pages] == mass.FETCHED
    return Ranked(
        Graph(indptr, indices, names=names), pages, read, teleport / teleport.sum() if pages.size else teleport
    )

"""A survey open for reading: its coverage, graph, ranks and the status of each page.

    survey = sv.open("docs.example.org.survey")
    survey.coverage            # CoverageInterval(at_least=0.9502, at_most=0.9925, …)
    survey.top(10)             # the best pages
    survey.graph()             # a Graph, with URLs as names

Results are computed on first access from the journal at that time; `refresh` discards them.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.crawler.coverage_walks import SampledCoverage
from surveyor.crawler.graphless import restore
from surveyor.crawler.ledger import CoverageInterval
from surveyor.crawler.replay import Derived, Ranked, derive, require_graph, scope_of, to_graph
from surveyor.crawler.scout_walks import ScoutWalks
from surveyor.crawler.shards.description import is_sharded, resume_words
from surveyor.crawler.shards.merge import refresh
from surveyor.frames import Tabular, draw_shares
from surveyor.graph.csr import Graph
from surveyor.outcome import Outcome, Visit
from surveyor.rank.pagerank import Ranking, pagerank
from surveyor.stopping import ProgressCallback, Rule, parse_rule, sampled_goal, silent
from surveyor.store.directory import SurveyFolder
from surveyor.store.journal import Journal
from surveyor.store.manifest import Manifest
from surveyor.web.javascript import NEEDS_JAVASCRIPT
from surveyor.web.scope import IN_SCOPE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from surveyor import SearchResult
    from surveyor.graph.condense import CondensedGraph
    from surveyor.graph.hosts_and_domains import Level
    from surveyor.store.warc import Archive
    from surveyor.survey.changes import Changes
    from surveyor.survey.diff import Difference
    from surveyor.survey.importance import Importance
    from surveyor.survey.sql import Engine, QueryResult
    from surveyor.survey.tables import Tables
    from surveyor.survey.texts import Texts
    from surveyor.survey.url_status import UrlStatus
    from surveyor.web.link_context import LinkContext
    from surveyor.web.page_text import PageText
    from surveyor.web.suffixes import Suffixes

Teleport = Literal["seeds", "uniform"]
TOLERANCE = 1e-9
CONFIDENCE = 0.95  # of the sampled coverage, if the goal has none
HOLLOW = 0.05  # share of the captured importance


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Coverage bounds after each fetched page and before the next one; the last entry is the latest state."""

    pages: IntArray  # page ids of the journal, in the order of fetching
    at_least: FloatArray
    at_most: FloatArray
    sampled: FloatArray | None = None  # the sampled lower bound, if the crawl made walks


class Survey(Tabular):
    """A crawl on disk, open for reading; another process may be writing to it."""

    def __init__(self, folder: Path | str, *, state: Derived | None = None) -> None:
        """Open a survey; `state`, if this process has just crawled it, saves restoring it from disk."""
        self.notice = refresh(Path(folder))  # why the latest visits of shards are missing, if they are
        if self.notice:
            warnings.warn(self.notice, stacklevel=2)
        self._folder = SurveyFolder.open(Path(folder), write=False)
        self._state = state
        self.ending = ""  # of the crawl, if it ran in this process: reached, unreachable, exhausted, interrupted
        self.goal: Rule | None = None  # of that crawl; by default, the rule stored in the survey

    @property
    def folder(self) -> Path:
        """Path of the survey."""
        return self._folder.folder

    @property
    def manifest(self) -> Manifest:
        """Seeds, settings and their origins."""
        return self._folder.manifest

    @property
    def resume_words(self) -> list[str]:
        """The command that resumes the crawl, in words."""
        if is_sharded(self.folder):
            return resume_words(self.folder)
        return ["surveyor", "crawl", *self.manifest.seeds[:1], "--out", str(self.folder)]

    @property
    def journal(self) -> Journal:
        """Outcomes and events in order; another process may append to it after `visits`."""
        return self._folder.journal

    @cached_property
    def _derived(self) -> Derived:
        if not self.keeps_graph:
            return restore(self._folder)
        return derive(self._folder) if self._state is None else self._state

    @property
    def state(self) -> Derived:
        """The state after the last visit: URLs, accounts, graph and queue."""
        return self._derived

    @property
    def keeps_graph(self) -> bool:
        """Whether the links of pages are stored; without them (--no-graph) there are no coverage and no ranks."""
        return self._folder.journal.keeps_graph

    @property
    def coverage(self) -> CoverageInterval:
        """Lower and upper bounds on the share of all importance that the fetched pages hold."""
        require_graph(self._folder)
        return self._derived.crawl.ledger.coverage()

    @property
    def sampled(self) -> SampledCoverage | None:
        """Sampled lower bound of coverage, at the confidence of the goal or 95 %; None if the crawl made no walks."""
        return self._derived.crawl.walks.summary(self._confidence)

    @property
    def _confidence(self) -> float:
        rule = self.goal or parse_rule(self.manifest.setting("until"))
        return (sampled_goal(rule) or (0.0, CONFIDENCE))[1]

    @property
    def coverage_fields(self) -> dict[str, Any] | None:
        """The certified coverage as plain values, and the sampled one as `sampled`, None if the crawl made no walks.

        None in a survey without a link graph.
        """
        if not self.keeps_graph:
            return None
        sampled = self.sampled
        return {**self.coverage.to_dict(), "sampled": None if sampled is None else sampled.to_dict()}

    @property
    def scout_walks(self) -> ScoutWalks:
        """Random walks of the last scout of this survey; none if it was not scouted."""
        walks = self._derived.crawl.scout
        return ScoutWalks(self._derived.crawl.ledger) if walks is None else walks

    @property
    def goal_reached(self) -> bool:
        """Whether any rule of the goal is met; for a survey opened later, judged by its pages, bytes and coverage.

        False if pages that need JavaScript hold much of the captured importance: the captured pages are mostly empty.
        """
        if self.needs_javascript:
            return False
        if self.ending:
            return self.ending == "reached"
        rule = self.goal or parse_rule(self.manifest.setting("until"))
        return rule.done(self._derived.crawl.progress(self._derived.tally))

    @property
    def unsettled(self) -> float:
        """Importance not settled on any page: waiting, blocked or moving. It bounds the error of every share."""
        from surveyor.kernels.mass import POOL, total

        require_graph(self._folder)
        ledger = self._derived.crawl.ledger
        return float(np.abs(ledger.residual).sum()) + abs(float(total(ledger.mass, POOL)))

    @property
    def pages_fetched(self) -> int:
        """Number of pages that were fetched and are not gone."""
        return self._derived.crawl.ledger.read

    @property
    def pages_known(self) -> int:
        """Number of known pages in scope."""
        return self._derived.crawl.ledger.known

    @property
    def pages_queued(self) -> int:
        """Number of known pages that are not fetched yet."""
        return int(self._derived.crawl.ledger.waiting.size)

    @property
    def archive(self) -> Archive:
        """The responses of the servers; UsageError if they are not stored."""
        return self._folder.archive

    @property
    def visits(self) -> int:
        """Number of outcomes in the journal."""
        return self._folder.journal.position

    @property
    def bytes(self) -> int:
        """Number of bytes transferred."""
        return self._derived.tally.bytes

    @property
    def size(self) -> int:
        """Size of the folder on disk in bytes."""
        return self._folder.size()

    @cached_property
    def _all(self) -> Ranked:
        require_graph(self._folder)
        return to_graph(self._derived)

    def as_graph(self, *, crawled_only: bool = False) -> Ranked:
        """Return the graph with the seeds as a teleport vector, and which of its pages were fetched."""
        return to_graph(self._derived, crawled_only=True) if crawled_only else self._all

    def graph(self, *, frontier: bool = True) -> Graph:
        """Return the in-scope links as fetched, aliases merged; without `frontier`, only among the fetched pages."""
        return self.as_graph(crawled_only=not frontier).graph

    def domain_graph(
        self,
        level: Level = "domains",
        suffixes: Suffixes | None = None,
        *,
        nofollow: bool = False,
        progress: ProgressCallback = silent,
    ) -> CondensedGraph:
        """Return the host or domain graph, from links in and out of scope; `site_of` maps pages to its nodes."""
        from surveyor.crawler.domain_graph import DomainGraph

        require_graph(self._folder)
        made = DomainGraph(level, suffixes, nofollow=nofollow)
        made.catch_up(self._folder.journal, progress)
        return made.snapshot(source=str(self.folder))

    def rank(
        self, *, teleport: Teleport = "seeds", crawled_only: bool = False, tolerance: float = TOLERANCE
    ) -> Ranking:
        """Rank the pages: by default all known pages, with jumps to the seeds; pages not fetched have no links."""
        found = self.as_graph(crawled_only=crawled_only)
        jumps: FloatArray | None = found.teleport if teleport == "seeds" else None
        return pagerank(found.graph, self.damping, tolerance, jumps)

    @property
    def damping(self) -> float:
        """The probability of following a link."""
        return float(self.manifest.setting("damping"))

    def top(self, count: int = 10) -> list[dict[str, Any]]:
        """Return the best pages, best first: url, share, score from 0 to 100, in-links, whether it was fetched."""
        ranking, marks, into = self.ranking, self.ranking.log_scores(), self._all.graph.in_links.indptr
        return [
            {
                "url": ranking.name(page),
                "share": float(ranking.scores[page]),
                "score": round(float(marks[page]), 1),
                "in_links": int(into[page + 1] - into[page]),
                "fetched": bool(self._all.read[page]),
            }
            for page in ranking.top(count).tolist()
        ]

    @cached_property
    def ranking(self) -> Ranking:
        """Ranking of the known pages with jumps to the seeds, as used by `top`."""
        return self.rank()

    def importance(self, method: str = "opic") -> Importance:
        """Return the importance of the known pages as OPIC estimates it, with the bound on its error if there is one.

        `method` is `opic`, `adaptive` or either with arguments, as for a strategy. If the survey was crawled with it,
        this is the estimate of the crawl; otherwise the journal is replayed under it.
        """
        from surveyor.survey.importance import of_survey

        return of_survey(self._folder, self._derived, method)

    @cached_property
    def own_importance(self) -> Importance | None:
        """The importance that the strategy of the survey estimates; None if it is neither `opic` nor `adaptive`."""
        from surveyor.survey.importance import of_crawl

        return of_crawl(self._derived)

    def pages(self) -> Iterator[tuple[int, str, Visit | None]]:
        """Yield id, URL and latest visit of each known page, in or out of scope."""
        return self._folder.pages()

    def text(self, url: str) -> PageText:
        """Return the main text of a page as plain text and as Markdown, with its language; needs the archive."""
        from surveyor.survey.texts import text_of

        return text_of(self, url)

    def texts(self, *, progress: ProgressCallback = silent, **options: Any) -> Texts:
        """Iterate over the main texts of the fetched pages, most important first; needs the archive.

        Options: `form` (text or markdown), `tokens` and `top` (limits), `duplicates` (keep pages whose text is nearly
        that of a more important one).
        """
        from surveyor.survey.texts import TextOptions, Texts

        return Texts(self, TextOptions(**options), progress)

    def search(self, words: str, *, progress: ProgressCallback = silent, **options: Any) -> SearchResult:
        """Search the pages for words, "phrases" and -excluded words; the index is brought up to date first.

        Options: `rank` (local, opic, global, domain or none), `weight` from 0 (words only) to 1 (importance only),
        `ranks` (a file for global and domain), `top`, `host`, `language`, `since`, `folder`, `update`.
        """
        import surveyor

        return surveyor.search_survey(self, words, progress=progress, **options)

    def blocked(self) -> list[dict[str, Any]]:
        """Return the reasons of blocked pages, with the number of pages and their importance, most first."""
        ledger = self._derived.crawl.ledger
        mass: defaultdict[str, float] = defaultdict(float)
        pages = Counter[str]()
        for outcome in self._blocked():
            pages[outcome.reason] += 1
            mass[outcome.reason] += max(0.0, float(ledger.residual[outcome.page])) if self.keeps_graph else 0.0
        return [
            {"reason": reason, "pages": pages[reason], "mass": mass[reason]}
            for reason in sorted(mass, key=mass.__getitem__)[::-1]
        ]

    def _blocked(self) -> list[Outcome]:
        """Return the outcomes of pages that are blocked now, without those to be retried."""
        from surveyor.kernels import mass

        life = self._derived.crawl.ledger.state & mass.STATUS
        return [one for one in self._folder.journal.blocked() if life[one.page] not in (mass.UNKNOWN, mass.WAITING)]

    @cached_property
    def _scripted(self) -> dict[int, float]:
        """Pages that are empty until a script has run, and their shares of the captured importance."""
        ledger = self._derived.crawl.ledger
        whole = max(ledger.coverage().at_least, 1e-300)
        return {page: min(1.0, ledger.importance_of(page) / whole) for page in self.journal.read_for(NEEDS_JAVASCRIPT)}

    def javascript(self, count: int | None = None) -> list[dict[str, Any]]:
        """Return pages that are empty until a script has run: url and share of captured importance, most first."""
        most = sorted(self._scripted.items(), key=lambda entry: (-entry[1], entry[0]))[:count]
        return [{"url": self.url(page), "share": share} for page, share in most]

    @property
    def javascript_share(self) -> float:
        """Share of the captured importance on pages that are empty until a script has run."""
        return min(1.0, sum(self._scripted.values()))

    @property
    def needs_javascript(self) -> bool:
        """Whether pages that need JavaScript hold at least 5 % of the captured importance or include a seed."""
        if not self._scripted:
            return False
        urls = self._derived.urls
        seeds = urls.canonical(urls.ids(self.manifest.seeds)).tolist()
        return self.javascript_share >= HOLLOW or not self._scripted.keys().isdisjoint(seeds)

    def history(self) -> History:
        """Replay the crawl and return its coverage after each fetched page."""
        pages: list[int] = []
        bounds: list[tuple[float, float, float]] = []
        confidence = self._confidence

        def now(state: Derived) -> tuple[float, float, float]:
            coverage = state.crawl.ledger.coverage()
            sampled = min(max(coverage.at_least, state.crawl.walks.at_least(confidence)), coverage.at_most)
            return coverage.at_least, coverage.at_most, sampled

        def record(state: Derived, outcome: Outcome) -> None:
            if outcome.kind == "fetched":
                pages.append(outcome.page)
                bounds.append(now(state))
            elif bounds:  # redirected, blocked and gone pages change the bounds, too
                bounds[-1] = now(state)

        replayed = derive(self._folder, watch=record)
        self.__dict__.setdefault("_derived", replayed)  # no second replay for other results
        if bounds:  # the final closure, when no page is left, changes them as well
            bounds[-1] = now(self._derived)
        curves = np.array(bounds, np.float64).reshape(-1, 3)
        sampled = curves[:, 2] if (curves[:, 2] > curves[:, 0]).any() else None
        return History(np.array(pages, np.int64), curves[:, 0], curves[:, 1], sampled)

    def url(self, page: int) -> str:
        """Return the URL of a page of the journal."""
        return self._derived.urls[page]

    def title(self, page: int) -> str:
        """Return the title of a page of the journal as last read, or ""."""
        visit = self._folder.journal.last_visit(page, "fetched")
        return visit.title if visit else ""

    def url_status(self, url: str) -> UrlStatus:
        """Return the status of a URL and its reason; a path is enough if exactly one known page has it."""
        from surveyor.survey.url_status import resolve, status_of

        require_graph(self._folder)
        return status_of(self._folder.journal, self._derived, self.tables, resolve(self.tables, url))

    def link_contexts(self, target: str, sources: Iterable[str]) -> dict[str, LinkContext]:
        """Return how pages link to a URL, or to an alias of it: text, element, position and rel, by source URL.

        Sources that do not link to it, or whose links are stored without context, are omitted.
        """
        from surveyor.store.tabular import contexts_of

        found: dict[str, LinkContext] = {}
        urls = self._derived.urls
        goal = urls.find(target)
        for source in sources:
            page = urls.find(source)
            visit = None if page is None else self.journal.last_visit(page, "fetched")
            if goal is None or visit is None or not visit.contexts:
                continue
            contexts = contexts_of(self.journal, visit)
            ids = np.fromiter(contexts, np.int32, len(contexts))
            leading = ids[urls.canonical(ids) == goal]
            if leading.size:
                found[source] = contexts[int(leading[0])]
        return found

    def blocked_pages(self, count: int = 20) -> list[dict[str, Any]]:
        """Return blocked pages: url, waiting importance and reason, most first."""
        require_graph(self._folder)
        ledger, urls = self._derived.crawl.ledger, self._derived.urls
        found = [(max(0.0, float(ledger.residual[o.page])), o.page, o.reason) for o in self._blocked()]
        most = sorted(found, key=lambda entry: (-entry[0], entry[1]))[:count]
        return [{"url": urls[page], "mass": mass, "reason": reason} for mass, page, reason in most]

    @property
    def listed(self) -> dict[str, int]:
        """Pages in scope that were known in advance, from sitemaps or with weight 0: pages, fetched and queued."""
        from surveyor.survey.listed_pages import counts

        return counts(self.manifest, self._derived)

    @property
    def topic(self) -> dict[str, Any] | None:
        """Topic of a focused crawl: rule, pages judged and on topic, least importance of those; None without one."""
        from surveyor.survey.focus import topic_of

        return topic_of(self._folder, self._derived)

    @property
    def unguarded(self) -> dict[str, Any] | None:
        """Domains known only through single pages of one site that may take much of a crawl; None if there are none.

        The URL of the page through which they may take most, the number of such pages on the same site, the number of
        these domains, and the pages, and share of a crawl, that they, or a farm among them, may take.
        """
        from surveyor.crawler.budgets import widest_group

        found = widest_group(self._folder, self._derived.urls)
        if found is None:
            return None
        page, *counts = found
        return {"url": self.url(page), **dict(zip(found._fields[1:], counts, strict=True))}

    def orphans(self, count: int | None = None) -> list[dict[str, Any]]:
        """Return fetched pages that were known in advance and that no links from a seed lead to: url, title."""
        from surveyor.survey.listed_pages import orphans, rows

        require_graph(self._folder)
        return rows(orphans(self.manifest, self._derived)[:count], self._derived, self.title)

    def links_by_scope(self) -> list[dict[str, Any]]:
        """Return the distribution of links by scope or reason, most importance first; `mass` sums to 1.

        Each link carries an equal part of the importance of its page, counting links out of scope, too.
        """
        scope, urls, found = scope_of(self.manifest), self._derived.urls, self._all
        share = dict(zip(found.pages.tolist(), self.ranking.scores.tolist(), strict=True))
        mass: defaultdict[str, float] = defaultdict(float)
        links = Counter[str]()
        for page, _, visit in self._folder.pages():
            if visit is None or visit.kind != "fetched":
                continue
            counts = [(IN_SCOPE, visit.links.size)]
            counts += [(scope.why_not(urls[goal]) or IN_SCOPE, 1) for goal in visit.out_of_scope.tolist()]
            total = sum(count for _, count in counts)
            for why, count in counts:
                links[why] += count
                mass[why] += share.get(page, 0.0) * count / max(total, 1)
        whole = sum(mass.values()) or 1.0
        most = sorted(mass, key=mass.__getitem__, reverse=True)
        return [{"where": why, "links": links[why], "mass": mass[why] / whole} for why in most if links[why]]

    @cached_property
    def tables(self) -> Tables:
        """Tables of the survey; see `surveyor sql`."""
        from surveyor.survey.tables import Tables

        ranked = self._all if self.keeps_graph else None
        return Tables(self._folder, self._derived, ranked, lambda: self.ranking)

    def diff(self, newer: Survey) -> Difference:
        """Return the differences between this survey and a newer one."""
        from surveyor.survey.diff import compare

        return compare(self, newer)

    def changes(self, since: float) -> Changes:
        """Return the pages that have changed since a time, in seconds since 1970, as later visits found."""
        from surveyor.survey.changes import changes

        names = self.as_graph().graph.names or ()
        shares = dict(zip(names, self.ranking.scores.tolist(), strict=True)) if names else {}
        return changes(self._folder.journal, since, shares)

    def sql(
        self, query: str, *, seconds: float = 60.0, limit: int | None = None, engine: Engine | None = None
    ) -> QueryResult:
        """Run a SELECT over the tables of the survey (docs/reference/surveys.md), for at most `seconds` seconds.

        The engine is DuckDB if installed, else SQLite; nothing outside the tables can be read or written.
        """
        from surveyor.survey.sql import run_query

        return run_query(self.tables, query, seconds=seconds, limit=limit, engine=engine)

    def export(self, to: Path | str, **settings: Any) -> list[Path]:
        """Export as Parquet, CSV, JSON lines, Excel, Markdown, llms.txt, sitemap, GEXF, GraphML or CDXJ; return paths.

        Settings are those of `surveyor export`: format, table, top, level, raw, replace, tokens, duplicates, markdown.
        """
        from surveyor.survey.export import ExportOptions, export

        return export(self, to, ExportOptions(**settings))

    def to_parquet(self, folder: Path | str | None = None) -> list[Path]:
        """Write pages, links, ranks, hosts and visits as Parquet files, by default in the survey; return the paths."""
        from surveyor.survey.export import parquet_files

        return parquet_files(self.tables, self.folder if folder is None else Path(folder))

    def refresh(self) -> None:
        """Discard computed results and read the journal again, as another process may have written to it."""
        self._folder.journal.refresh()
        for name in ("_derived", "_all", "_scripted", "own_importance", "ranking", "tables"):
            self.__dict__.pop(name, None)
        self._folder.journal.refresh()

    def close(self) -> None:
        """Close all files."""
        self._folder.close()

    def __enter__(self) -> Survey:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.keeps_graph:
            captured = f"at least {np.floor(1000 * self.coverage.at_least) / 10:g} % captured"
        else:
            captured = "no link graph"
        pages = f"{self.pages_fetched:,} pages fetched of {self.pages_known:,} known"
        return f"Survey({self.folder.name}, {pages}, {captured})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Survey, (self.folder.absolute(),)

    def _columns(self) -> dict[str, Any]:
        rows = self.top(self._all.graph.pages)
        return {name: [row[name] for row in rows] for name in ("url", "share", "score", "in_links", "fetched")}

    def _draw(self, axes: Axes) -> None:
        draw_shares(axes, self.ranking.scores)

    def _html(self) -> str:
        rows = "".join(
            f"<tr><td>{row['score']:.0f}</td><td>{row['share']:.3%}</td><td>{escape(row['url'])}</td></tr>"
            for row in self.top(10)
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th>score</th><th>share</th><th>page</th></tr>{rows}</table>"


def open(survey: Path | str) -> Survey:  # noqa: A001  # as in sv.open(…)
    """Open a survey for reading, also while it is being crawled."""
    return Survey(survey)

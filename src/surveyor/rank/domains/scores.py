"""Domain reputation: any of the scores, or several together, over a graph in memory or on disk.

    tse        level-2 supporters, estimated from a sample; p is chosen for the requested error
    supp       level-D supporters, counted
    in, win    in-degree; in-degree weighted by the out-degree of the linking domain
    pagerank   with a proven error
    harmonic   Σ 1 / distance over all domains that reach it (HyperBall)
    bv         level-2 supporters from bit vectors
    qvs        paths of two links

`DomainOptions.memory` limits the memory used. TSE, `supp` and `qvs` stream a graph folder that does not fit; the
other scores read links sequentially in any case, with a few numbers per domain in memory. Other files are first built
into a folder if a limit is set.

    >>> links = [(f"fan{k}.example", "hub.example") for k in range(9)] + [("hub.example", "star.example")]
    >>> result = domains(Graph.from_edges(links))
    >>> result["star.example"].position, result["star.example"].score, result.main.method["p"]
    (1, 9.0, 1.0)
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from surveyor.arrays import FloatArray, IntArray
from surveyor.errors import UsageError
from surveyor.frames import Tabular
from surveyor.graph.adapters import GraphLike, simple_graph
from surveyor.graph.csr import Graph
from surveyor.graph.folder import describe
from surveyor.graph.formats import build_graph, read_graph
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import cores
from surveyor.rank.domains.external import streamed_exact_supporters, streamed_paths
from surveyor.rank.domains.link_counts import in_degree, supporters, two_link_paths, weighted_in_degree
from surveyor.rank.domains.reach_sketches import bit_vectors, harmonic
from surveyor.rank.domains.reputation import Reputation, Resources
from surveyor.rank.domains.trust import TOLERANCE, Trust, as_reputation, trust
from surveyor.rank.domains.tse import ERROR, TOP, sampled_supporters, streamed_supporters
from surveyor.rank.pagerank import Ranking, SolverOptions, pagerank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "bv", "qvs")
WITH_DEPTH = ("tse", "supp", "bv")  # scores that count supporters of a level
STREAMED = ("tse", "supp", "qvs")  # scores that can read a graph folder as a stream
IN_MEMORY = "in memory"
SLOW = "supp"  # not part of "all"; must be requested by name
MIN_SAMPLE_MEMORY = 50_000_000  # bytes that a streamed sample may take, whatever the limit
MEMORY_SHARE = 0.7  # of the free memory, used by default


@runtime_checkable
class HasDomainGraph(Protocol):
    """An object with a graph of domains, such as a survey."""

    def domain_graph(self) -> Any:
        """Return the current graph, as `.graph`."""


@dataclass(frozen=True, slots=True)
class DomainOptions(Resources):
    """Less common parameters of `domains`: sampling probability, supporter level, threads, memory, progress."""

    p: float | None = None  # sampling probability of TSE, instead of `top` and `error`
    depth: int = 2  # level of the supporters that tse, supp and bv count


DEFAULT_OPTIONS = DomainOptions()


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain and its scores."""

    name: str
    id: int
    position: int
    score: float
    low: float
    high: float
    in_links: int
    out_links: int
    trust: float | None = None  # from 0 to 100, log scale, like popularity
    popularity: float | None = None
    spam_mass: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are known."""
        fields = {field: getattr(self, field) for field in self.__slots__}
        return {name: value for name, value in fields.items() if value is not None}


class RowEnds(NamedTuple):
    """The ends of rows of links, without the links."""

    indptr: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class DomainTable:
    """What results need of a graph whose links are in pieces: names and degrees, by memory map."""

    links: int
    names: Names | None
    indptr: IntArray  # of out-links
    in_links: RowEnds

    @property
    def pages(self) -> int:
        """The number of domains."""
        return int(self.indptr.size) - 1

    def name(self, domain: int) -> str:
        """Return the name of a domain; its id as text, where domains have no names."""
        return str(domain) if self.names is None else self.names[domain]

    def page(self, name: str) -> int:
        """Return the id of a domain by name."""
        if self.names is None:
            raise UsageError(f"no domain {name!r}: the graph has no names", hint="pass the id of the domain")
        return self.names.id_of(name)


@dataclass(frozen=True, eq=False, repr=False)
class Domains(Tabular):
    """Scores of the domains of one graph; the first score orders them."""

    graph: Graph | DomainTable
    scores: Mapping[str, Reputation]
    trust: Trust | None = None
    mode: str = IN_MEMORY  # or "streamed", "in pieces"
    _log_scores: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def main(self) -> Reputation:
        """The score that was requested first."""
        return next(iter(self.scores.values()))

    def top(self, count: int = 10) -> list[Domain]:
        """Return the best domains."""
        best = self.main.top_ids(count)
        low, high = self.main.intervals(best)
        rows = zip(best.tolist(), low.tolist(), high.tolist(), strict=True)
        return [self._row(position, *row) for position, row in enumerate(rows, 1)]

    def __getitem__(self, domain: Hashable) -> Domain:
        low, high = self.main.interval(domain)
        return self._row(self.main.position(domain), self.main.id_of(domain), low, high)

    def __repr__(self) -> str:
        return f"Domains({self.graph.pages:,}, by {', '.join(self.scores)})"

    def _columns(self) -> dict[str, Any]:
        columns = dict(self.main._columns())
        columns |= {name: score.scores for name, score in self.scores.items()}
        del columns["score"]
        if self.trust is not None:
            trust = self.trust
            columns |= {"trust": trust.trust.log_scores(), "popularity": trust.popularity.log_scores()}
            columns["spam_mass"] = trust.spam_masses()
        return columns

    def _draw(self, axes: Axes) -> None:
        self.main._draw(axes)

    def _html(self) -> str:
        return self.main._html()

    def _row(self, position: int, node: int, low: float, high: float) -> Domain:
        into, out = self.graph.in_links.indptr, self.graph.indptr
        row = Domain(
            name=self.graph.name(node),
            id=node,
            position=position,
            score=float(self.main.raw[node]) * self.main.scale,
            low=low,
            high=high,
            in_links=int(into[node + 1] - into[node]),
            out_links=int(out[node + 1] - out[node]),
        )
        if self.trust is None:
            return row
        if not self._log_scores:
            self._log_scores["trust"] = self.trust.trust.log_scores()
            self._log_scores["popularity"] = self.trust.popularity.log_scores()
        return replace(
            row,
            trust=float(self._log_scores["trust"][node]),
            popularity=float(self._log_scores["popularity"][node]),
            spam_mass=float(self.trust.spam_masses(np.array([node]))[0]),
        )


def domains(
    source: GraphLike | HasDomainGraph,
    score: str | Sequence[str] = "tse",
    *,
    top: int = TOP,
    error: float = ERROR,
    trusted: Sequence[str] | None = None,
    rng: int = 7,
    options: DomainOptions = DEFAULT_OPTIONS,
) -> Domains:
    """Score the domains of a graph, a survey, a graph folder, a file of links or an object of another library.

    Weights, self-links and duplicate links are ignored: scores count domains.

    Parameters
    ----------
    score : one of `SCORES`, several of them, or "all" (except `supp`).
    top, error : TSE chooses p so that the relative standard deviation at rank `top` is `error`.
    trusted : trusted domains; with them, trust and spam mass are computed too.
    options : sampling probability, supporter level, threads, memory and progress.
    """
    names = score_names(score)
    if options.depth != 2 and (others := [name for name in names if name not in WITH_DEPTH]):
        raise UsageError(
            f"depth must be 2 for the score {others[0]}, got {options.depth}",
            hint=f"with depth, choose {', '.join(WITH_DEPTH)}",
        )
    scratch: list[tempfile.TemporaryDirectory[str]] = []
    limit = free_memory() if options.memory is None else options.memory
    try:
        graph, folder = _open(source, names, options, limit, scratch)
        scorer = _Scorer(graph, folder, top, error, rng, options, limit, scratch, with_trust=trusted is not None)
        scores = {name: scorer.score(name) for name in names}
        result = Domains(graph, scores, None if trusted is None else scorer.trust(trusted), scorer.mode)
    except BaseException:
        for place in scratch:
            place.cleanup()
        raise
    for place in scratch:
        weakref.finalize(result, place.cleanup)
    return result


@dataclass(slots=True)
class _Scorer:
    """Computes scores over one graph within a memory limit."""

    graph: Graph
    folder: Path | None
    top: int
    error: float
    rng: int
    options: DomainOptions
    limit: int
    scratch: list[tempfile.TemporaryDirectory[str]]
    with_trust: bool
    mode: str = IN_MEMORY
    popularity: Ranking | None = None

    def score(self, name: str) -> Reputation:
        """Compute one score."""
        graph, options = self.graph, self.options
        shared: dict[str, Any] = {"rng": self.rng, "resources": options}
        needed = needed_memory(name, graph.pages, graph.links, options.threads or cores())
        if needed > self.limit:
            if name in STREAMED and self.folder is not None and options.depth == 2:
                return self._streamed(name)
            raise UsageError(
                f"{name} over {graph.pages:,} domains needs about {format_bytes(needed)} of memory, "
                f"and memory is limited to {format_bytes(self.limit)}",
                hint="tse, supp and qvs read a graph folder as a stream: create one with `surveyor graph build`"
                if name not in STREAMED or self.folder is None
                else "only depth 2 can be read as a stream",
            )
        methods: dict[str, Callable[[], Reputation]] = {
            "tse": lambda: sampled_supporters(
                graph, options.p, top=self.top, error=self.error, depth=options.depth, **shared
            ),
            "supp": lambda: supporters(graph, options.depth, resources=options),
            "in": lambda: in_degree(graph),
            "win": lambda: weighted_in_degree(graph, threads=options.threads),
            "qvs": lambda: two_link_paths(graph, threads=options.threads),
            "pagerank": lambda: as_reputation("pagerank", graph, self._pagerank()),
            "harmonic": lambda: harmonic(graph, rng=self.rng, resources=replace(options, memory=None)),
            "bv": lambda: bit_vectors(graph, options.depth, top=self.top, **shared),
        }
        return methods[name]()

    def trust(self, trusted: Sequence[str]) -> Trust:
        """Compute trust and spam mass; popularity is the PageRank that was computed as a score, if it was."""
        if needed_memory("pagerank", self.graph.pages, self.graph.links, 1) * 2 > self.limit:
            raise UsageError(
                f"trust needs memory for two rankings of {self.graph.pages:,} domains, and memory is limited to "
                f"{format_bytes(self.limit)}",
                hint="raise --memory",
            )
        return trust(self.graph, trusted, popularity=self.popularity, resources=self.options)

    def _pagerank(self) -> Ranking:
        solver = SolverOptions(threads=self.options.threads, progress=self.options.progress)
        if not self.with_trust:
            return pagerank(self.graph, options=solver)
        self.popularity = pagerank(self.graph, tolerance=TOLERANCE, options=solver)
        return self.popularity

    def _streamed(self, name: str) -> Reputation:
        assert self.folder is not None  # noqa: S101  # checked in score()
        self.mode = "streamed"
        place = tempfile.TemporaryDirectory(prefix="surveyor-")
        self.scratch.append(place)
        out = Path(place.name) / "counts.npy"
        limited = replace(self.options, memory=max(self.limit, MIN_SAMPLE_MEMORY))
        if name == "supp":
            return streamed_exact_supporters(self.folder, out=out, resources=limited)
        if name == "qvs":
            return streamed_paths(self.folder, out=out, resources=limited)
        p, top, error = self.options.p, self.top, self.error
        return streamed_supporters(self.folder, p, out=out, top=top, error=error, rng=self.rng, resources=limited)


def score_names(score: str | Sequence[str]) -> list[str]:
    """Return the scores in a list or a text such as `tse,in`; `all` stands for all but the slow one."""
    parts = [part.strip() for part in score.split(",")] if isinstance(score, str) else list(score)
    every = [name for name in SCORES if name != SLOW]
    names = [name for part in parts for name in (every if part == "all" else [part])]
    choices = f"choose {', '.join(SCORES)} or all"
    for name in names:
        if name not in SCORES:
            raise UsageError(f"unknown score {name!r}", hint=choices)
    if not names:
        raise UsageError("score must name at least one score, got none", hint=choices)
    return list(dict.fromkeys(names))


def _open(
    source: GraphLike | HasDomainGraph,
    scores: list[str],
    options: DomainOptions,
    limit: int,
    scratch: list[tempfile.TemporaryDirectory[str]],
) -> tuple[Graph, Path | None]:
    """Return the graph, and its folder if it is in one."""
    if isinstance(source, HasDomainGraph):
        return source.domain_graph().graph, None
    if not isinstance(source, str | Path):
        return simple_graph(source), None
    path = Path(source)
    threads, memory, progress = options.threads, options.memory, options.progress
    if (path / "graph.json").is_file():
        size = describe(path)
        needed = [needed_memory(name, size["pages"], size["links"], threads or cores()) for name in scores]
        streamed = set(scores) <= set(STREAMED) and min(needed) > limit
        return Graph.open(path, verify=not streamed), path  # a stream is verified while it is read
    if memory is None:
        return read_graph(source, threads=threads, progress=progress), None
    place = tempfile.TemporaryDirectory(prefix="surveyor-")
    scratch.append(place)
    folder = Path(place.name) / "graph"
    graph = build_graph(source, folder, memory=memory // 2, threads=threads, progress=progress)
    return graph.with_names(graph.names), folder  # a pickle of it must not refer to the temporary folder


def needed_memory(score: str, domains: int, links: int, threads: int) -> int:
    """Return the approximate peak memory of a score in bytes; links that are read sequentially are not held."""
    graph = 4 * links + 8 * domains
    return {
        "tse": graph + (12 * threads + 4) * domains,
        "supp": graph + (8 * threads + 16) * domains,
        "in": 8 * domains,
        "win": 24 * domains,
        "qvs": 24 * domains,
        "pagerank": 48 * domains,
        "harmonic": 160 * domains,
        "bv": (144 + 2 * (max(domains, 2) - 1).bit_length() + 2) * domains,
    }[score]


def free_memory() -> int:
    """Return the bytes available for work: most of the free memory of the machine."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) << 10
    except (OSError, StopIteration, ValueError, IndexError):
        try:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        except (AttributeError, ValueError, OSError):
            free = 4 << 30
    return int(MEMORY_SHARE * free)


def format_bytes(size: int) -> str:
    """Format a number of bytes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:,} bytes"

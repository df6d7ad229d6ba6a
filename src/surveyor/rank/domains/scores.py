"""Domain reputation: any of the scores, or several together, over a graph in memory or on disk.

    tse        level-2 supporters, estimated from a sample; p is chosen for the requested error
    supp       level-D supporters, counted
    in, win    in-degree; in-degree weighted by the out-degree of the linking domain
    pagerank   with a proven error
    harmonic   Σ 1 / distance over all domains that reach it (HyperBall)
    bv         level-2 supporters from bit vectors
    qvs        paths of two links

`memory` limits the memory used. TSE streams a graph folder that does not fit; the other scores read links
sequentially in any case, with a few numbers per domain in memory, except `supp`, which needs all links in memory.
Other files are first built into a folder if `memory` is given.

    >>> links = [(f"fan{k}.example", "hub.example") for k in range(9)] + [("hub.example", "star.example")]
    >>> result = domains(Graph.from_edges(links))
    >>> result["star.example"].position, result["star.example"].score, result.main.method["p"]
    (1, 9.0, 1.0)
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from surveyor.errors import UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.folder import describe
from surveyor.graph.formats import build_graph, read_graph
from surveyor.kernels.thread_pool import cores
from surveyor.rank.domains.bit_vectors import bit_vectors
from surveyor.rank.domains.degree import in_degree, paths, weighted_in_degree
from surveyor.rank.domains.hyperball import harmonic
from surveyor.rank.domains.memory import free_memory, needed, size_in_words
from surveyor.rank.domains.reputation import Reputation
from surveyor.rank.domains.streamed_tse import streamed_supporters
from surveyor.rank.domains.supporters import supporters
from surveyor.rank.domains.trust import Trust, as_reputation, trust
from surveyor.rank.domains.tse import ERROR, TOP, sampled_supporters
from surveyor.rank.pagerank import pagerank
from surveyor.stopping import ProgressCallback, silent

SCORES = ("tse", "supp", "in", "win", "pagerank", "harmonic", "bv", "qvs")
SLOW = "supp"  # not part of "all"; must be requested by name
LEAST = 50_000_000  # bytes that a sample may take, whatever the limit


class Condensable(Protocol):
    """An object with a graph of domains, such as a survey."""

    def domain_graph(self) -> Any:
        """Return the current graph, as `.graph`."""


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


@dataclass(frozen=True, eq=False)
class Domains:
    """Scores of the domains of one graph; the first score orders them."""

    graph: Graph
    scores: Mapping[str, Reputation]
    trust: Trust | None = None
    mode: str = "in RAM"  # or "streamed", with the reason
    _marks: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def main(self) -> Reputation:
        """The score that was requested first."""
        return next(iter(self.scores.values()))

    def top(self, count: int = 10) -> list[Domain]:
        """Return the best domains."""
        best = self.main.top(count)
        low, high = self.main.intervals(best)
        rows = zip(best.tolist(), low.tolist(), high.tolist(), strict=True)
        return [self._row(place, *row) for place, row in enumerate(rows, 1)]

    def __getitem__(self, domain: str | int) -> Domain:
        node = self.main.id_of(domain)
        return self._row(self.main.position(node), node, *self.main.interval(node))

    def __repr__(self) -> str:
        return f"Domains({self.graph.pages:,}, by {', '.join(self.scores)})"

    def _repr_html_(self) -> str:
        return self.main._repr_html_()

    def _row(self, place: int, node: int, low: float, high: float) -> Domain:
        into, out = self.graph.in_links.indptr, self.graph.indptr
        degrees = int(into[node + 1] - into[node]), int(out[node + 1] - out[node])
        more: tuple[float, ...] = ()
        if self.trust is not None:
            if not self._marks:
                self._marks.update(trust=self.trust.trust.marks(), popularity=self.trust.popularity.marks())
            marks = self._marks
            more = (float(marks["trust"][node]), float(marks["popularity"][node]), self.trust.mass(node))
        return Domain(self.graph.name(node), node, place, self.main.score(node), low, high, *degrees, *more)


def domains(
    source: Graph | Condensable | str | Path,
    score: str | Sequence[str] = "tse",
    *,
    top: int = TOP,
    error: float = ERROR,
    p: float | None = None,
    depth: int = 2,
    trusted: Sequence[str] | None = None,
    memory: int | None = None,
    rng: int = 7,
    threads: int | None = None,
    progress: ProgressCallback = silent,
) -> Domains:
    """Score the domains of a graph, a survey, a graph folder or any file of links.

    Parameters
    ----------
    score : one of `SCORES`, several of them, or "all" (except `supp`).
    top, error : TSE chooses p so that the relative standard deviation at rank `top` is `error`.
    p : the sampling probability of a domain, instead.
    trusted : trusted domains; if given, trust and spam mass are computed too.
    memory : maximum bytes to use; by default most of the free memory.
    """
    wanted = _wanted(score)
    scratch: list[Any] = []
    try:
        limit = free_memory() if memory is None else memory
        graph, folder = _opened(source, wanted, memory, limit, threads, scratch, progress)
        count = Count(graph, folder, top, error, p, depth, rng, threads, progress, limit, scratch)
        if depth != 2 and any(name not in ("tse", "supp", "bv") for name in wanted):
            raise UsageError(f"only supporters have a level {depth}", hint="choose --score tse, supp or bv")
        found = {name: count.by(name) for name in wanted}
        vouched = None if trusted is None else _trusted(count, trusted)
        result = Domains(graph, found, vouched, count.mode)
    except BaseException:
        for place in scratch:
            place.cleanup()
        raise
    for place in scratch:
        weakref.finalize(result, place.cleanup)
    return result


@dataclass(slots=True)
class Count:
    """Computes scores over one graph within a memory limit."""

    graph: Graph
    folder: Path | None
    top: int
    error: float
    p: float | None
    depth: int
    rng: int
    threads: int | None
    progress: ProgressCallback
    limit: int
    scratch: list[Any]
    mode: str = "in RAM"

    def by(self, score: str) -> Reputation:
        """Compute one score."""
        needs = needed(score, self.graph.pages, self.graph.links, self.threads or cores())
        if needs > self.limit:
            if score == "tse" and self.folder is not None and self.depth == 2:
                self.mode = "streamed"
                return self._streamed()
            raise UsageError(
                f"{score} over {self.graph.pages:,} domains needs about {size_in_words(needs)} of memory, "
                f"and {size_in_words(self.limit)} are allowed",
                hint="tse reads a graph folder as a stream: make one with `surveyor graph build`"
                if score != "tse" or self.folder is None
                else "only level 2 can be read as a stream",
            )
        shared: dict[str, Any] = {"threads": self.threads, "progress": self.progress}
        ways: dict[str, Callable[[], Reputation]] = {
            "tse": lambda: sampled_supporters(self.graph, self.p, top=self.top, error=self.error, depth=self.depth,
                                              rng=self.rng, **shared),
            "supp": lambda: supporters(self.graph, self.depth, **shared),
            "in": lambda: in_degree(self.graph),
            "win": lambda: weighted_in_degree(self.graph, threads=self.threads),
            "qvs": lambda: paths(self.graph, threads=self.threads),
            "pagerank": lambda: as_reputation("pagerank", self.graph, pagerank(self.graph, **shared)),
            "harmonic": lambda: harmonic(self.graph, rng=self.rng, **shared),
            "bv": lambda: bit_vectors(self.graph, self.depth, top=self.top, rng=self.rng, **shared),
        }  # fmt: skip
        return ways[score]()

    def _streamed(self) -> Reputation:
        assert self.folder is not None  # noqa: S101  # checked in by()
        place = tempfile.TemporaryDirectory(prefix="surveyor-")
        self.scratch.append(place)
        return streamed_supporters(
            self.folder, self.p, out=Path(place.name) / "counts.npy", top=self.top, error=self.error, rng=self.rng,
            memory=max(self.limit, LEAST), threads=self.threads, progress=self.progress,
        )  # fmt: skip


def _wanted(score: str | Sequence[str]) -> list[str]:
    asked = [part.strip() for part in score.split(",")] if isinstance(score, str) else list(score)
    names = [name for part in asked for name in (_all() if part == "all" else [part])]
    for name in names:
        if name not in SCORES:
            raise UsageError(f"no score {name!r}", hint=f"choose {', '.join(SCORES)} or all")
    if not names:
        raise UsageError("no score was asked for", hint=f"choose {', '.join(SCORES)} or all")
    return list(dict.fromkeys(names))


def _all() -> list[str]:
    return [name for name in SCORES if name != SLOW]


def _opened(
    source: Graph | Condensable | str | Path, wanted: list[str], memory: int | None, limit: int, threads: int | None,
    scratch: list[Any], progress: ProgressCallback,
) -> tuple[Graph, Path | None]:  # fmt: skip
    """Return the graph and its folder, if it is in one."""
    if isinstance(source, Graph):
        return source, None
    if not isinstance(source, str | Path):
        return source.domain_graph().graph, None
    path = Path(source)
    if (path / "graph.json").is_file():
        about = describe(path)
        streamed = wanted == ["tse"] and needed("tse", about["pages"], about["links"], threads or cores()) > limit
        return Graph.open(path, verify=not streamed), path  # a stream is verified as it is read
    if memory is None:
        return read_graph(source, threads=threads, progress=progress), None
    place = tempfile.TemporaryDirectory(prefix="surveyor-")
    scratch.append(place)
    folder = Path(place.name) / "graph"
    return build_graph(source, folder, memory=memory // 2, threads=threads, progress=progress), folder


def _trusted(count: Count, names: Sequence[str]) -> Trust:
    if needed("pagerank", count.graph.pages, count.graph.links, 1) * 2 > count.limit:
        raise UsageError("trust needs two rankings, and they do not fit in the memory allowed", hint="raise --memory")
    return trust(count.graph, names, threads=count.threads, progress=count.progress)

"""`surveyor doctor --compile`: compile the kernels before they are needed, for container images.

A kernel is compiled for the types of its arguments, which only its callers know. So each step calls the library with
small inputs, in memory and from disk, as the commands do; a crawl fetches pages of the embedded web on loopback. A
kernel that no step needs is compiled when it is first used, as always.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import surveyor as sv

if TYPE_CHECKING:
    from surveyor.cli.progress import ProgressMeter

WEB, PAGES = "small", 60  # the synthetic web, and pages of a crawl
PAIRS = "".join(f"{page} {(3 * page + 1) % 40}\n" for page in range(40))
NAMED = "".join(f"host{page}.example,host{(3 * page + 1) % 40}.example\n" for page in range(40))
STRATEGIES = (
    "breadth",
    "rankmass",
    "windowed",
    "sweep",
    "opic",
    "adaptive",
    "tracking",
    "cho",
    "outlinks",
    "random",
    "printed",
)
WALKS = ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
CONTACT = "doctor@surveyor.example"  # sent to the embedded web


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the steps work on."""

    folder: Path  # scratch
    graph: sv.Graph = field(init=False)  # from disk, where arrays are read-only
    fresh: sv.Graph = field(init=False)  # in memory

    def __post_init__(self) -> None:
        web = sv.synthetic_web(WEB).graph
        web.save(self.folder / "web.graph")
        object.__setattr__(self, "fresh", web)
        object.__setattr__(self, "graph", sv.Graph.open(self.folder / "web.graph"))

    @property
    def both(self) -> tuple[sv.Graph, sv.Graph]:
        """The graph in memory and the one from disk."""
        return self.fresh, self.graph


def compile_all(meter: ProgressMeter) -> int:
    """Compile all kernels that the steps need; return the number that are ready."""
    from numba.core import event

    class Counter(event.Listener):
        stage, compiled = "", 0

        def on_start(self, _event: Any) -> None:
            meter(self.stage, self.compiled, 0, "kernels")

        def on_end(self, _event: Any) -> None:
            self.compiled += 1

    counter = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="surveyor-") as folder,
        warnings.catch_warnings(),
        event.install_listener("numba:compile", counter),
    ):
        warnings.simplefilter("ignore")  # about small samples
        counter.stage = "compiling for graphs"
        inputs = Inputs(Path(folder))
        for step in STEPS:
            counter.stage = f"compiling for {step.__name__.strip('_')}"
            step(inputs)
    return sum(bool(kernel.signatures) for kernel in all_kernels())


def all_kernels() -> list[Any]:
    """Return all kernels."""
    from importlib import import_module
    from pkgutil import iter_modules

    from numba.core.dispatcher import Dispatcher

    import surveyor.kernels

    modules = [import_module(f"surveyor.kernels.{found.name}") for found in iter_modules(surveyor.kernels.__path__)]
    found = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    return list(found.values())


def _files(inputs: Inputs) -> None:
    for name, text in (("ids.txt", PAIRS), ("names.csv", NAMED), ("named.tsv", NAMED.replace(",", "\t"))):
        path = inputs.folder / name
        path.write_text(text, "utf-8")
        graph = sv.read_graph(path)
        sv.pagerank(graph)
        sv.write_graph(graph, inputs.folder / f"copy-{name}")
        sv.build_graph(path, inputs.folder / f"{name}.graph")
        sv.pagerank(sv.Graph.open(inputs.folder / f"{name}.graph"))


def _graphs(inputs: Inputs) -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")]
    sv.pagerank(sv.Graph.from_edges(edges), tolerance=1e-9)
    for dtype in (np.int32, np.int64):
        sv.Graph.from_arrays(np.array([0, 1, 2, 2], dtype), np.array([1, 2, 0, 1], dtype))
    sv.rmat(6, 4)
    inputs.fresh.save(inputs.folder / "again.graph")


def _ranks(inputs: Inputs) -> None:
    for graph in inputs.both:
        ranking = sv.pagerank(graph)
        sv.pagerank(graph, teleport=np.full(graph.pages, 1 / graph.pages), dangling="uniform", tolerance=1e-12)
        sv.explain(graph, ranking, int(ranking.top(1)[0]), what_if=True)
        sv.compare_ranks(ranking.scores, ranking.scores[::-1])


def _domains(inputs: Inputs) -> None:
    for graph in inputs.both:
        condensed = sv.condense(graph).graph
        sv.domains(condensed, "all", top=10, trusted=[condensed.name(0)])
        for level in (1, 2, 3):
            sv.supporters(condensed, level)
        sv.harmonic(condensed)
    folder = inputs.folder / "domains.graph"
    condensed.save(folder)
    sv.domains(folder, "tse", top=10)


def _strategies(inputs: Inputs) -> None:
    for compiled in (None, False):
        options = sv.SimulationOptions(compiled=compiled)
        sv.simulate(inputs.graph, STRATEGIES, sv.Pages(PAGES), rng=1, options=options)


def _samples(inputs: Inputs) -> None:
    for graph in inputs.both:
        sv.sample(graph, until="ess=50")
        for method in WALKS:
            sv.sample(graph, "url:/arts/", method=method, until="steps=2000")


def _communities(inputs: Inputs) -> None:
    for select in ("explore", "complement", "flow"):
        sv.community(inputs.graph, "domain:site41.example", select=select, truth=True)


def _crawl(inputs: Inputs) -> None:
    from surveyor.testing import WebSettings, running

    with running(WebSettings.plain()) as web:
        proxy = f"http://127.0.0.1:{web.port}"
        options: dict[str, Any] = {"contact": CONTACT, "proxy": proxy, "delay": 0.0, "quiet": True}
        goal = sv.Coverage(0.99) | sv.Pages(PAGES)
        for strategy in ("opic", "rankmass"):
            place = inputs.folder / f"{strategy}.survey"
            sv.crawl(web.seeds[0], until=goal, out=place, strategy=strategy, **options).close()
        place = inputs.folder / "rankmass.survey"
        with sv.crawl(web.seeds[0], until=sv.Pages(PAGES + 5), out=place, **options) as survey:
            survey.top(3)
            survey.history()
            sv.domains(survey, "tse", top=10)
            sv.sample(survey, until="ess=20")
        sv.watch(place, once=True, rate=20, **options)
        sv.scout(web.seeds[0], walks=10, out=inputs.folder / "scout.survey", **options)
        sv.sample([web.seeds[0]], until="fetches=20", out=inputs.folder / "sample.survey", **options)


STEPS: tuple[Callable[[Inputs], None], ...] = (
    _graphs,
    _files,
    _ranks,
    _domains,
    _strategies,
    _samples,
    _communities,
    _crawl,
)

"""Results of a simulation: each strategy's crawl of one known web, and the optimal order for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IdArray, IntArray, read_only
from surveyor.errors import UsageError
from surveyor.frames import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from surveyor.crawler.ledger import CoverageInterval

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98)  # shares of importance in tables
POINTS = 200  # per curve in to_dict()
CURVE = 500  # points drawn


@dataclass(frozen=True, slots=True)
class Sample:
    """Accuracy of the importance estimates after some fetches."""

    fetches: int
    l1: float  # distance of estimated from true importance, over all pages
    tau: float  # Kendall's tau of the two orders, over the pages of highest true importance
    bound: float | None = None  # that the strategy gives on l1; None: it gives none

    def to_dict(self) -> dict[str, float | None]:
        """Return the fields as a dict for JSON; non-finite numbers become None."""
        values = {"fetches": self.fetches, "l1": self.l1, "tau": self.tau}
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        return {**finite, "bound": self.bound}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(Tabular):
    """The crawl of one strategy; arrays have one entry per fetched page, in order."""

    strategy: str
    order: IdArray  # the fetched pages
    at_least: FloatArray  # coverage guaranteed after each fetch
    at_most: FloatArray
    true: FloatArray  # true coverage, as the whole web is known
    coverage: CoverageInterval  # at the end
    reached: bool  # whether the goal was reached
    stop_reason: str
    requests: int  # fetches plus failed requests
    link_updates: int  # number of times mass was pushed over a link
    seconds: float  # processor time of ordering and bookkeeping
    compiled: bool  # whether the whole crawl ran in one kernel
    samples: tuple[Sample, ...] = ()
    sampled: FloatArray | None = None  # sampled lower bound after each fetch, if the goal is sampled
    walks: int = 0  # random walks started

    def __post_init__(self) -> None:
        _freeze(self)

    @property
    def fetches(self) -> int:
        """Number of fetched pages."""
        return int(self.order.size)

    @property
    def pages(self) -> int:
        """Number of different pages fetched."""
        return int(np.unique(self.order).size)

    @property
    def importance_error(self) -> float | None:
        """Mean L1 error of estimated importance, over the comparisons in the second half of the fetches."""
        late = [sample.l1 for sample in self.samples if sample.fetches >= self.fetches / 2]
        return float(np.mean(late)) if late else None

    @property
    def microseconds_per_page(self) -> float | None:
        """Cost of ordering and bookkeeping per fetch; None without fetches."""
        return 1e6 * self.seconds / self.fetches if self.fetches else None

    @property
    def link_updates_per_second(self) -> float | None:
        """Link updates per second; None if no time was measured."""
        return self.link_updates / self.seconds if self.seconds > 0 else None

    def fetches_for(self, level: float, which: str = "guaranteed") -> int | None:
        """Return the number of fetches to reach this coverage; None if it was not reached.

        `which` is "guaranteed", "true" or, if the goal of the crawl is sampled, "sampled".
        """
        curves = {"guaranteed": self.at_least, "true": self.true}
        if self.sampled is not None:
            curves["sampled"] = self.sampled
        if which not in curves or not 0 < level <= 1:
            names = " or ".join(f'"{name}"' for name in curves)
            raise UsageError(
                f"level must be in (0, 1] and which {names}, got {level} and {which!r}",
                hint='for example fetches_for(0.9, "true")',
            )
        return _first(curves[which], level)

    def to_dict(self, points: int = POINTS) -> dict[str, Any]:
        """Return counts, times and curves as plain values; a curve is thinned to about `points` points."""
        fetches, sampled = thinned(self.fetches, points), self.sampled
        return {
            "strategy": self.strategy,
            "reached": self.reached,
            "stop_reason": self.stop_reason,
            "fetches": self.fetches,
            "pages": self.pages,
            "importance_error": self.importance_error,
            "requests": self.requests,
            "coverage": self.coverage.to_dict(),
            "guaranteed": _by_level(self.fetches_for),
            "sampled": None if sampled is None else _by_level(lambda level: self.fetches_for(level, "sampled")),
            "true": _by_level(lambda level: self.fetches_for(level, "true")),
            "walks": self.walks,
            "seconds": self.seconds,
            "microseconds_per_page": self.microseconds_per_page,
            "link_updates": self.link_updates,
            "link_updates_per_second": self.link_updates_per_second,
            "compiled": self.compiled,
            "samples": [sample.to_dict() for sample in self.samples],
            "curve": {
                "fetches": fetches.tolist(),
                "at_least": self.at_least[fetches - 1].tolist(),
                "at_most": self.at_most[fetches - 1].tolist(),
                "sampled": None if sampled is None else sampled[fetches - 1].tolist(),
                "true": self.true[fetches - 1].tolist(),
            },
        }

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {
            "fetch": np.arange(1, self.fetches + 1),
            "page": self.order,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "true": self.true,
        }
        return columns if self.sampled is None else {**columns, "sampled": self.sampled}

    def _draw(self, axes: Axes) -> None:
        at = thinned(self.fetches, CURVE)
        for name in ("true", "at_least", "at_most"):
            axes.semilogx(at, getattr(self, name)[at - 1], label=name)
        _label_coverage(axes)

    def __repr__(self) -> str:
        bounds = f"coverage {self.coverage.at_least:.3f} to {self.coverage.at_most:.3f}"
        return f"Run({self.strategy}, {self.fetches:,} fetches, {bounds}, {'' if self.reached else 'not '}reached)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Race(Tabular):
    """Several strategies on the same web, from the same seeds, towards the same goal."""

    runs: tuple[Run, ...]
    optimal: FloatArray  # true coverage of the best k fetchable pages, for k = 1, 2, …
    pages: int
    links: int
    seeds: IdArray
    damping: float
    until: str
    rng: int
    truth_error: float  # proven L1 error of the true importance
    notes: tuple[str, ...] = ()  # other conditions: gone pages, blocked hosts, budgets, batches, changes
    goal: float | None = None  # coverage goal, if any
    changing: bool = False  # whether the web changed
    confidence: float | None = None  # of the goal, if it is sampled
    seed_names: tuple[str, ...] = ()  # names of the first seeds, if pages have names
    weights: FloatArray | None = None  # of the seeds, in random jumps; None: equal

    def __post_init__(self) -> None:
        _freeze(self)

    @property
    def reached(self) -> bool:
        """Whether every strategy reached the goal."""
        return all(run.reached for run in self.runs)

    def optimal_fetches_for(self, level: float) -> int | None:
        """Return the minimum number of pages with this coverage; None if it cannot be reached."""
        return _first(self.optimal, level - self.truth_error)

    def ratio(self, run: Run, level: float, which: str = "guaranteed") -> float | None:
        """Return the fetches of a run relative to the optimal order; None if the level was not reached."""
        fetches, best = run.fetches_for(level, which), self.optimal_fetches_for(level)
        return fetches / best if fetches is not None and best is not None else None

    def to_dict(self, points: int = POINTS) -> dict[str, Any]:
        """Return tables and curves as plain values; a curve is thinned to about `points` points."""
        best = thinned(self.optimal.size, points)
        return {
            "pages": self.pages,
            "links": self.links,
            "seeds": self.seeds.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "seed_names": list(self.seed_names),
            "damping": self.damping,
            "rng": self.rng,
            "until": self.until,
            "goal": self.goal,
            "confidence": self.confidence,
            "reached": self.reached,
            "truth_error": self.truth_error,
            "notes": list(self.notes),
            "optimal": _by_level(self.optimal_fetches_for),
            "optimal_curve": {"fetches": best.tolist(), "true": self.optimal[best - 1].tolist()},
            "runs": [{**run.to_dict(points), "ratio": self._ratios(run)} for run in self.runs],
        }

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {
            "strategy": [np.repeat(run.strategy, run.fetches) for run in self.runs],
            "fetch": [np.arange(1, run.fetches + 1) for run in self.runs],
            "id": [run.order for run in self.runs],
            "at_least": [run.at_least for run in self.runs],
            "at_most": [run.at_most for run in self.runs],
            "true": [run.true for run in self.runs],
        }
        if self.confidence is not None:
            columns["sampled"] = [run.sampled for run in self.runs]
        return {name: np.concatenate(parts) for name, parts in columns.items() if parts}

    def _draw(self, axes: Axes) -> None:
        for run in self.runs:
            at = thinned(run.fetches, CURVE)
            axes.semilogx(at, run.true[at - 1], label=run.strategy)
        at = thinned(self.optimal.size, CURVE)
        axes.semilogx(at, self.optimal[at - 1], "k:", label="best possible order")
        _label_coverage(axes)

    def _ratios(self, run: Run) -> dict[str, dict[str, float | None] | None]:
        return {
            "guaranteed": _by_level(lambda level: self.ratio(run, level)),
            "sampled": None if run.sampled is None else _by_level(lambda level: self.ratio(run, level, "sampled")),
            "true": _by_level(lambda level: self.ratio(run, level, "true")),
        }

    def __repr__(self) -> str:
        names = ", ".join(run.strategy for run in self.runs)
        return f"Race({names}; {self.pages:,} pages, {self.links:,} links; until {self.until}; rng {self.rng})"

    def _html(self) -> str:
        tables = self._table("guaranteed", "guaranteed" if self.confidence is None else "certified")
        if self.confidence is not None:
            tables += self._table("sampled", f"sampled at {100 * self.confidence:.10g} %")
        return f"<p>{escape(repr(self))}</p>{tables}"

    def _table(self, which: str, word: str) -> str:
        rows = {run.strategy: _by_level(partial(run.fetches_for, which=which)) for run in self.runs}
        rows["best possible order"] = _by_level(self.optimal_fetches_for)
        titles = "".join(f"<th>{level:.0%}</th>" for level in LEVELS)
        body = "".join(
            f"<tr><td>{escape(name)}</td>{''.join(f'<td>{_shown(fetches)}</td>' for fetches in row.values())}</tr>"
            for name, row in rows.items()
        )
        caption = f"<caption>fetches until this share was {word}</caption>"
        return f"<table>{caption}<tr><th>strategy</th>{titles}</tr>{body}</table>"


def _label_coverage(axes: Axes) -> None:
    axes.set_xlabel("fetches")
    axes.set_ylabel("coverage")
    axes.legend()


def thinned(size: int, points: int = POINTS) -> IntArray:
    """Return at most `points` of the counts 1 to `size`, evenly spaced on a log scale, with the first and the last.

    >>> thinned(10_000, 5).tolist(), thinned(3, 5).tolist()
    ([1, 10, 100, 1000, 10000], [1, 2, 3])
    """
    points = max(points, 2)
    if size <= points:
        return np.arange(1, size + 1)
    return np.unique(np.geomspace(1, size, points).round().astype(np.int64))


def _first(curve: FloatArray, level: float) -> int | None:
    """Return the number of entries up to the first that reaches the level; None if none does."""
    reached = curve >= level
    return int(reached.argmax()) + 1 if reached.any() else None


def _by_level(value: Callable[[float], Any]) -> dict[str, Any]:
    return {f"{level:g}": value(level) for level in LEVELS}


def _freeze(result: Run | Race) -> None:
    for field in fields(result):
        if isinstance(value := getattr(result, field.name), np.ndarray):
            object.__setattr__(result, field.name, read_only(value))


def _shown(fetches: int | None) -> str:
    return "–" if fetches is None else f"{fetches:,}"

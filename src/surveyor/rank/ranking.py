"""The result of ranking: one score per page, with a proven error and the method."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import FloatArray, IntArray, read_only
from surveyor.errors import MissingExtra, UsageError
from surveyor.graph.names import Names

if TYPE_CHECKING:
    import polars


FAINT = 1e-9  # of the best share: lower end of the log scale


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking:
    """Scores over the pages of one graph."""

    scores: FloatArray  # sum to 1; read-only
    error: float  # the L1 distance to the exact answer is at most this
    sweeps: int  # passes over all links, including the last one, which proves the error
    damping: float
    tolerance: float
    solver: str  # "power", "seidel" or "push": the one that did most of the work
    dangling: str  # where a surfer goes from a page without links
    jump: FloatArray | None = None  # teleport distribution; None: uniform
    stuck_to: FloatArray | None = None  # where a surfer goes from a page without links; None: uniform
    history: tuple[float, ...] = ()  # the proven bound after each sweep
    names: Names | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", read_only(self.scores))

    @property
    def teleport(self) -> str:
        """Teleport distribution: "uniform", or "given" by the caller."""
        return "uniform" if self.jump is None else "given"

    def top(self, count: int = 10) -> IntArray:
        """Return the ids of the best pages, best first; ties broken by id."""
        count = max(0, min(count, self.scores.size))
        best = np.arange(self.scores.size)
        if count < self.scores.size // 4:
            # Everything not below the last of the best, so that ties at the edge are broken by id too.
            edge = np.partition(self.scores, -count)[-count] if count else np.inf
            best = np.flatnonzero(self.scores >= edge)
        return best[np.lexsort((best, -self.scores[best]))[:count]]

    def share(self, page: int | str) -> float:
        """Return the score of a page, by id or by name."""
        return float(self.scores[self._id(page)])

    def position(self, page: int | str) -> int:
        """Return the number of pages above this one, plus one (ties share the better position)."""
        return int(np.count_nonzero(self.scores > self.share(page))) + 1

    def marks(self) -> FloatArray:
        """Return scores from 0 to 100 on a log scale, from the smallest share to the largest of this ranking."""
        positive = self.scores[self.scores > 0]
        if positive.size == 0:
            return np.zeros_like(self.scores)
        best = float(positive.max())
        floor = max(float(positive.min()), FAINT * best)  # pages far from the seeds would stretch the scale too much
        if floor == best:
            return np.where(self.scores > 0, 100.0, 0.0)
        marks: FloatArray = 100 * np.log(np.maximum(self.scores, floor) / floor) / np.log(best / floor)
        return marks

    def name(self, page: int) -> str:
        """Return the name of a page, or its id as text."""
        return str(page) if self.names is None else self.names[page]

    def to_dict(self, top: int = 10) -> dict[str, Any]:
        """Return the best pages and all parameters as plain values."""
        marks = self.marks()
        return {
            "error": self.error, "sweeps": self.sweeps, "damping": self.damping, "tolerance": self.tolerance,
            "solver": self.solver, "dangling": self.dangling, "teleport": self.teleport,
            "pages": [
                {"page": page, "name": self.name(page), "share": self.share(page), "score": float(marks[page])}
                for page in self.top(top).tolist()
            ],
        }  # fmt: skip

    def to_polars(self) -> polars.DataFrame:
        """Return page, name and share as a Polars table."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtra("to_polars()", "polars", "frames") from error
        columns: dict[str, Any] = {"page": np.arange(self.scores.size), "share": self.scores}
        if self.names is not None:
            columns["name"] = list(self.names)
        return polars.DataFrame(columns)

    def _id(self, page: int | str) -> int:
        if isinstance(page, str):
            if self.names is None:
                raise UsageError(f"no page named {page!r}: this ranking has no names", hint="ask by id")
            return self.names.id_of(page)
        if not 0 <= page < self.scores.size:
            raise UsageError(f"no page {page}: ids go from 0 to {self.scores.size - 1}", hint="see .top()")
        return page

    def __repr__(self) -> str:
        size = f"{self.scores.size:,} pages"
        return f"Ranking({size}, error at most {self.error:.1e}, {self.sweeps} sweeps, {self.solver})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row['score']:.0f}</td><td>{row['share']:.3%}</td><td>{escape(row['name'])}</td></tr>"
            for row in self.to_dict()["pages"]
        )
        return f"<p>{escape(repr(self))}</p><table><tr><th>score</th><th>share</th><th>page</th></tr>{rows}</table>"

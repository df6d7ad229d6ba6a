"""Ranks over pieces that are improved by sweeps: the part of a PageRank computation that has no vectors.

It decides which step comes next, and sums the results of all pieces (with `math.fsum`, which rounds only once), so that
the bytes of the result do not depend on workers. The bounds are those of `rank/sweeps.py`: a Gauss–Seidel sweep
reads old and new values, wherever they are computed; the final power sweep reads only old ones, and its residual is
the certificate.

**Log.** The results of all steps, a few numbers per piece, are kept in order. When a worker is lost, all workers
start from the last checkpoint and repeat the steps after it, which gives the same numbers. When the whole computation
is killed, the next one with the same parameters reads the log up to the last checkpoint instead of computing it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor.errors import GraphError, SurveyError, UsageError
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.tasks import REPEAT, Executor, insist
from surveyor.rank.pieces.worker import checkpoint_file
from surveyor.rank.sweeps import DEPTH, HISTORY, PRECISE, ROUNDING, SUM_ROUNDING, extrapolation

LOG = "log.jsonl"


class RunOptions(NamedTuple):
    """Parameters of a computation that its numbers depend on."""

    damping: float
    teleport: str  # "uniform", or a checksum of the distribution
    uniform_dangling: bool
    tolerance: float
    max_sweeps: int


class Log:
    """The steps done so far, and the results of their pieces."""

    def __init__(self, work: Path, key: dict[str, Any]) -> None:
        """Open the log of a computation; reject that of another one."""
        self._path = work / LOG
        self.checkpoint: int | None = None  # last step that a checkpoint includes
        self.results: list[Any] = []
        self.asked: list[tuple[str, Any]] = []
        if self._path.is_file():
            self._read(key)
        self._rewrite(key)

    def add(self, name: str, arguments: Any, results: list[Any]) -> None:
        """Append a step."""
        self.asked.append((name, arguments))
        self.results.append(results)
        self._append({"step": name, "arguments": arguments, "results": results})

    def save(self, step: int) -> None:
        """Record that a checkpoint is complete; it is durable when this returns."""
        self.checkpoint = step
        self._append({"checkpoint": step}, durable=True)

    def _append(self, line: dict[str, Any], *, durable: bool = False) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            if durable:
                file.flush()
                os.fsync(file.fileno())

    def _read(self, key: dict[str, Any]) -> None:
        """Read the steps up to the last checkpoint; a torn last line is ignored."""
        try:
            lines = self._path.read_text("utf-8").split("\n")
            if json.loads(lines[0]) != key:
                raise UsageError(
                    f"{self._path.parent} has checkpoints of a ranking with other pieces or parameters",
                    hint="choose another folder, or remove this one",
                )
            steps: list[tuple[str, Any, list[Any]]] = []
            for line in lines[1:-1]:
                entry = json.loads(line)
                if "checkpoint" in entry:
                    self.checkpoint = int(entry["checkpoint"])
                else:
                    steps.append((str(entry["step"]), entry["arguments"], list(entry["results"])))
        except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            raise SurveyError(
                f"{self._path} is damaged ({repr(error)[:200]})", hint="remove its folder and rank again"
            ) from error
        kept = steps[: 0 if self.checkpoint is None else self.checkpoint + 1]
        self.asked = [(name, arguments) for name, arguments, _ in kept]
        self.results = [results for _, _, results in kept]

    def _rewrite(self, key: dict[str, Any]) -> None:
        lines = [json.dumps(key)]
        for (name, arguments), results in zip(self.asked, self.results, strict=True):
            lines.append(json.dumps({"step": name, "arguments": arguments, "results": results}))
        if self.checkpoint is not None:
            lines.append(json.dumps({"checkpoint": self.checkpoint}))
        draft = self._path.with_name(f"{LOG}.draft")
        draft.write_text("\n".join(lines) + "\n", "utf-8")
        draft.rename(self._path)


class Steps:
    """Numbered steps on all workers, repeated from the last checkpoint when workers are lost."""

    def __init__(self, executor: Executor, log: Log, work: Path, seconds: float) -> None:
        """Write a checkpoint at most every so many seconds."""
        self._executor, self._log, self._work, self._seconds = executor, log, work, seconds
        self._step = 0  # the next one
        self._saved_at = time.monotonic()
        self._running = False
        self.recoveries = 0

    def run(self, name: str, arguments: Any = None) -> list[Any]:
        """Do the next step, or return its results from the log."""
        step, self._step = self._step, self._step + 1
        if step < len(self._log.results):
            if self._log.asked[step] != (name, _plain(arguments)):
                raise SurveyError(
                    f"{self._work} has checkpoints of another version of surveyor", hint="remove it and rank again"
                )
            return list(self._log.results[step])
        results = self._insist(step, name, arguments)
        self._log.add(name, _plain(arguments), _plain(results))
        return results

    def checkpoint(self) -> None:
        """Write a checkpoint of the ranks after the last step, if the last one is old enough."""
        step = self._step - 1
        if step < len(self._log.results) - 1 or step == self._log.checkpoint or not self._running:
            return
        if time.monotonic() - self._saved_at < self._seconds:
            return
        self._insist(step, "save", step)
        before, self._saved_at = self._log.checkpoint, time.monotonic()
        self._log.save(step)
        if before is not None:
            shutil.rmtree(checkpoint_file(self._work, before, 0).parent, ignore_errors=True)

    def finish(self, name: str, arguments: Any) -> list[Any]:
        """Do a last step that is not logged."""
        return self._insist(self._step - 1, name, arguments)

    def _insist(self, step: int, name: str, arguments: Any) -> list[Any]:
        """Do a step, with new workers as often as some are lost."""

        def attempt() -> list[Any]:
            if not self._running:
                self._restore(step if name in ("save", "scores") else step - 1)
            return self._executor.run(step, name, arguments)

        return insist(attempt, self._lost, f"{REPEAT}: it resumes from the checkpoint")

    def _lost(self) -> None:
        self._running = False
        self.recoveries += 1

    def _restore(self, last: int) -> None:
        """Start workers, and bring them to the state after a step."""
        self._executor.start()
        saved = self._log.checkpoint
        first = 0 if saved is None else saved + 1
        if saved is not None:
            self._executor.run(saved, "start", saved)
        for step in range(first, last + 1):
            name, arguments = self._log.asked[step]
            self._executor.run(step, name, arguments)
        self._running = True


class PieceSweeps:
    """Ranks over pieces; `pagerank.solve` improves them like `sweeps.Sweeps`."""

    def __init__(self, pieces: Pieces, options: RunOptions, steps: Steps) -> None:
        self.pieces, self.damping, self.options, self.steps = pieces, options.damping, options, steps
        self.one_teleport = not options.uniform_dangling  # for jumps and dangling pages
        self.history: list[float] = []
        self.change = 1.0
        self._fresh_rows = 1
        self._largest = max((piece.pages for piece in pieces.counts), default=0)
        self._measured(steps.run("start"))

    @property
    def error(self) -> float:
        """The proven bound of the current ranks."""
        return self.history[-1] if self.history else (0.0 if self.pieces.pages == 0 else 2.0)

    @property
    def sweeps(self) -> int:
        """The number of passes over all links."""
        return len(self.history)

    def prove(self) -> float:
        """Run one power sweep, whose bound is as sharp as the residual; return the bound."""
        naive = ROUNDING * (self._largest + 2)  # relative error of a sum over a piece, page by page
        sum_rounding = naive
        if self.change < PRECISE * self.total:
            self._measured(self.steps.run("measure"))
            sum_rounding = SUM_ROUNDING
        total = self.total
        rounding = ROUNDING * self._sweep("power") / total + sum_rounding
        self._fresh_rows = 1
        residual = (1 + naive) * self.change / total + rounding
        bound = self._record(self.damping * residual / (1 - self.damping) + 2 * rounding)
        self.steps.checkpoint()
        return bound

    def seidel(self) -> float:
        """Run one Gauss–Seidel sweep in each piece; return its (looser) bound without rounding."""
        rows = DEPTH + 1
        if self._fresh_rows == rows:
            self._blend()
        self._sweep("seidel")
        self._fresh_rows = min(self._fresh_rows + 1, rows)
        factor = 2 * self.damping if self.one_teleport else 1 + self.damping
        bound = factor * self.change / ((1 - self.damping) * self.total)
        self._record(bound + 4 * ROUNDING * (self._largest + 2) / (1 - self.damping))
        return bound

    def accurate_total(self) -> float:
        """Return the accurate sum of the ranks, which scales the scores to sum 1."""
        self._measured(self.steps.run("measure"))
        return self.total

    def _sweep(self, name: str) -> float:
        """Run a sweep; return the sum of its rounding terms."""
        jumps, dangling = (1 - self.damping) * self.total, self.damping * self.dangling_sum
        if self.one_teleport:
            return self._add(self.steps.run(name, [jumps + dangling, 0.0]))
        return self._add(self.steps.run(name, [jumps, dangling / self.pieces.pages]))

    def _add(self, sums: list[Any]) -> float:
        self.change, self.total, self.dangling_sum, rounding = (_sum(sums, place) for place in range(4))
        self._check_total()
        return rounding

    def _measured(self, sums: list[Any]) -> None:
        self.total, self.dangling_sum = (_sum(sums, place) for place in range(2))
        self._check_total()

    def _check_total(self) -> None:
        """Reject ranks that no graph has: the links of the pieces are wrong."""
        if self.pieces.pages and not 0 < self.total < math.inf:
            raise GraphError(
                f"{self.pieces.folder} is damaged: the ranks of its pages sum to {self.total:g}",
                hint="split or build the folder again",
            )

    def _record(self, bound: float) -> float:
        self.history.append(min(2.0, float(bound)))
        return self.history[-1]

    def _blend(self) -> None:
        """Replace the ranks by the combination of the last ones whose combined change is smallest."""
        grams = np.array(self.steps.run("gram"))
        self._fresh_rows = 1
        lower = np.zeros(grams.shape[1:])
        for products in grams:  # in the order of the pieces
            lower += products
        parts = extrapolation(lower)
        if parts is not None:
            self._add(self.steps.run("blend", parts.tolist()))
        self.steps.checkpoint()


def is_stored(pieces: Pieces) -> bool:
    """Return whether the ranks of the last sweeps are on disk: they take 48 bytes per page."""
    return (DEPTH + 1) * 8 * pieces.pages > HISTORY


def _sum(results: Sequence[Sequence[float]], place: int) -> float:
    return math.fsum(part[place] for part in results)


def _plain(value: Any) -> Any:
    """Return a value as JSON reads it back; floats are kept exactly."""
    return json.loads(json.dumps(value))

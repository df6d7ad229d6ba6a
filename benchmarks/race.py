"""All tools on one graph, in turn, round after round; the minimum of the rounds counts.

A tool lives in its own process, which builds once and then ranks on command, so that rounds can alternate
between tools and the peak of memory is its own. First all tools build from arrays and the accuracy is
searched at which each reaches a true error; then rounds of ranking and building from arrays; then, in new
processes that never saw the arrays, rounds of building from text and from gzip text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks import memory
from benchmarks.graphs import Input
from benchmarks.peers import TOOLS
from benchmarks.process import Lost, Process
from benchmarks.search import Found, loosest

ERRORS = (1e-6, 1e-11)
BUILD, RANK = 400.0, 200.0  # seconds that one build or ranking may take
LONG_BUILD, LONG_RANK = 10.0, 60.0  # what takes longer than this many seconds is not repeated
QUICK = 0.5  # what takes less is done three times in a turn
HEADROOM = 2 << 30


@dataclass(slots=True)
class Result:
    """What was measured of one tool on one graph."""

    tool: str
    reader: str
    skipped: str = ""  # why nothing, or nothing more, was measured
    seconds: dict[str, float] = field(default_factory=dict)  # minimum of: arrays, text, gz, 1e-06, 1e-11
    accuracy: dict[str, float | None] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    start: int = 0  # bytes resident after imports, with the arrays
    peak: int = 0  # bytes, from arrays to ranks
    text_start: int = 0
    text_peak: int = 0  # bytes, from text to ranks

    def time(self, what: str, answer: dict[str, Any]) -> None:
        """Keep a time if it is the best so far."""
        if "failed" in answer:
            self.skipped = answer["failed"]
        else:
            self.seconds[what] = min(self.seconds.get(what, math.inf), answer["seconds"])

    def tries(self, what: str) -> int:
        """Say how often a turn repeats what took this long before."""
        before = self.seconds.get(what, 1.0)
        longest = LONG_RANK if what in self.accuracy else LONG_BUILD
        return 0 if before > longest else 1 if before > QUICK else 3


Task = Callable[[Process, Result], None]


def race(graph: Input, tools: Sequence[str], rounds: int, threads: int) -> list[Result]:
    """Measure all tools on one graph."""
    results = [Result(name, TOOLS[name].reader) for name in tools]
    for result in results:
        if graph.links > TOOLS[result.tool].most_links:
            result.skipped = f"skipped: over {TOOLS[result.tool].most_links // 10**6} M links"
    with ExitStack() as stack:
        running = _start(stack, graph, results, "arrays", threads)
        _each(running, _build_and_search)
        for _ in range(rounds):
            for error in ERRORS:
                _each(running, _ranker(error))
            _each(running, _build_again)
    for result in results:
        if TOOLS[result.tool].one_accuracy:  # all its rankings were the same
            quickest = min((result.seconds[key] for key in result.accuracy if key in result.seconds), default=0.0)
            result.seconds.update({key: quickest for key in result.accuracy if key in result.seconds})
    with ExitStack() as stack:
        running = _start(stack, graph, results, "text", threads)
        _each(running, _texter(graph, "text", first=True))
        for again in range(rounds):
            if again:
                _each(running, _texter(graph, "text"))
            _each(running, _texter(graph, "gz"))
    return results


def say(text: str) -> None:
    """Report progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def _start(stack: ExitStack, graph: Input, results: list[Result], form: str, threads: int) -> dict[str, Any]:
    """Start the workers, one after the other."""
    running: dict[str, tuple[Process, Result]] = {}
    for result in results:
        if result.skipped:
            continue
        if memory.available() < HEADROOM + 200 * graph.links:
            result.skipped = "skipped: too little free memory"
            continue
        try:
            process = stack.enter_context(Process(result.tool, graph, form, threads))
        except Lost as problem:
            result.skipped = f"start: {problem}"
            continue
        if form == "arrays":
            result.start = process.start
        else:
            result.text_start = process.start
        running[result.tool] = process, result
    return running


def _each(running: dict[str, tuple[Process, Result]], task: Task) -> None:
    """Give every tool its turn; one that fails or takes too long drops out."""
    for name, (process, result) in list(running.items()):
        try:
            task(process, result)
        except Lost as problem:
            result.skipped = str(problem)
        if result.skipped:
            say(f"  {name}: {result.skipped}")
            process.close()
            del running[name]


def _build_and_search(process: Process, result: Result) -> None:
    result.time("arrays", process.ask("arrays", BUILD))
    if result.skipped:
        return

    def rank(accuracy: float) -> dict[str, Any]:
        return process.ask("rank", RANK, accuracy=accuracy)

    for error in ERRORS:
        found: Found = loosest(rank, error, one_accuracy=TOOLS[result.tool].one_accuracy)
        key = f"{error:.0e}"
        result.accuracy[key], result.error[key] = found.accuracy, found.error
        if found.answer and "failed" not in found.answer:
            result.facts[key] = found.answer
            result.peak = result.peak or int(found.answer["peak"])
            result.time(key, found.answer)
    if result.tool == "surveyor":
        for error in ERRORS:
            result.facts[f"proven {error:.0e}"] = rank(error)
    done = ", ".join(f"{key} at {value or math.nan:.1e}" for key, value in result.accuracy.items())
    say(f"  {result.tool}: built in {result.seconds['arrays']:.2f} s; {done}")


def _ranker(error: float) -> Task:
    key = f"{error:.0e}"

    def task(process: Process, result: Result) -> None:
        for _ in range(result.tries(key) if result.accuracy.get(key) else 0):
            result.time(key, process.ask("rank", RANK, accuracy=result.accuracy[key]))
        proven = result.facts.get(f"proven {key}", {})
        for _ in range(result.tries(key) if "seconds" in proven else 0):
            again = process.ask("rank", RANK, accuracy=error)
            proven["seconds"] = min(proven["seconds"], again.get("seconds", math.inf))

    return task


def _build_again(process: Process, result: Result) -> None:
    for _ in range(result.tries("arrays")):
        result.time("arrays", process.ask("arrays", BUILD))


def _texter(graph: Input, form: str, *, first: bool = False) -> Task:
    path = str(graph.text if form == "text" else graph.gz)

    def task(process: Process, result: Result) -> None:
        for _ in range(result.tries(form)):
            result.time(form, process.ask("text", BUILD, path=path))
        if first and not result.skipped:
            accuracy = result.accuracy.get("1e-06") or 1e-6
            result.text_peak = int(process.ask("rank", RANK, accuracy=accuracy).get("peak", 0))

    return task

"""What was promised, and by how much it was kept or missed.

Ratios are surveyor's number over that of the best peer, so smaller is better. Times of the real graphs have
targets of their own, and so have those of the expander; those of the synthetic web are reported. Some peers
put off turning the links round until they rank, every time; builds are compared with all peers, and beside
that with those whose builds are complete. The row "from text to ranks" compares whole jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.graphs import Input
from benchmarks.peers import TOOLS
from benchmarks.race import Result

RANK_TARGETS: dict[str, dict[str, float | None]] = {
    "real": {"1e-06": 0.45, "1e-11": 0.8},
    "expander": {"1e-06": 0.7, "1e-11": 0.7},
    "web": {"1e-06": None, "1e-11": None},
}
TEXT, ARRAYS, MEMORY = 0.3, 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """A number beside its target; smaller is better."""

    what: str
    measured: str
    value: float
    target: float | None

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target

    @property
    def words(self) -> str:
        if self.target is None:
            return "reported"
        return "met" if self.met else f"missed by {self.value / self.target:.2f}×"


def verdicts(graph: Input, results: Sequence[Result]) -> list[Verdict]:
    """Compare surveyor with the best peer in everything that has a target."""
    ours = next((result for result in results if result.tool == "surveyor"), None)
    if ours is None:
        return []
    peers = [result for result in results if result is not ours]
    builders = [result for result in peers if not TOOLS[result.tool].turns_later]
    libraries = [result for result in peers if TOOLS[result.tool].library]
    targets = RANK_TARGETS[graph.kind]

    def seconds(what: str) -> Callable[[Result], float]:
        return lambda result: result.seconds.get(what, 0.0)

    def to_error(key: str) -> Callable[[Result], float]:
        return lambda result: result.seconds.get(key, 0.0) if result.accuracy.get(key) else 0.0

    def whole(result: Result) -> float:
        reached = result.accuracy.get("1e-06") and "text" in result.seconds
        return result.seconds["text"] + result.seconds["1e-06"] if reached else 0.0

    rows = [
        _ratio("rank to 1e-6", ours, peers, to_error("1e-06"), targets["1e-06"], "s"),
        _ratio("rank to 1e-11", ours, peers, to_error("1e-11"), targets["1e-11"], "s"),
        _ratio("build from arrays", ours, peers, seconds("arrays"), ARRAYS, "s"),
        _ratio("… against complete builds", ours, builders, seconds("arrays"), None, "s"),
        _ratio("build from text", ours, peers, seconds("text"), TEXT, "s"),
        _ratio("… against complete builds", ours, builders, seconds("text"), None, "s"),
        _ratio("build from gzip text", ours, builders, seconds("gz"), None, "s"),
        _ratio("from text to ranks, 1e-6", ours, peers, whole, None, "s"),
        _ratio("peak memory from arrays", ours, libraries, lambda one: one.peak / 2**20, MEMORY, "MB"),
        _ratio("… above the start", ours, libraries, lambda one: (one.peak - one.start) / 2**20, None, "MB"),
        _ratio("peak memory from text", ours, libraries, lambda one: one.text_peak / 2**20, MEMORY, "MB"),
    ]
    return [row for row in rows if row]


def _ratio(
    what: str, ours: Result, peers: Sequence[Result], of: Callable[[Result], float], target: float | None, unit: str
) -> Verdict | None:
    """Compare one number; None where surveyor or all peers lack it."""
    mine, theirs = of(ours), [(of(peer), peer.tool) for peer in peers if of(peer) > 0]
    if not mine > 0 or not theirs:
        return None
    best, name = min(theirs)
    digits = 3 if unit == "s" else 0
    measured = f"{mine:.{digits}f} {unit}, best peer {best:.{digits}f} {unit} ({name})"
    return Verdict(what, measured, mine / best, target)

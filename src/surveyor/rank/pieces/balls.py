"""HyperBall over pieces: harmonic centrality, bit-identical to that of the graph in one part.

A level is one task. Each piece has the counters of its pages and of its ghosts, grows the balls of its pages, and
sends the counters that changed. A register is hashed from the number of its page, the counter of a union is a maximum,
and the estimate of a page depends on its own counters only: so neither the pieces nor their order change a bit.

Memory: 2 m bytes per page and m per ghost of the pieces that a worker computes at a time, with counters of m registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surveyor.graph.pieces.tasks import Place, Tasks
from surveyor.stopping import ProgressCallback, silent


class Growth(NamedTuple):
    """The state after growing balls."""

    levels: int
    complete: bool  # no counter would change at a further level


def grow_balls(tasks: Tasks, registers: int, rng: int, progress: ProgressCallback = silent) -> Growth:
    """Write the harmonic centrality ("harmonic") and its dispersion ("harmonic-dispersion") of each page."""
    tasks.run(send_hashes, (rng % 2**64, registers.bit_length() - 1))
    level, changes = 1, sum(tasks.run(first_balls, registers))
    while changes:
        progress("growing balls", level, 0, "levels")
        changes = sum(tasks.run(next_balls, (level + 1, registers)))
        tasks.drop(*(f"{name}-{level}" for name in STATE))
        level += 1
    tasks.run(write_centrality, level)
    tasks.drop("register", "value", *(f"{name}-{level}" for name in STATE))
    return Growth(level - 1, complete=True)


STATE = ("counter", "changed", "sum", "variance")


def send_hashes(place: Place, seed_and_bits: tuple[int, int]) -> None:
    """Write, and send, the register and the value that each page is hashed to."""
    from surveyor.kernels.sketches import DomainHashes, init_numbered_registers

    seed, bits = seed_and_bits
    size = place.piece.pages
    hashes = DomainHashes(np.empty(size, np.uint16), np.empty(size, np.uint8))
    with np.errstate(over="ignore"):  # hashes wrap on purpose; only uncompiled kernels would warn
        init_numbered_registers(np.uint64(seed), place.numbers, hashes, bits)
    columns: dict[str, Any] = {"register": hashes.register, "value": hashes.value}
    for name, values in columns.items():
        place.write(name, values)
        place.send(name, values)


def first_balls(place: Place, registers: int) -> int:
    """Write the balls of level 1; return the number of pages with in-links."""
    from surveyor.kernels.sketches import DomainHashes, first_level

    pages = place.piece.pages
    every: list[Any] = [
        np.concatenate([place.read(name), place.received(name, kind)]).astype(kind)
        for name, kind in (("register", np.uint16), ("value", np.uint8))
    ]
    counters, changed = np.zeros(pages * registers, np.uint8), np.zeros(pages, np.uint8)
    moved = first_level(_links(place), DomainHashes(*every), counters, changed, registers, 0, pages)
    degrees = np.diff(place.piece.indptr).astype(np.float64)
    _write_state(place, 1, (counters, changed, degrees, np.zeros(pages)))
    return int(moved)


def next_balls(place: Place, level_and_registers: tuple[int, int]) -> int:
    """Grow the balls of a piece to a level; return the number of counters that changed."""
    from surveyor.kernels.sketches import CounterBuffers, LevelEstimates, grow_counters

    level, registers = level_and_registers
    counters, own_changed, harmonic, variance = (place.read(f"{name}-{level - 1}") for name in STATE)
    pages = place.piece.pages
    changed = np.concatenate([own_changed, place.received(f"changed-{level - 1}", np.uint8)]).astype(np.uint8)
    before = np.zeros((changed.size, registers), np.uint8)
    before[:pages] = counters.reshape(pages, registers)
    ghosts = pages + np.flatnonzero(changed[pages:])
    before[ghosts] = _received_counters(place, level - 1, registers)
    after = np.array(counters)
    fresh = np.zeros(pages, np.uint8)
    found = LevelEstimates(
        np.zeros(pages, np.float32), np.full(pages, -1, np.float32), np.array(harmonic), np.array(variance)
    )
    buffers = CounterBuffers(before.reshape(-1), after, changed, fresh)
    moved = grow_counters(_links(place), buffers, found, level, 0, pages)
    _write_state(place, level, (after, fresh, found.harmonic, found.variance))
    return int(moved)


def _links(place: Place) -> Any:
    from surveyor.kernels.sketches import Adjacency

    return Adjacency(place.piece.indptr.view(np.uint64), place.piece.indices.view(np.uint32))


def _write_state(place: Place, level: int, state: tuple[Any, ...]) -> None:
    """Write the state of a piece, and send which counters changed, and those."""
    for name, values in zip(STATE, state, strict=True):
        place.write(f"{name}-{level}", values)
    counters, changed = state[:2]
    sends, starts = place.piece.sends, place.piece.send_starts
    place.send(f"changed-{level}", changed)
    fresh = changed[sends] > 0
    rows = counters.reshape(changed.size, -1) if changed.size else counters.reshape(0, 1)
    place.write(f"counter-{level}.sent", rows[sends[fresh]].reshape(-1))
    ends = np.concatenate([[0], np.cumsum(fresh)])
    place.write(f"changed-{level}.starts", ends[starts].astype(np.int64))


def _received_counters(place: Place, level: int, registers: int) -> Any:
    """Return the counters of the ghosts that changed."""
    parts = [np.empty((0, registers), np.uint8)]
    for other, _ in place.spans:
        low, high = place.read(f"changed-{level}.starts", other)[place.number : place.number + 2].tolist()
        rows = place.read(f"counter-{level}.sent", other)[low * registers : high * registers]
        parts.append(rows.reshape(-1, registers))
    return np.concatenate(parts)


def write_centrality(place: Place, level: int) -> None:
    """Write the harmonic centrality of each page and its dispersion."""
    totals, variance = place.read(f"sum-{level}"), place.read(f"variance-{level}")
    dispersion = np.divide(variance, totals, out=np.zeros(totals.size), where=totals > 0)
    place.write("harmonic", np.asarray(totals))
    place.write("harmonic-dispersion", dispersion.astype(np.float32))

"""A race in words: for each strategy the reads it took to hold a share of all importance.

Two tables, since a crawl holds a share before it can be certain of it. Bounds round outward.

>>> bounds(0.9007, 0.9681), share(0.9)
('90.0–96.9 %', '90 %')
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

from surveyor.report.numbers import count, counted
from surveyor.report.tables import Table
from surveyor.simulation.race import LEVELS

if TYPE_CHECKING:
    from surveyor.simulation.race import Race, Run

OPTIMAL = "best possible order"
NONE = "–"
SEEDS = 3  # that are named
COVERAGE = (
    "Coverage is the share of all importance that lies on the pages read, where importance is what a reader has "
    "who starts at the seeds and follows links at random. It is relative to these seeds, this damping and the "
    "links as fetched."
)


def guaranteed_table(race: Race) -> Table:
    """Say how many reads it took to be certain of a share; the records hold all there is."""
    cells = [
        (
            *(_reads(run.reads_for(level)) for level in LEVELS),
            bounds(run.coverage.at_least, run.coverage.at_most),
            _microseconds(run),
            run.strategy,
        )
        for run in race.runs
    ]
    return Table(
        titles=(*map(share, LEVELS), "at the end", "µs/page", "strategy"),
        cells=[*cells, (*_optimal(race), "", "", OPTIMAL)],
        keys=KEYS,
        records=[*(_record(run) for run in race.runs), _optimal_record(race)],
    )


def true_table(race: Race) -> Table:
    """Say how many reads it took to hold a share, which only a simulation knows."""
    whole = guaranteed_table(race)
    cells = [
        (*(_reads(run.reads_for(level, "true")) for level in LEVELS), count(run.reads), run.strategy)
        for run in race.runs
    ]
    titles = (*whole.titles[: len(LEVELS)], "reads", "strategy")
    return Table(titles, [*cells, (*_optimal(race), "", OPTIMAL)], whole.keys, whole.records)


def comparison(race: Race) -> str:
    """Compare the strategies with the best possible order, in one sentence."""
    level = _telling(race)
    if level is None:
        return f"No strategy could guarantee {share(LEVELS[0])}."
    ratios = {run.strategy: race.ratio(run, level) for run in race.runs}
    ranked = sorted((ratio, name) for name, ratio in ratios.items() if ratio is not None)
    late = [name for name, ratio in ratios.items() if ratio is None]
    (first, best), *others = ranked
    words = f"{best} needed {first:.2f} times the reads of the best possible order to guarantee {share(level)}"
    if others:
        words += ", against " + _listed([f"{ratio:.2f} for {name}" for ratio, name in others])
    return words + (f"; {_listed(late)} did not get there." if late else ".")


def facts(race: Race) -> dict[str, str]:
    """Say what was raced, under which settings."""
    named = list(race.seed_names[:SEEDS]) or [f"#{page}" for page in race.seeds[:SEEDS].tolist()]
    more = [f"and {count(race.seeds.size - len(named))} more"] if race.seeds.size > len(named) else []
    return {
        "web": f"{counted(race.pages, 'page')}, {counted(race.links, 'link')}",
        "seeds": ", ".join([*named, *more]),
        "damping": f"{race.damping:g}",
        "until": race.until,
        **({"also": "; ".join(race.notes)} if race.notes else {}),
        "rng": str(race.rng),
    }


def shortfalls(race: Race) -> list[str]:
    """Say which strategies did not reach the goal, and why."""
    return [f"{run.strategy} did not reach the goal: {run.why}" for run in race.runs if not run.reached]


def share(level: float) -> str:
    """Write a share that was asked for: 90 %."""
    return f"{100 * level:.6g} %"


def bounds(at_least: float, at_most: float) -> str:
    """Write a lower and an upper bound of a share, rounded outward: 90.0–96.8 %."""
    low = (100 * Decimal(max(at_least, 0.0))).quantize(Decimal("0.1"), ROUND_FLOOR)
    high = (100 * Decimal(min(at_most, 1.0))).quantize(Decimal("0.1"), ROUND_CEILING)
    return f"{low}–{high} %"


def _telling(race: Race) -> float | None:
    """Return the level to compare at: the goal if somebody reached it, or the largest that most of them did."""
    levels = [*([] if race.goal is None else [race.goal]), *reversed(LEVELS)]
    reached = [sum(race.ratio(run, level) is not None for run in race.runs) for level in levels]
    if not any(reached):
        return None
    return levels[0] if race.goal is not None and reached[0] else levels[reached.index(max(reached))]


def _listed(words: list[str]) -> str:
    """Join words as people do: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _optimal(race: Race) -> list[str]:
    return [_reads(race.optimal_reads_for(level)) for level in LEVELS]


def _reads(reads: int | None) -> str:
    return NONE if reads is None else count(reads)


def _microseconds(run: Run) -> str:
    cost = run.microseconds_per_page
    return NONE if cost is None else f"{cost:.1f}" if cost < 100 else count(cost)


KEYS = (
    "strategy", "reached", "reads", "requests", "at_least", "at_most",
    *(f"guaranteed_{100 * level:.0f}" for level in LEVELS),
    *(f"true_{100 * level:.0f}" for level in LEVELS),
    "seconds", "microseconds_per_page", "compiled",
)  # fmt: skip


def _record(run: Run) -> tuple[Any, ...]:
    return (
        run.strategy, run.reached, run.reads, run.requests, run.coverage.at_least, run.coverage.at_most,
        *(run.reads_for(level) for level in LEVELS),
        *(run.reads_for(level, "true") for level in LEVELS),
        run.seconds, run.microseconds_per_page, run.compiled,
    )  # fmt: skip


def _optimal_record(race: Race) -> tuple[Any, ...]:
    """Fill in what is known of the best possible order: how many pages truly hold a share."""
    reads = [race.optimal_reads_for(level) for level in LEVELS]
    return ("optimal", *[None] * (5 + len(LEVELS)), *reads, None, None, None)

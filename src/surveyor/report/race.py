"""Reports of a race: tables, one HTML file and plots of the fetches that each strategy needed.

Two tables, since a crawl has a coverage before it can guarantee it; a third one if the goal is sampled. Bounds round
outward.

>>> bounds(0.9007, 0.9681), share(0.9)
('90.0–96.9 %', '90 %')
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

from surveyor.report import html_page
from surveyor.report.numbers import amount, at_most, confidence_level, count, counted, share_at_least
from surveyor.report.tables import Table
from surveyor.simulation.race import LEVELS, thinned

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from surveyor.simulation.race import Race, Run

OPTIMAL = "best possible order"
NONE = "–"
SEEDS = 3  # listed by name
COVERAGE = (
    "Coverage is the share of all importance on the fetched pages, where importance is PageRank with jumps to the "
    "seeds. It is relative to these seeds, this damping and the links as fetched."
)


def guaranteed_table(race: Race) -> Table:
    """Return the fetches until each coverage was guaranteed; the records have all fields."""
    cells = [
        (
            *(_fetches(run.fetches_for(level)) for level in LEVELS),
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


def sampled_table(race: Race) -> Table:
    """Return the fetches until each coverage was sampled at the confidence of the goal."""
    whole = guaranteed_table(race)
    cells = [
        (
            *(_fetches(run.fetches_for(level, "sampled")) for level in LEVELS),
            NONE if run.sampled is None or not run.sampled.size else share_at_least(float(run.sampled[-1])),
            count(run.walks),
            run.strategy,
        )
        for run in race.runs
    ]
    titles = (*whole.titles[: len(LEVELS)], "at the end, at least", "walks", "strategy")
    return Table(titles, [*cells, (*_optimal(race), "", "", OPTIMAL)], whole.keys, whole.records)


def guarantee_word(race: Race) -> str:
    """Return the word for the certified bound: beside a sampled one, it must not be confused with it."""
    return "guaranteed" if race.confidence is None else "certified"


def sampled_word(race: Race) -> str:
    """Return the words for the sampled bound: sampled at 95 %."""
    return "" if race.confidence is None else f"sampled at {confidence_level(race.confidence)}"


def true_table(race: Race) -> Table:
    """Return the fetches until each true coverage, which only a simulation knows."""
    whole = guaranteed_table(race)
    cells = [
        (*(_fetches(run.fetches_for(level, "true")) for level in LEVELS), count(run.fetches), run.strategy)
        for run in race.runs
    ]
    titles = (*whole.titles[: len(LEVELS)], "fetches", "strategy")
    return Table(titles, [*cells, (*_optimal(race), "", OPTIMAL)], whole.keys, whole.records)


def repeats(race: Race) -> bool:
    """Return whether the accuracy of estimates is of interest: pages were fetched repeatedly or the web changed."""
    return race.changing or any(run.fetches > run.pages for run in race.runs)


def importance_table(race: Race) -> Table:
    """Return the errors of estimated importance: L1 distances from the true importance, which are at most 2."""
    cells, records = [], []
    for run in race.runs:
        last = run.samples[-1] if run.samples else None
        numbers = (run.importance_error, None if last is None else last.l1, None if last is None else last.bound)
        each = run.fetches / run.pages if run.pages else None
        shown = [NONE if number is None else f"{number:.4f}" for number in numbers]
        cells.append((*shown, NONE if each is None else f"{each:.2f}", run.strategy))
        records.append((*numbers, each, run.strategy))
    titles = ("second half", "at the end", "proven", "fetches/page", "strategy")
    keys = ("importance_error", "importance_error_at_end", "importance_bound", "fetches_per_page", "strategy")
    return Table(titles, cells, keys, records)


def comparison(race: Race) -> str:
    """Compare the strategies with the optimal order in one sentence."""
    which = "guaranteed" if race.confidence is None else "sampled"
    prove = "guarantee {}" if race.confidence is None else f"prove {{}}, {sampled_word(race)}"
    level = _comparison_level(race, which)
    if level is None:
        return f"No strategy could {prove.format(share(LEVELS[0]))}."
    ratios = {run.strategy: race.ratio(run, level, which) for run in race.runs}
    ranked = sorted((ratio, name) for name, ratio in ratios.items() if ratio is not None)
    late = [name for name, ratio in ratios.items() if ratio is None]
    (first, best), *others = ranked
    goal = prove.format(share(level))
    words = f"{best} needed {first:.2f} times the fetches of the best possible order to {goal}"
    if others:
        words += ", against " + _listed([f"{ratio:.2f} for {name}" for ratio, name in others])
    return words + (f"; {_listed(late)} did not reach it." if late else ".")


def facts(race: Race) -> dict[str, str]:
    """Return the conditions of the race."""
    named = list(race.seed_names[:SEEDS]) or [f"#{page}" for page in race.seeds[:SEEDS].tolist()]
    more = [f"and {count(race.seeds.size - len(named))} more"] if race.seeds.size > len(named) else []
    return {
        "web": f"{counted(race.pages, 'page')}, {counted(race.links, 'link')}",
        "seeds": ", ".join([*named, *more]),
        "damping": f"{race.damping:g}",
        "until": race.until,
        **({"notes": "; ".join(race.notes)} if race.notes else {}),
        "rng": str(race.rng),
    }


def shortfalls(race: Race) -> list[str]:
    """Return which strategies did not reach the goal, and why."""
    return [f"{run.strategy} did not reach the goal: {run.stop_reason}" for run in race.runs if not run.reached]


def share(level: float) -> str:
    """Format a goal: 90 %."""
    return f"{100 * level:.6g} %"


def bounds(at_least: float, at_most: float) -> str:
    """Format a lower and an upper bound of a share, rounded outward: 90.0–96.8 %."""
    low = (100 * Decimal(max(at_least, 0.0))).quantize(Decimal("0.1"), ROUND_FLOOR)
    high = (100 * Decimal(min(at_most, 1.0))).quantize(Decimal("0.1"), ROUND_CEILING)
    return f"{low}–{high} %"


def _comparison_level(race: Race, which: str) -> float | None:
    """Return the level to compare at: the goal if any strategy reached it, or the largest that most reached."""
    levels = [*([] if race.goal is None else [race.goal]), *reversed(LEVELS)]
    reached = [sum(race.ratio(run, level, which) is not None for run in race.runs) for level in levels]
    if not any(reached):
        return None
    return levels[0] if race.goal is not None and reached[0] else levels[reached.index(max(reached))]


def _listed(words: list[str]) -> str:
    """Join words: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _optimal(race: Race) -> list[str]:
    return [_fetches(race.optimal_fetches_for(level)) for level in LEVELS]


def _fetches(fetches: int | None) -> str:
    return NONE if fetches is None else count(fetches)


def _microseconds(run: Run) -> str:
    cost = run.microseconds_per_page
    return NONE if cost is None else f"{cost:.1f}" if cost < 100 else count(cost)


FIRST, LAST = ("strategy", "reached", "fetches", "requests"), ("seconds", "microseconds_per_page", "compiled", "walks")
CURVES = ("guaranteed", "true", "sampled")
KEYS = (
    *FIRST,
    "at_least",
    "at_most",
    *(f"{which}_{100 * level:.0f}" for which in CURVES for level in LEVELS),
    *LAST,
)


def _record(run: Run) -> tuple[Any, ...]:
    fetches = [
        None if which == "sampled" and run.sampled is None else run.fetches_for(level, which)
        for which in CURVES
        for level in LEVELS
    ]
    first, last = ([getattr(run, name) for name in names] for names in (FIRST, LAST))
    return (*first, run.coverage.at_least, run.coverage.at_most, *fetches, *last)


def _optimal_record(race: Race) -> tuple[Any, ...]:
    """Return the record of the optimal order: the fetches of each true coverage."""
    fetches = [race.optimal_fetches_for(level) for level in LEVELS]
    return ("optimal", *[None] * (5 + len(LEVELS)), *fetches, *[None] * (len(LEVELS) + len(LAST)))


@dataclass(frozen=True, slots=True)
class RaceReport:
    """The content of a race report."""

    title: str
    race: Race
    command: str  # repeats the race
    plots: bool = True


def write_race_report(report: RaceReport, path: str | Path) -> Path:
    """Write the report as one file."""
    return html_page.write(render_race(report), path)


def render_race(report: RaceReport) -> str:
    """Return the report as HTML."""
    race = report.race
    reached = sum(run.reached for run in race.runs)
    parts = [
        f'<p class="soft">{counted(len(race.runs), "strategy", "strategies")} crawled the same web, each in its '
        f"own order, until {html_page.text(race.until)}.</p>",
        html_page.facts(
            {
                "pages": count(race.pages),
                "links": count(race.links),
                "seeds": count(race.seeds.size),
                "damping": f"{race.damping:g}",
                "reached the goal": f"{count(reached)} of {count(len(race.runs))}",
            }
        ),
        f"<p>{html_page.text(comparison(race))}</p>",
        *(f"<p>{html_page.text(line)}.</p>" for line in shortfalls(race)),
        *(_figures(race) if report.plots else []),
        *_tables(race),
        "<h2>What coverage means</h2>",
        f"<p>{html_page.text(COVERAGE)}</p>",
        *_method(report),
    ]
    return html_page.document(report.title, parts)


def _figures(race: Race) -> list[str]:
    about = (
        "Solid: true coverage, which only a simulation knows. Dashed: what the crawl could guarantee at that moment. "
        "No crawl order can be above the thin line."
    )
    if race.confidence is not None:
        about = about.replace("could guarantee", "could certify").replace("No crawl", f"{_dotted(race)} No crawl")
    figures = [
        html_page.figure(coverage_plot(race), "Importance captured.", about),
        html_page.figure(gap_plot(race), "Uncertainty.", "Upper minus lower bound of the coverage."),
    ]
    if any(run.samples for run in race.runs):
        about = "L1 distance of estimated from true importance over all pages."
        figures.append(html_page.figure(error_plot(race), "Error of the estimates.", about))
        about = "Kendall's tau with the true order, over the pages of highest true importance; 1 is the same order."
        figures.append(html_page.figure(order_plot(race), "Order of the estimates.", about))
    return ["<h2>Curves</h2>", '<div class="figures">', *figures, "</div>"]


def _dotted(race: Race) -> str:
    crawls = round(1 / (1 - (race.confidence or 0.0)))
    return f"Dash-dotted: the lower bound {sampled_word(race)}, wrong at most once in {crawls:,} crawls."


def _tables(race: Race) -> list[str]:
    return [
        f"<h2>Fetches until a coverage was {guarantee_word(race)}</h2>",
        html_page.grid(
            guaranteed_table(race),
            "Pages fetched until the crawl could guarantee this coverage; the bounds of coverage at the end; the time "
            "of ordering and bookkeeping.",
        ),
        *(_sampled_table(race) if race.confidence is not None else []),
        "<h2>Fetches until a coverage was reached</h2>",
        html_page.grid(true_table(race), "Pages fetched until the true coverage was this large."),
        "<h2>Accounts at the end</h2>",
        html_page.grid(
            _accounts(race),
            "All importance is in one of five accounts: captured, moving (on a fetched page, not yet passed on), "
            "waiting (on a known page not fetched), blocked, or lost. They sum to 100 %.",
        ),
    ]


def _sampled_table(race: Race) -> list[str]:
    return [
        f"<h2>Fetches until a coverage was {sampled_word(race)}</h2>",
        html_page.grid(
            sampled_table(race),
            "Pages fetched until random walks proved this coverage at that confidence, with the pages that the walks "
            "needed; the bound at the end; the number of walks.",
        ),
    ]


def _accounts(race: Race) -> Table:
    names = ("captured", "moving", "waiting", "blocked", "lost")
    records = [[getattr(run.coverage, name) for name in names] for run in race.runs]
    cells = [
        (
            *(f"{abs(100 * share):.2f} %" for share in shares),
            count(run.fetches),
            count(run.requests),
            NONE if run.link_updates_per_second is None else amount(run.link_updates_per_second),
            run.strategy,
        )
        for run, shares in zip(race.runs, records, strict=True)
    ]
    return Table((*names, "fetches", "requests", "link updates/s", "strategy"), cells, names, records)


def _method(report: RaceReport) -> list[str]:
    race = report.race
    compiled = [run.strategy for run in race.runs if run.compiled]
    values = {
        **facts(race),
        "truth": f"PageRank of the whole web with jumps to the seeds, L1 error at most {at_most(race.truth_error)}",
        "guarantee": "from the links of the fetched pages alone, as in a live crawl",
        "best possible order": "the pages by their true importance, as if it were known in advance",
        "compiled crawls": ", ".join(compiled) or "none",
        "made with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)


def coverage_plot(race: Race) -> str:
    """Plot true (solid), guaranteed (dashed) and sampled coverage against pages fetched, and the optimal order."""
    from surveyor.report.svg import DASHES, DOTTED, INK, POINTS, draw_lines, line_color, line_style, percent_axis

    best = thinned(race.optimal.size, POINTS)
    is_sampled = race.confidence is not None

    def draw(axes: Axes) -> list[Line2D]:
        lines = []
        for place, run in enumerate(race.runs):
            fetches = thinned(run.fetches, POINTS)
            lines += axes.plot(fetches, run.true[fetches - 1], **line_style(place, fetches.size))
            axes.plot(fetches, run.at_least[fetches - 1], color=line_color(place), dashes=DASHES, linewidth=1.5)
            if run.sampled is not None:
                axes.plot(fetches, run.sampled[fetches - 1], color=line_color(place), dashes=DOTTED, linewidth=1.5)
        lines += axes.plot(best, race.optimal[best - 1], color=INK, linewidth=1)
        axes.set_xlim(1, max(race.optimal.size, 2))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("pages fetched")
        percent_axis(axes)
        for dashes in (DASHES, DOTTED)[: 1 + is_sampled]:
            lines += axes.plot([], [], color=INK, dashes=dashes, linewidth=1.5)
        if race.goal is not None:
            lines.append(axes.axhline(race.goal, color=INK, linewidth=1, linestyle=(0, (1, 2))))
        return lines

    names = [*_names(race), "best possible order", guarantee_word(race), *([sampled_word(race)] if is_sampled else [])]
    names += [] if race.goal is None else [f"goal: {share(race.goal)}"]
    return draw_lines(
        draw, names, "importance captured against pages fetched, for each strategy", "coverage", log_x=True
    )


def gap_plot(race: Race) -> str:
    """Plot the distance of the two bounds against pages fetched."""
    from surveyor.report.svg import POINTS, lines_plot

    series = {}
    for name, run in zip(_names(race), race.runs, strict=True):
        fetches = thinned(run.fetches, POINTS)
        series[name] = (fetches, run.at_most[fetches - 1] - run.at_least[fetches - 1])
    return lines_plot(
        series,
        x_title="pages fetched",
        y_title="at most − at least",
        log_x=True,
        shares=True,
        label="distance of the two bounds of coverage against pages fetched",
    )


def error_plot(race: Race) -> str:
    """Plot the L1 distance of estimated from true importance against pages fetched; for runs with samples."""
    return _sampled(race, "l1", "L1 error", "L1 error of estimated importance against pages fetched", log_y=True)


def order_plot(race: Race) -> str:
    """Plot Kendall's tau of the estimated and the true order against pages fetched; for runs with samples."""
    return _sampled(race, "tau", "Kendall's tau", "rank correlation with the true order against pages fetched")


def _sampled(race: Race, field: str, title: str, label: str, *, log_y: bool = False) -> str:
    from surveyor.report.svg import lines_plot

    def values(run: Run) -> tuple[list[float], list[float]]:
        return [sample.fetches for sample in run.samples], [getattr(sample, field) for sample in run.samples]

    series = {name: values(run) for name, run in zip(_names(race), race.runs, strict=True)}
    return lines_plot(series, x_title="pages fetched", y_title=title, label=label, log_x=True, log_y=log_y)


def _names(race: Race) -> list[str]:
    """Return the names of the strategies, with numbers for duplicates."""
    names = [run.strategy for run in race.runs]
    return [
        name if names.count(name) == 1 else f"{name} {names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]

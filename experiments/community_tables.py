"""Tables of the errors of local domains: one for each domain, one for each family, and the target."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.chosen_domains import Kind
from experiments.community_errors import AT, ESTIMATORS, SELECTORS, SHARES, Errors, Run, mean, ratio
from surveyor.rank.expansion import Select

LABELS: dict[Select, str] = {
    "complement": "SC",
    "flow": "PF",
    "cho": "Cho",
    "outlinks": "outlinks",
    "random": "random",
}
END: dict[Kind, int] = {"site": 3, "topic": 2}  # the last of `AT` in the paper: 2n for sites, n for topics
NEAR = 1.01  # errors up to this multiple of the smallest count as best
TINY = 1e-6  # as do errors below this
SOUND = 1.1  # errors up to this multiple of the better of two estimators are sound
STEPS = ("+0", "+n/4", "+n", "+2n")  # as `AT`
GOAL = 0.75  # of the error of the paper's method after n further pages
# Davis and Dhillon (KDD 2006): L1, L∞ and Kendall of Table 1; L1 and Kendall of Table 2, four topics.
PAPER: dict[Kind, dict[Select, tuple[float, float | None, float]]] = {
    "site": {
        "complement": (0.0384, 0.00154, 0.9257),
        "flow": (0.0470, 0.00272, 0.8946),
        "outlinks": (0.0419, 0.00196, 0.9053),
        "random": (0.0407, 0.00204, 0.9086),
    },
    "topic": {
        "complement": (0.0701, None, 0.9070),
        "flow": (0.0812, None, 0.8939),
        "outlinks": (0.0816, None, 0.9065),
        "random": (0.1253, None, 0.8725),
    },
}


@dataclass(frozen=True, slots=True)
class DomainRuns:
    """All runs of one local domain."""

    name: str
    kind: Kind
    synthetic: bool
    tuned: bool  # whether an estimator was tuned on it
    pages: int
    web: int  # pages of the whole web
    ties: float  # share of pairs of local pages with equal true rank: Kendall is at most 1 minus this
    runs: Sequence[Run]
    back: Mapping[str, Sequence[tuple[float, float]]]  # with back-links, by estimator

    def values(self, select: Select, estimator: str, at: int, of: Callable[[Errors], float | None]) -> list[float]:
        """Return one error measure of all seeds."""
        found = [of(run.at[estimator][at]) for run in self.runs if run.select == select]
        return [value for value in found if value is not None]

    def l1(self, select: Select, estimator: str, at: int) -> float:
        """Return the mean L1 error over the seeds."""
        return statistics.fmean(self.values(select, estimator, at, lambda one: one.l1))

    def best(self, select: Select, estimator: str, at: int) -> bool:
        """Return whether no other selector is more than 1 % better."""
        errors = [self.l1(other, estimator, at) for other in SELECTORS]
        return self.l1(select, estimator, at) <= max(NEAR * min(errors), TINY)

    def sound(self, at: int) -> bool:
        """Return whether the auto estimator is not much worse than the better of the two others."""
        chosen, *others = (self.l1("complement", estimator, at) for estimator in ("auto", "crawled", "frontier"))
        return chosen <= max(SOUND * min(others), TINY)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        names = ("name", "kind", "synthetic", "tuned", "pages", "web", "ties")
        runs, back = [run.to_dict() for run in self.runs], {name: list(pairs) for name, pairs in self.back.items()}
        return {name: getattr(self, name) for name in names} | {"runs": runs, "back_links": back}


Families = Mapping[str, Sequence[DomainRuns]]


def families(all_found: Sequence[DomainRuns]) -> Families:
    """Group domains by family: real and synthetic, sites and topics."""
    found: dict[str, list[DomainRuns]] = {}
    for one in sorted(all_found, key=lambda one: (one.synthetic, one.kind)):
        found.setdefault(f"{one.kind}s, {'synthetic' if one.synthetic else 'real'}", []).append(one)
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int = 2) -> str:
    """Return a Markdown table; the first columns are text."""
    lines = [header, [*["---"] * words, *["--:"] * (len(header) - words)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def domain_table(found: DomainRuns) -> str:
    """Return the table of one local domain."""
    end = END[found.kind]
    header = [*_header(end), "extra pages", "seconds"]
    rows = []
    for select in SELECTORS:
        runs = [run for run in found.runs if run.select == select]
        reads, seconds = statistics.fmean(run.extra for run in runs), statistics.fmean(run.seconds for run in runs)
        for estimator in ESTIMATORS:
            cells = [_cell(found.values(select, estimator, at, lambda one: one.l1)) for at in range(len(AT))]
            cells.append(_cell(found.values(select, estimator, end, lambda one: one.l_inf), 5))
            cells.append(_cell(found.values(select, estimator, end, lambda one: one.kendall)))
            rows.append([LABELS[select], estimator, *cells, f"{reads:,.0f}", f"{seconds:.1f}"])
    about = f"{found.kind}, {found.pages:,} of {found.web:,} pages; tau-a at most {1 - found.ties:.3f}"
    return f"### {found.name} ({about}{'; tuned on' if found.tuned else ''})\n\n{table(header, rows)}"


def family_table(title: str, family: Sequence[DomainRuns]) -> str:
    """Return the means over the domains of a family, and those of the paper."""
    kind = family[0].kind
    end, paper = END[kind], PAPER[kind]
    header = [*_header(end), f"best {STEPS[end]}", "paper: L1", "L∞", "tau-a"]
    rows = []
    for estimator in ESTIMATORS:
        for select in SELECTORS:
            cells = [
                f"{statistics.fmean(one.l1(select, estimator, at) for one in family):.4f}" for at in range(len(AT))
            ]
            peaks = [value for one in family for value in one.values(select, estimator, end, lambda one: one.l_inf)]
            order = [value for one in family for value in one.values(select, estimator, end, lambda one: one.kendall)]
            cells += [f"{statistics.fmean(peaks):.5f}", f"{statistics.fmean(order):.3f}" if order else "–"]
            best = sum(found.best(select, estimator, end) for found in family)
            theirs = (paper.get(select) if estimator == "crawled" else None) or ()
            published = ["" if value is None else f"{value:.4g}" for value in theirs] or [""] * 3
            rows.append([LABELS[select], estimator, *cells, f"{best} of {len(family)}", *published])
    return f"## {title.capitalize()}: means of {len(family)} domains\n\n{table(header, rows)}"


def versus_table(found: Families) -> str:
    """Compare SC with the other selectors: ratio of the mean L1, at the last step of the paper."""
    rows = []
    for title, family in found.items():
        end = END[family[0].kind]
        for estimator in ESTIMATORS:
            cells = [
                _interval([(one.l1("complement", estimator, end), one.l1(other, estimator, end)) for one in family])
                for other in SELECTORS[1:]
            ]
            rows.append([f"{title} ({len(family)}) {STEPS[end]}", estimator, *cells])
    header = ["domains", "estimator", *(f"SC / {LABELS[other]}" for other in SELECTORS[1:])]
    return f"## SC compared with other selectors: ratio of the mean L1\n\n{table(header, rows)}"


def estimator_table(found: Families) -> str:
    """Compare the estimators, with SC, on domains that none was tuned on: ratio to the mean L1 of the paper's."""
    rows = []
    kept = {title: [one for one in family if not one.tuned] for title, family in found.items()}
    for title, family in {**kept, "all": [one for some in kept.values() for one in some]}.items():
        for at in range(len(AT) if family else 0):
            pairs = [
                [(one.l1("complement", estimator, at), one.l1("complement", "crawled", at)) for one in family]
                for estimator in ESTIMATORS[1:]
            ]
            sound = sum(one.sound(at) for one in family)
            rows.append([f"{title} ({len(family)})", STEPS[at], *map(_interval, pairs), f"{sound} of {len(family)}"])
    header = ["domains not tuned on", "after", *(f"{name} / crawled" for name in ESTIMATORS[1:]), "auto ≤ 1.1 × better"]
    return f"## Estimators, SC: ratio of the mean L1 to that of the paper's estimator\n\n{table(header, rows)}"


def back_table(found: Families) -> str:
    """Return the effect of back-links: mean L1 if a share of the pages that link to local ones is known."""
    header = ["domains", "known", *(f"{name} {STEPS[at]}" for at in (0, 2) for name in ESTIMATORS)]
    rows = []
    for title, family in found.items():
        for index, share in enumerate(SHARES):
            means = [
                statistics.fmean(one.back[name][index][which] for one in family)
                for which in (0, 1)
                for name in ESTIMATORS
            ]
            rows.append([f"{title} ({len(family)})", f"{share:.0%}", *(f"{mean:.4f}" for mean in means)])
    return f"## Back-links: mean L1 if a share of the linking pages is known\n\n{table(header, rows)}"


def target_line(all_found: Sequence[DomainRuns]) -> str:
    """Compare SC with the chosen estimator to SC as in the paper, after n extra pages, on domains not tuned on."""
    kept = [found for found in all_found if not found.tuned]
    after = AT.index(1.0)
    pairs = [(one.l1("complement", "auto", after), one.l1("complement", "crawled", after)) for one in kept]
    value, low, high = ratio(pairs)
    middle = statistics.median(first / max(second, TINY) for first, second in pairs)
    return (
        f"Target: SC + auto has {value:.3f} ({low:.3f} to {high:.3f}) of the mean L1 of SC + crawled after n extra "
        f"pages, on {len(kept)} domains that no estimator was tuned on (median of single domains {middle:.3f}); aim at "
        f"most {GOAL:g}: {'met' if value <= GOAL else 'missed'}."
    )


def _header(end: int) -> list[str]:
    return ["selector", "estimator", *(f"L1 {step}" for step in STEPS), f"L∞ {STEPS[end]}", f"tau-a {STEPS[end]}"]


def _cell(values: Sequence[float], digits: int = 4) -> str:
    if not values:
        return "–"
    value, half_width = mean(values)
    return f"{value:.{digits}f}" + (
        "" if math.isnan(half_width) or half_width < 0.5 * 10**-digits else f" ± {half_width:.{digits}f}"
    )


def _interval(pairs: Sequence[tuple[float, float]]) -> str:
    value, low, high = ratio(pairs)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"

"""Markdown: what goes to stdout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.graphs import Input
from benchmarks.race import Result
from benchmarks.targets import Verdict


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is text, the others are numbers."""
    lines = [list(header), ["---", *["--:"] * (len(header) - 1)], *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def results_table(results: Sequence[Result]) -> str:
    header = [
        "tool",
        "arrays s",
        "text s",
        "gz s",
        "1e-6 s",
        "true error",
        "1e-11 s",
        "true error",
        "peak MB",
        "above start",
        "from text MB",
        "reader",
    ]
    return markdown(header, map(_row, results))


def _row(result: Result) -> list[str]:
    if result.skipped and not result.seconds:
        return [result.tool, result.skipped, *["–"] * 10]
    cells = [result.tool, *(_seconds(result, what) for what in ("arrays", "text", "gz"))]
    for key in ("1e-06", "1e-11"):
        if result.accuracy.get(key):
            cells += [_seconds(result, key), f"{result.error[key]:.1e}"]
        else:
            cells += ["not reached", f"best {result.error[key]:.0e}" if key in result.error else "–"]
    sizes = (result.peak, result.peak - result.start if result.peak else 0, result.text_peak)
    return [*cells, *(f"{size / 2**20:.0f}" if size else "–" for size in sizes), result.skipped or result.reader]


def _seconds(result: Result, what: str) -> str:
    return f"{result.seconds[what]:.3f}" if what in result.seconds else "–"


def verdict_table(of_what: str, verdicts: Iterable[Verdict]) -> str:
    return markdown(
        [of_what, "ratio", "target", "", "measured"],
        (
            [one.what, f"{one.value:.2f}", f"≤ {one.target:g}" if one.target else "–", one.words, one.measured]
            for one in verdicts
        ),
    )


def proof_lines(result: Result) -> list[str]:
    """Report the proven error of surveyor's results, and whether it holds."""
    lines = []
    for key in ("1e-06", "1e-11"):
        facts = result.facts.get(f"proven {key}", {})
        if "bound" not in facts:
            lines.append(f"asked for {key}: {facts.get('failed', 'no answer')}")
            continue
        holds = "holds" if facts["error"] <= facts["bound"] else "IS FALSE"
        lines.append(
            f"requested proven error {key}: {facts['seconds']:.3f} s, {facts['sweeps']} sweeps ({facts['solver']}), "
            f"bound {facts['bound']:.1e}, true error {facts['error']:.1e}: the bound {holds}"
        )
    return lines


def bandwidth_line(graph: Input, result: Result, bandwidth: float) -> str:
    """Report the share of the memory bandwidth a sweep uses; sweeps in cache may exceed it."""
    facts = result.facts.get("proven 1e-06", {})
    if "sweeps" not in facts or not bandwidth:
        return ""
    size = 4 * graph.links + 48 * graph.pages  # in-links; offsets, ranks and shares old and new, weights
    each = facts["seconds"] / facts["sweeps"]
    return (
        f"a sweep reads and writes {size / 1e6:.0f} MB (4 bytes a link, 48 a page) in {1e3 * each:.1f} ms: "
        f"{size / each / 1e9:.1f} GB/s, {size / each / bandwidth:.0%} of {bandwidth / 1e9:.1f} GB/s"
    )

"""What a graph holds and where it came from, in words and as fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import amount, count, counted, duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from surveyor.graph.condense import Condensed
    from surveyor.graph.csr import Graph

SHOWN = 5  # malformed lines shown
WORTH_A_RATE = 100_000  # links; a rate over fewer says nothing


def built(graph: Graph, seconds: float) -> dict[str, str]:
    """Describe what building a graph did."""
    told = graph.provenance
    facts = {
        "pages": f"{count(graph.pages)}{'' if graph.names is None else ', named'}",
        "links": count(graph.links),
    }
    if told.get("self_links_dropped"):
        facts["self-links dropped"] = count(told["self_links_dropped"])
    if told.get("repeats_merged"):
        facts["repeats merged"] = count(told["repeats_merged"])
    facts["time"] = duration(seconds)
    if told.get("links_read", 0) >= WORTH_A_RATE and seconds > 0:
        facts["time"] += f", {amount(told['links_read'] / seconds)} links/s"
    return facts


def condensed(made: Condensed, seconds: float) -> dict[str, str]:
    """Describe what condensing a graph did."""
    facts = built(made.graph, seconds)
    of = counted(int(made.of.size), "page")
    renamed = {"pages": made.to, "self-links dropped": f"links within {made.to}"}
    facts = {renamed.get(name, name): value for name, value in facts.items()}
    return {**facts, made.to: f"{count(made.graph.pages)}, of {of}"}


def condensed_with_care(made: Condensed) -> list[str]:
    """Say of which pages and hosts a graph of domains does not know what one would wish."""
    told = []
    if (number := made.without_host) > 0:
        what = (
            "page has a name that is no URL and no host, and was"
            if number == 1
            else "pages have names that are no URLs and no hosts, and were"
        )
        told.append(f"{count(number)} {what} left out")
    if (number := made.without_suffix) > 0:
        verb, end = (
            ("host is", "counts as a domain of its own")
            if number == 1
            else ("hosts are", "count as domains of their own")
        )
        told.append(f"{count(number)} {verb} under no suffix that the list knows, and {end}")
    return told


def malformed(graph: Graph) -> str:
    """Say how many lines could not be read and show the first; nothing if all could."""
    told = graph.provenance.get("malformed") or {}
    total = told.get("count", 0)
    if not total:
        return ""
    first = [f"  {bad['file']}:{bad['line']}: {bad['text']}" for bad in told.get("first", [])][:SHOWN]
    verb = "was" if total == 1 else "were"
    lines = [
        f"{counted(total, 'line')} could not be read and {verb} left out (`graph build --strict` stops there):",
        *first,
    ]
    return "\n".join([*lines, *([f"  and {count(total - len(first))} more"] if total > len(first) else [])])


def source(told: Mapping[str, Any]) -> str:
    """Say where a graph came from."""
    if "synthetic" in told:
        return f"a made-up web: {told['synthetic']}, rng {told.get('rng')}"
    return str(told.get("source", "not recorded"))


def facts(graph: Graph, path: Path) -> dict[str, Any]:
    """Count what a graph holds."""
    out, into = graph.out_degrees, np.diff(graph.in_links.indptr)
    dangling = int(np.count_nonzero(out == 0))
    return {
        "pages": graph.pages,
        "links": graph.links,
        "named": graph.names is not None,
        "pages_without_links": dangling,
        "pages_without_in_links": int(np.count_nonzero(into == 0)),
        "mean_links": graph.links / graph.pages if graph.pages else 0.0,
        "max_links": int(out.max(initial=0)),
        "max_in_links": int(into.max(initial=0)),
        "bytes": _bytes(path),
        "provenance": dict(graph.provenance),
    }


def described(told: dict[str, Any]) -> dict[str, str]:
    """Put the facts of a graph into words."""
    pages = max(told["pages"], 1)
    lines = {
        "pages": f"{count(told['pages'])}{', named' if told['named'] else ', without names'}",
        "links": f"{count(told['links'])}, {told['mean_links']:.1f} a page",
        "most links on a page": count(told["max_links"]),
        "most links to a page": count(told["max_in_links"]),
        "pages without links": _part(told["pages_without_links"], pages),
        "pages nobody links to": _part(told["pages_without_in_links"], pages),
        "size": size(told["bytes"]),
    }
    for name, value in told["provenance"].items():
        if name == "malformed":
            lines["malformed lines"] = count(value.get("count", 0))
        elif name == "notes":
            lines |= {f"note {place}": str(note) for place, note in enumerate(value, 1)}
        elif not isinstance(value, dict):  # what is nested is for --json
            number = isinstance(value, int) and name not in {"rng", "version"}
            label = name.replace("_", " ").replace("self links", "self-links")
            lines[label] = count(value) if number else str(value)
    return lines


def _bytes(path: Path) -> int:
    """Add up a file, a folder, or the files that share a basename."""
    files = path.rglob("*") if path.is_dir() else [path] if path.exists() else path.parent.glob(f"{path.name}.*")
    return sum(file.stat().st_size for file in files if file.is_file())


def _part(number: int, whole: int) -> str:
    return f"{count(number)} ({percent(number / whole)})"

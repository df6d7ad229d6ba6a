"""Facts about a graph as text and as JSON fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import amount, count, counted, duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from surveyor.graph.condense import CondensedGraph
    from surveyor.graph.csr import Graph
    from surveyor.graph.pieces.condense import CondensedPieces
    from surveyor.graph.pieces.folder import Pieces

SHOWN = 5  # malformed lines shown
MIN_FOR_RATE = 100_000  # links; a rate over fewer is not meaningful


def built(graph: Graph, seconds: float) -> dict[str, str]:
    """Describe a graph that was built."""
    counts = graph.provenance
    facts = {"pages": f"{count(graph.pages)}{'' if graph.names is None else ', named'}", "links": count(graph.links)}
    if counts.get("self_links_dropped"):
        facts["self-links dropped"] = count(counts["self_links_dropped"])
    if counts.get("repeats_merged"):
        facts["duplicates merged"] = count(counts["repeats_merged"])
    facts["time"] = duration(seconds)
    if counts.get("links_read", 0) >= MIN_FOR_RATE and seconds > 0:
        facts["time"] += f", {amount(counts['links_read'] / seconds)} links/s"
    return facts


def condensed_facts(condensed: CondensedGraph, seconds: float) -> dict[str, str]:
    """Describe a condensed graph."""
    level = condensed.level
    renamed = {"pages": level, "self-links dropped": f"links within {level}"}
    facts = {renamed.get(name, name): value for name, value in built(condensed.graph, seconds).items()}
    return {**facts, level: f"{count(condensed.graph.pages)}, of {counted(int(condensed.site_of.size), 'page')}"}


def condensed_warnings(condensed: CondensedGraph | CondensedPieces) -> list[str]:
    """Return warnings about pages without a host and hosts without a known suffix."""
    warnings = []
    if (number := condensed.without_host) > 0:
        verb = "is" if number == 1 else "are"
        names = "whose name is neither a URL nor a host" if number == 1 else "whose names are neither URLs nor hosts"
        warnings.append(f"{counted(number, 'page')} {names} {verb} omitted")
    if (number := condensed.without_suffix) > 0:
        verb = "is" if number == 1 else "are each"
        warnings.append(f"{counted(number, 'host')} without a known public suffix {verb} counted as a domain")
    return warnings


def malformed(graph: Graph | Pieces) -> str:
    """Return the number of malformed lines and the first ones; empty if there are none."""
    found = graph.provenance.get("malformed") or {}
    total = found.get("count", 0)
    if not total:
        return ""
    first = [f"  {bad['file']}:{bad['line']}: {bad['text']}" for bad in found.get("first", [])][:SHOWN]
    verb = "was" if total == 1 else "were"
    lines = [f"{counted(total, 'malformed line')} {verb} skipped (`graph build --strict` stops there):", *first]
    return "\n".join([*lines, *([f"  and {count(total - len(first))} more"] if total > len(first) else [])])


def source(provenance: Mapping[str, Any]) -> str:
    """Return the source of a graph."""
    if "synthetic" in provenance:
        return f"a synthetic web: {provenance['synthetic']}, rng {provenance.get('rng')}"
    return str(provenance.get("source", "not recorded"))


def facts(graph: Graph, path: Path) -> dict[str, Any]:
    """Return the counts of a graph as JSON fields."""
    out, into = graph.out_degrees, np.diff(graph.in_links.indptr)
    dangling = int(np.count_nonzero(out == 0))
    return {
        "pages": graph.pages,
        "links": graph.links,
        "named": graph.names is not None,
        "pages_without_out_links": dangling,
        "pages_without_in_links": int(np.count_nonzero(into == 0)),
        "mean_links": graph.links / graph.pages if graph.pages else 0.0,
        "max_links": int(out.max(initial=0)),
        "max_in_links": int(into.max(initial=0)),
        "bytes": _bytes(path),
        "provenance": dict(graph.provenance),
    }


def described(found: dict[str, Any]) -> dict[str, str]:
    """Format the counts of a graph."""
    pages = max(found["pages"], 1)
    lines = {
        "pages": f"{count(found['pages'])}{', named' if found['named'] else ', without names'}",
        "links": f"{count(found['links'])}, {found['mean_links']:.1f} per page",
        "largest out-degree": count(found["max_links"]),
        "largest in-degree": count(found["max_in_links"]),
        "pages without out-links": _part(found["pages_without_out_links"], pages),
        "pages without in-links": _part(found["pages_without_in_links"], pages),
        "size": size(found["bytes"]),
    }
    for name, value in found["provenance"].items():
        if name == "malformed":
            lines["malformed lines"] = count(value.get("count", 0))
        elif name == "notes":
            lines |= {f"note {place}": str(note) for place, note in enumerate(value, 1)}
        elif not isinstance(value, dict):  # nested values are in --json only
            number = isinstance(value, int) and name not in {"rng", "version"}
            label = name.replace("_", " ").replace("self links", "self-links")
            lines[label] = count(value) if number else str(value)
    return lines


def _bytes(path: Path) -> int:
    """Return the size of a file, a folder, or the files that share a basename."""
    files = path.rglob("*") if path.is_dir() else [path] if path.exists() else path.parent.glob(f"{path.name}.*")
    return sum(file.stat().st_size for file in files if file.is_file())


def _part(number: int, whole: int) -> str:
    return f"{count(number)} ({percent(number / whole)})"

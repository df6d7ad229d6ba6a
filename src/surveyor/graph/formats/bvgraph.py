"""LAW's BVGraph: `B.graph` (the links), `B.properties` (their encoding) and optionally `B.urls[.gz]`.

Read by our own kernel in one pass over the memory-mapped stream; `.offsets` is not needed. (The `webgraph`
package gives successors page by page only, as Python iterators, and needs a further index file.)
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from surveyor.arrays import IntArray
from surveyor.errors import InputError
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.streams import line_blocks
from surveyor.graph.names import Names

PARTS = (".graph", ".properties")
CODED = {"OUTDEGREES": 0, "REFERENCES": 1, "BLOCK_COUNT": 2, "BLOCKS": 3, "RESIDUALS": 4}
CODES = {"UNARY": 0, "GAMMA": 1, "DELTA": 2, "ZETA": 3, "NIBBLE": 4}
DEFAULTS = ("GAMMA", "UNARY", "GAMMA", "GAMMA", "ZETA")
ROWS_AT_ONCE = 1 << 16
LINKS_AT_ONCE = 1 << 20
LONGEST = 1 << 16  # bytes of .properties
MOST_WINDOW = 1 << 16  # WebGraph writes 7


def basename(path: Path) -> Path:
    """Return the common part of the names of a graph's files."""
    return path.with_name(path.name.removesuffix(path.suffix)) if path.suffix in PARTS else path


def read_bvgraph(path: Path, intake: Intake) -> None:
    """Decode all pages in order."""
    base = basename(path)
    stream, properties = (base.with_name(base.name + part) for part in PARTS)
    for file in (stream, properties):
        if not file.is_file():
            raise InputError(f"{file} is missing", hint="a BVGraph needs its .graph and .properties files")
    plan, arcs = read_properties(properties)
    nodes = int(plan[8])
    if nodes > 8 * stream.stat().st_size:  # a page takes at least one bit
        raise InputError(
            f"{properties} states {nodes:,} pages, more than {stream.name} has bits",
            hint="the two files do not belong together, or one is damaged",
        )
    names = _urls(base, nodes)
    intake.declare(nodes, names)
    if names is not None:
        intake.note_repeats(names)
    bits = np.memmap(stream, np.uint8, "r") if stream.stat().st_size else np.empty(0, np.uint8)
    found = _decode(stream, np.asarray(bits), plan, intake)
    if found != arcs:
        raise InputError(
            f"{stream} contains {found:,} links, but {properties.name} states {arcs:,}",
            hint="the two files do not belong together, or one is damaged",
        )


def read_properties(path: Path) -> tuple[IntArray, int]:
    """Return the parameters of the decoder and the number of links."""
    with path.open("rb") as file:
        text = file.read(LONGEST).decode("latin-1")
    given = {
        key: value.strip() for key, value in re.findall(r"(?m)^[ \t]*([^#!\s=:][^\s=:]*)[ \t]*[=:][ \t]*(.*)$", text)
    }
    kind = given.get("graphclass", "").replace("class ", "")
    if kind and not kind.endswith(".BVGraph"):
        raise InputError(f"{path} describes a {kind}", hint="only BVGraph can be read: convert it with WebGraph")
    if given.get("endianness", "big") != "big":
        raise InputError(f"{path} describes a little-endian stream", hint="convert it to big-endian with WebGraph")
    codes = list(DEFAULTS)
    for flag in filter(None, re.split(r"[|\s]+", given.get("compressionflags", ""))):
        part, _, code = flag.rpartition("_")
        if part == "OFFSETS":
            continue
        if part not in CODED or code not in CODES:
            raise InputError(f"{path} uses the unknown code {flag}", hint=f"known codes are {', '.join(CODES)}")
        codes[CODED[part]] = code
    try:
        nodes, arcs = int(given["nodes"]), int(given["arcs"])
        width, window = int(given.get("zetak", 3)), int(given.get("windowsize", 7))
        interval = int(given.get("minintervallength", 4))
        if (
            min(nodes, arcs, window, interval) < 0
            or not 1 <= width <= 28
            or max(nodes, interval) >= 2**31
            or window > MOST_WINDOW
        ):
            raise ValueError(
                f"nodes {nodes}, arcs {arcs}, zetak {width}, windowsize {window}, minintervallength {interval}"
            )
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} does not describe a BVGraph ({error})", hint="download it again") from error
    return np.array([*(CODES[code] for code in codes), width, window, interval, nodes], np.int64), arcs


def _decode(path: Path, bits: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], plan: IntArray, intake: Intake) -> int:
    """Add all links to the intake; return their number."""
    from surveyor.kernels import bv_decoder as bv

    state = np.zeros(4, np.int64)
    window, nodes = int(plan[bv.WINDOW]), int(plan[bv.NODES])
    starts = np.zeros(ROWS_AT_ONCE + window + 1, np.int64)
    targets, scratch = np.empty(LINKS_AT_ONCE, np.int32), np.empty((3, 1 << 12), np.int32)
    found, end = 0, bv.MORE
    while end != bv.DONE:
        kept = int(state[bv.ROWS])
        end = bv.decode_rows(bits, plan, state, starts, targets, scratch)
        if end in (bv.TRUNCATED, bv.CORRUPT):
            state_of = "ends too early" if end == bv.TRUNCATED else "makes no sense"
            raise InputError(
                f"{path} {state_of} at page {state[bv.PAGE]:,} of {nodes:,}",
                hint="the file is truncated or damaged, or belongs to other .properties",
            )
        rows = int(state[bv.ROWS])
        sources = np.arange(state[bv.PAGE] - (rows - kept), state[bv.PAGE], dtype=np.int32)
        sources = np.repeat(sources, np.diff(starts[kept : rows + 1]))
        intake.links(sources, targets[starts[kept] : starts[rows]])
        found += sources.size
        keep = min(window, rows)
        tail = targets[starts[rows - keep] : starts[rows]].copy()
        starts[: keep + 1] = starts[rows - keep : rows + 1] - starts[rows - keep]
        needed = int(state[bv.NEEDED])
        if tail.size + needed > targets.size:
            targets = np.empty(2 * (tail.size + needed), np.int32)
        if needed > scratch.shape[1]:
            scratch = np.empty((3, 2 * needed), np.int32)
        targets[: tail.size] = tail
        state[bv.ROWS] = keep
        intake.progress("reading", float(state[bv.PAGE]), nodes, "pages")
    return found


def _urls(base: Path, nodes: int) -> Names | None:
    """Read the URLs next to a graph, one per line in the order of the pages, if there are any."""
    files = [base.with_name(base.name + suffix) for suffix in (".urls.gz", ".urls", ".urls.zst")]
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        return None
    names = read_lines(path)
    if len(names) != nodes:
        raise InputError(
            f"{path} has {len(names):,} lines but the graph has {nodes:,} pages",
            hint="move the file away to read the graph without URLs",
        )
    return names


def read_lines(path: Path) -> Names:
    """Read a file of names, one per line."""
    from surveyor.kernels.text_parsing import copy_spans, line_spans

    blobs, lengths = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
    for block in line_blocks(path):
        spans = np.empty((np.count_nonzero(block == 10), 2), np.int64)
        line_spans(block, spans)
        lengths.append(spans[:, 1] - spans[:, 0])
        blobs.append(np.empty(lengths[-1].sum(), np.uint8))
        copy_spans(block, spans, blobs[-1])
    return Names(np.cumsum(np.concatenate(lengths)), np.concatenate(blobs))

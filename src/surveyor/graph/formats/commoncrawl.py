"""Common Crawl's web graphs: `*-vertices` (id, reversed name) and `*-edges` (id, id), whole or in parts.

    X-vertices.txt.gz    id TAB com.example [TAB hosts]      id = number of the line, from 0
    X-edges.txt.gz       id TAB id
    X-vertices.paths.gz  a list of such files, X-edges.paths.gz likewise

Names are stored in their usual order (example.com) and reversed again when written. Two properties that differ
between releases are noted: whether `www` labels are kept, and whether names are sorted; nothing relies on the
order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surveyor.arrays import ByteArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import SHOWN, Intake
from surveyor.graph.formats.pairs import Block, TextLayout, parsed, read_ids, write_lines
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed
from surveyor.graph.names import Names

PART = re.compile(r"(?P<prefix>.*?)(?P<kind>vertices|edges)\.(?P<form>txt|paths)(\.(gz|zst|bz2|xz))?")
AT_ONCE = 1 << 16
LONGEST_LIST = 1 << 24  # bytes of a list of parts
AT_START = TextLayout(0, 0, "", None, 9, numbers=True)  # no header, no comments


def find_files(path: Path) -> tuple[Path, Path] | None:
    """Return the vertices and edges files of a folder, or of either file; None if there are none."""
    folder = path if path.is_dir() else path.parent
    wanted = None if path.is_dir() else PART.fullmatch(path.name)
    if not folder.is_dir() or (path.is_file() and not wanted):
        return None
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir(), key=lambda file: ".paths" in file.name):  # whole files before lists of parts
        if match := PART.fullmatch(file.name):
            found.setdefault(match["prefix"], {}).setdefault(match["kind"], file)
    if wanted:
        found = {wanted["prefix"]: found.get(wanted["prefix"], {})}
        found[wanted["prefix"]][wanted["kind"]] = path
    whole = {prefix: files for prefix, files in found.items() if len(files) == 2}
    if len(whole) > 1:
        names = ", ".join(files["edges"].name for files in whole.values())
        raise InputError(f"{path} contains several graphs: {names}", hint="pass the edges file of one of them")
    return next(((files["vertices"], files["edges"]) for files in whole.values()), None)


def read_commoncrawl(path: Path, intake: Intake) -> None:
    """Read the names, then the links."""
    files = find_files(path)
    if files is None:
        raise InputError(
            f"{path} is not a Common Crawl graph, which has a vertices and an edges file",
            hint="put X-vertices.txt.gz and X-edges.txt.gz (or .paths.gz lists of local files) in one folder",
        )
    names = _read_names(list(_parts(files[0])), intake)
    intake.declare(len(names), names)
    for part in _parts(files[1]):
        read_ids(part, intake, AT_START)


def _parts(path: Path) -> Iterator[Path]:
    """Yield the file itself, or the files that it lists, found next to it or in a folder above it."""
    if ".paths" not in path.suffixes:
        yield path
        return
    with decompressed(path) as (file, _):
        text = file.read(LONGEST_LIST + 1)
    if len(text) > LONGEST_LIST:
        raise InputError(f"{path} is too long for a list of files", hint="pass a list with one path per line")
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").splitlines(), 1):
        line = line.strip()
        if not line:
            continue
        if "\0" in line or Path(line).is_absolute() or ".." in Path(line).parts:
            raise InputError(
                f"{path}:{number}: {line[:80]!r} is not a valid path of a part",
                hint="parts must be below the folder of the list or a folder above it",
            )
        tail = Path(*Path(line).parts[-2:])
        places = [path.parent / line, *(parent / line for parent in path.resolve().parent.parents)]
        places += [path.parent / tail, path.parent / tail.name]
        part = next((place for place in places if place.is_file()), None)
        if part is None:
            raise InputError(
                f"{path}:{number}: the part {line} is missing",
                hint="download it next to the list, or to the same path below a folder above it",
            )
        yield part


def _read_names(parts: list[Path], intake: Intake) -> Names:
    from surveyor.kernels.text_parsing import copy_spans, names_are_sorted, reverse_labels

    blobs, lengths, count = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)], 0
    for part in parts:
        line = 0
        for block in parsed(part, intake, _find_vertices, AT_START):
            ids, spans = block.found
            wrong = np.flatnonzero((ids != np.arange(count, count + ids.size)) & (ids >= 0))
            if wrong.size:
                raise InputError(
                    f"{part}: after line {line + wrong[0]:,} comes id {ids[wrong[0]]:,} "
                    f"instead of {count + wrong[0]:,}",
                    hint="ids are the numbers of the lines, from 0: parts must be complete and in order",
                )
            lengths.append(spans[:, 1] - spans[:, 0])
            blobs.append(np.empty(lengths[-1].sum(), np.uint8))
            copy_spans(block.text, spans, blobs[-1])
            count += ids.size
            line += block.lines
    offsets = np.cumsum(np.concatenate(lengths))
    reversed_blob = np.concatenate(blobs)
    del blobs
    if not names_are_sorted(reversed_blob, offsets):
        intake.note("vertices were not sorted")
        intake.note_repeats(Names(offsets, reversed_blob))
    blob = np.empty_like(reversed_blob)
    reverse_labels(reversed_blob, offsets, blob)
    kept = _starts_with(blob, offsets, b"www.")
    intake.note(f"names keep www. ({kept:,} of {count:,})" if kept else "names have no www. (stripped or none)")
    intake.notes = [note for note in intake.notes if "more than two columns" not in note]
    return Names(offsets, blob)


def _starts_with(blob: ByteArray, offsets: IntArray, text: bytes) -> int:
    """Count the names that start with a text and are longer."""
    firsts = offsets[:-1][np.diff(offsets) > len(text)]
    for step, byte in enumerate(text):
        firsts = firsts[blob[firsts + step] == byte]
    return int(firsts.size)


def _find_vertices(text: ByteArray) -> Block:
    from surveyor.kernels.text_parsing import parse_vertices

    rows = np.count_nonzero(text == 10)
    ids, spans, bad = np.empty(rows, np.int64), np.empty((rows, 2), np.int64), np.empty((SHOWN, 3), np.int64)
    found, lines, largest, count, longer = parse_vertices(text, ids, spans, bad)
    return Block(text, (ids[:found], spans[:found]), lines, largest, count, bad, longer)


def write_commoncrawl(graph: Graph, path: Path) -> None:
    """Write both files, into a folder or next to each other, numbered in the order of the reversed names."""
    from surveyor.kernels.text_parsing import names_are_sorted, reverse_labels
    from surveyor.kernels.text_writing import write_vertices

    if graph.names is None:
        raise UsageError("the Common Crawl format needs names, and the graph has none", hint="write SNAP instead")
    match = PART.fullmatch(path.name)
    if match is None:
        path.mkdir(parents=True, exist_ok=True)
    prefix = match["prefix"] if match else f"{path.name}-"
    folder, ending = (path.parent, path.name[match.end("form") :]) if match else (path, ".gz")
    blob = np.empty_like(graph.names.blob)
    offsets = graph.names.offsets
    reverse_labels(graph.names.blob, offsets, blob)
    if {9, 10, 13} & set(np.unique(blob).tolist()) or not np.diff(offsets).all():
        raise UsageError("a name is empty or contains a tab or line end", hint="write Parquet or npz instead")
    if not names_are_sorted(blob, offsets):
        graph, offsets, blob = _sorted(graph, Names(offsets, blob))
    with atomic_write(folder / f"{prefix}vertices.txt{ending}") as draft, compressed_writer(draft) as write:
        for first in range(0, graph.pages, AT_ONCE):
            last = min(first + AT_ONCE, graph.pages)
            out = np.empty(int(offsets[last] - offsets[first]) + 12 * (last - first), np.uint8)
            write(out[: write_vertices(first, last, offsets, blob, out)].data)
    write_lines(graph, folder / f"{prefix}edges.txt{ending}", b"", 9, None)


def _sorted(graph: Graph, names: Names) -> tuple[Graph, IntArray, ByteArray]:
    """Renumber the pages in the order of their reversed names."""
    order = names.order()
    new_ids = np.empty(order.size, np.int32)
    new_ids[order] = np.arange(order.size)
    sources = np.repeat(new_ids, graph.out_degrees)
    ordered = names.take(order)
    return Graph.from_arrays(sources, new_ids[graph.indices], graph.pages), ordered.offsets, ordered.blob

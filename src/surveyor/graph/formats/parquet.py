"""Parquet tables with one link per row: two columns of ids or of names, read group by group with PyArrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import BoolArray, IntArray
from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats.intake import Intake
from surveyor.graph.formats.pairs import ends_of, link_batches
from surveyor.graph.formats.streams import atomic_write, library
from surveyor.graph.names import Names

PAGES = b"surveyor.pages"  # in the metadata: preserves pages without links
ROWS = 1 << 18
GROUP = 1 << 22


def read_parquet(path: Path, intake: Intake) -> None:
    """Read two columns: source and target, src and dst, from and to, or the first two."""
    parquet = library("pyarrow.parquet", "reading Parquet")
    pa = library("pyarrow", "reading Parquet")
    try:
        with parquet.ParquetFile(path, memory_map=True) as file:
            _read(path, file, intake, pa)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # column names may not be UTF-8
        problem = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} cannot be read as Parquet: {problem}", hint="download or write it again") from error


def _read(path: Path, file: Any, intake: Intake, pa: Any) -> None:
    schema = file.schema_arrow
    columns = [schema.names[place] for place in ends_of(schema.names) or range(min(2, len(schema.names)))]
    if len(columns) < 2 or any(schema.names.count(column) > 1 for column in columns):
        raise InputError(
            f"{path} has fewer than two columns with different names", hint="it needs a source and a target column"
        )
    if len(schema.names) > 2:
        intake.note(f"{path.name}: links are in {columns[0]} and {columns[1]}; the other columns are ignored")
    stated = (schema.metadata or {}).get(PAGES, b"")
    if stated.isdigit() and len(stated) < 19 and intake.wanted is None:
        intake.expect(int(stated))
    kinds = [_kind(pa, schema.field(column).type) for column in columns]
    if "" in kinds or kinds[0] != kinds[1]:
        types = " and ".join(str(schema.field(column).type) for column in columns)
        raise InputError(
            f"{path} has {types} in {columns[0]} and {columns[1]}", hint="both must be integers, or both text"
        )
    row, total = 0, file.metadata.num_rows
    for batch in file.iter_batches(ROWS, columns=list(columns)):
        arrays = [_checked(pa, batch.column(column)) for column in columns]
        good = ~np.logical_or(*(_missing(pa, array) for array in arrays))
        if kinds[0] == "ids":
            ids = [_numbers(pa, array) for array in arrays]
            limit = min(intake.limit, 2**63 - 1)
            for values in ids:
                good &= (values >= 0) & (values < limit)
            sources, targets = (values[good] for values in ids)
            intake.ids(sources, targets, int(max(sources.max(initial=-1), targets.max(initial=-1))))
        else:
            intake.links(*(_texts(pa, array.filter(pa.array(good)), intake) for array in arrays))
        for place in np.flatnonzero(~good):
            shown = ", ".join(str(array[int(place)].as_py()) for array in arrays)
            intake.malformed(path, row + int(place) + 1, shown.encode())
        row += len(batch)
        intake.progress("reading", row, total, "links")


def _checked(pa: Any, array: Any) -> Any:
    """Return an array after checking what PyArrow does not check: text offsets and dictionary indices."""
    if not pa.types.is_dictionary(array.type):
        array.validate(full=True)
        return array
    places = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
    some = array.null_count < len(array)
    if some and not 0 <= int(places.min()) <= int(places.max()) < len(array.dictionary):
        raise pa.ArrowInvalid("a row points beyond its dictionary")
    array.dictionary.validate()
    return array


def _kind(pa: Any, kind: Any) -> str:
    """Return whether a column contains ids or names."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(value):
        return "ids"
    return "names" if any(test(value) for test in _text_tests(pa)) else ""


def _text_tests(pa: Any) -> tuple[Any, ...]:
    return (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _missing(pa: Any, array: Any) -> BoolArray:
    """Return which rows have no value or an empty name."""
    empty = np.asarray(array.is_null(), np.bool_)
    if pa.types.is_dictionary(array.type):
        known: BoolArray = _missing(pa, array.dictionary)
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        empty |= known[places] if known.size else False
        return empty
    if any(test(array.type) for test in _text_tests(pa)):
        empty = empty | (np.diff(_ends(pa, array)[0]) == 0)
    return empty


def _ends(pa: Any, array: Any) -> tuple[IntArray, Any]:
    """Return the text offsets and the bytes."""
    array = array.cast(pa.large_binary()).fill_null(b"")
    _, offsets, data = array.buffers()
    return np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1], data


def _numbers(pa: Any, array: Any) -> IntArray:
    """Return integers as int64, missing and too large ones as -1."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    values: IntArray = array.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        values = np.where(values < np.uint64(2**63), values, np.uint64(2**64 - 1))
    return values.astype(np.int64)


def _texts(pa: Any, array: Any, intake: Intake) -> IntArray:
    """Return the page id of each name; each used dictionary entry is looked up once."""
    if pa.types.is_dictionary(array.type):
        places = array.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        occur = np.zeros(len(array.dictionary), np.bool_)
        occur[places] = True
        ids = np.zeros(occur.size, np.int64)
        ids[occur] = _texts(pa, array.dictionary.filter(pa.array(occur)), intake)
        found: IntArray = ids[places]
        return found
    ends, data = _ends(pa, array)
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return intake.intern(text, np.stack([ends[:-1], ends[1:]], axis=1)).astype(np.int64)


def write_parquet(graph: Graph, path: Path) -> None:
    """Write the columns source and target: names where the graph has them, else ids."""
    parquet = library("pyarrow.parquet", "writing Parquet")
    pa = library("pyarrow", "writing Parquet")
    names = None if graph.names is None else _dictionary(pa, graph.names)
    kind = pa.int32() if names is None else pa.dictionary(pa.int32(), names.type)
    metadata = {PAGES: str(graph.pages).encode()} if names is None else {}
    schema = pa.schema([("source", kind), ("target", kind)], metadata=metadata)
    with atomic_write(path) as draft, parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        for pair in link_batches(graph, GROUP):
            columns = [pa.array(ids) for ids in pair]
            if names is not None:
                columns = [pa.DictionaryArray.from_arrays(ids, names) for ids in columns]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=GROUP)


def _dictionary(pa: Any, names: Names) -> Any:
    """Return the names as text, or as bytes if they are not UTF-8."""
    buffers = [
        None,
        pa.py_buffer(np.ascontiguousarray(names.offsets)),
        pa.py_buffer(np.ascontiguousarray(names.blob)),
    ]
    table = pa.Array.from_buffers(pa.large_binary(), len(names), buffers)
    try:
        return table.cast(pa.large_string())
    except pa.ArrowInvalid:
        return table

"""Links of tables and arrays: two columns of node ids or names.

Integer columns of one chunk without nulls are used where they are, without a copy. Integers that number all nodes from
0 are page ids; others are numbered in ascending order, and remain as labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import MAX_PAGES, AnyIntArray, BoolArray, FloatArray, IntArray, real_numbers
from surveyor.errors import MissingExtra, UsageError
from surveyor.graph.links import Keep, Links
from surveyor.graph.names import Names
from surveyor.kernels.thread_pool import ThreadPool

PIECE = 1 << 20  # ids marked at a time
DENSE = 4  # ids below this many times their number are numbered by a table, beyond it by sorting
HINT = "name the columns source and target, or put them first"


def arrow_links(source: Any, keep: Keep) -> Links:
    """Return the links of a table with the Arrow PyCapsule interface."""
    try:
        import pyarrow as pa
    except ImportError as error:
        if table_columns(source) is not None:  # pandas and polars can do without
            return frame_links(source, keep)
        raise MissingExtra(f"reading a {type(source).__name__}", "pyarrow", "formats") from error
    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if table_columns(source) is not None:  # columns of several types, which Arrow does not have
            return frame_links(source, keep)
        raise _unreadable(error) from error
    first, second, weight = _columns(reader.schema.names, keep)
    try:
        table = reader.read_all()
    except pa.ArrowException as error:
        raise _unreadable(error) from error
    ends = [table.column(place) for place in (first, second)]
    for place, column in zip((first, second), ends, strict=True):
        if column.null_count:
            raise UsageError(
                f"column {table.schema.names[place]!r} has {column.null_count:,} missing values",
                hint="drop these rows, or give them a name",
            )
    weights = None if weight is None else _weight_column(table.column(weight).to_numpy(), table.schema.names[weight])
    if all(pa.types.is_integer(column.type) for column in ends):
        return integer_links(_numbers(ends[0]), _numbers(ends[1]), weights)
    if all(_is_text(pa, column.type) for column in ends):
        return _text_links(pa, ends, weights)
    return object_links(ends[0].to_pylist(), ends[1].to_pylist(), weights)


def _unreadable(error: Exception) -> UsageError:
    first = str(error).partition("\n")[0]
    return UsageError(f"the table cannot be read: {first[:200]}", hint="pass a table with columns source and target")


def frame_links(source: Any, keep: Keep) -> Links:
    """Return the links of a data frame, column by column through NumPy."""
    names = table_columns(source) or []
    if len(set(names)) < len(names):
        raise UsageError("several columns have the same name", hint=HINT)
    first, second, weight = _columns([str(name) for name in names], keep)
    ends = [np.asarray(source[names[place]]) for place in (first, second)]
    weights = None if weight is None else _weight_column(np.asarray(source[names[weight]]), str(names[weight]))
    return _of_arrays(ends[0], ends[1], weights)


def has_numpy_integers(source: Any) -> bool:
    """Return whether a data frame keeps its two columns as NumPy integers, which Arrow would copy."""
    names = table_columns(source)
    if not names or len(names) < 2 or len(set(names)) < len(names):
        return False
    first, second, _ = _columns([str(name) for name in names], Keep())
    ends = [getattr(source[names[place]], "values", None) for place in (first, second)]
    return all(isinstance(values, np.ndarray) and values.dtype.kind in "iu" for values in ends)


def table_columns(source: Any) -> list[Any] | None:
    """Return the names of the columns of a data frame; None if this is none."""
    if not hasattr(source, "__getitem__") or callable(getattr(source, "collect", None)):  # a frame not computed yet
        return None
    columns = getattr(source, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    return names if all(isinstance(name, str | int | tuple) for name in names) else None


def array_links(source: Any, keep: Keep) -> Links:
    """Return the links of a pair of arrays, or of an array with two columns."""
    if keep.weights:
        raise UsageError(
            "an array of pairs has no weights",
            hint="use Graph.from_arrays(sources, targets, weights=weights), or a table with a column of weights",
        )
    if np.ma.is_masked(source) or (isinstance(source, tuple) and any(map(np.ma.is_masked, source))):
        raise UsageError("some nodes are masked", hint="drop these rows, or give them a name")
    if isinstance(source, tuple):
        sources, targets = source
        return _of_pairs(sources, targets)
    source = np.asarray(source)  # not a matrix, whose columns have two dimensions
    if source.ndim == 2 and source.shape[1] == 2:
        sources, targets = source[:, 0], source[:, 1]
    elif not source.size and source.ndim == 1:
        sources = targets = source
    else:
        shape = " × ".join(str(size) for size in source.shape)
        raise UsageError(
            f"an array of {shape} is no list of links",
            hint="pass an array of shape (links, 2); an adjacency matrix as scipy.sparse.csr_array(matrix)",
        )
    return _of_pairs(sources, targets)


def _of_pairs(sources: npt.NDArray[Any], targets: npt.NDArray[Any]) -> Links:
    if sources.shape != targets.shape or sources.ndim != 1:
        raise UsageError(
            f"{sources.size:,} sources but {targets.size:,} targets", hint="pass one source and one target per link"
        )
    return _of_arrays(sources, targets, None)


def integer_links(sources: AnyIntArray, targets: AnyIntArray, weights: FloatArray | None) -> Links:
    """Return links between integers; ids that number all nodes from 0 are used unchanged."""
    from surveyor.kernels.weighted_links import renumber

    if np.result_type(sources, targets).kind == "f":  # int64 and uint64 have no common type
        return object_links(sources.tolist(), targets.tolist(), weights)
    sources, targets = (np.ascontiguousarray(ends, ends.dtype.newbyteorder("=")) for ends in (sources, targets))
    if not sources.size:
        return Links(np.empty(0, np.int32), np.empty(0, np.int32), 0, None, weights)
    if (occurs := _occurring(sources, targets)) is not None:
        if occurs.all():
            return Links(sources, targets, occurs.size, None, weights)
        labels = np.flatnonzero(occurs)
        new = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
        ends = np.empty((2, sources.size), np.int32)
        renumber(sources, new, ends[0])
        renumber(targets, new, ends[1])
        return Links(ends[0], ends[1], labels.size, labels, weights)
    labels, numbered = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    return Links(numbered[: sources.size], numbered[sources.size :], labels.size, labels, weights)


def object_links(sources: Sequence[Any], targets: Sequence[Any], weights: FloatArray | None) -> Links:
    """Return links between any hashable values."""
    ids: dict[Any, int] = {}
    try:
        pairs = [
            (ids.setdefault(source, len(ids)), ids.setdefault(target, len(ids)))
            for source, target in zip(sources, targets, strict=True)
        ]
    except TypeError as error:
        raise UsageError(f"some nodes are not hashable ({error})", hint="pass text, numbers or tuples") from error
    reject_missing(ids)
    numbers = np.array(pairs, np.int64).reshape(-1, 2)
    return Links(numbers[:, 0], numbers[:, 1], len(ids), list(ids), weights, ids=ids)


def reject_missing(nodes: Iterable[Any]) -> None:
    """Reject None and what is not equal to itself (NaN, NaT), which stand for missing values in tables."""
    if any(node is None or node != node for node in nodes):
        raise UsageError("some nodes are missing (None or NaN)", hint="drop these rows, or give them a name")


def _of_arrays(sources: npt.NDArray[Any], targets: npt.NDArray[Any], weights: FloatArray | None) -> Links:
    if all(ends.dtype.kind in "iu" for ends in (sources, targets)):
        return integer_links(sources, targets, weights)
    return object_links(_objects(sources), _objects(targets), weights)


def _objects(ends: npt.NDArray[Any]) -> list[Any]:
    """Return values as objects of Python; times of NumPy would become integers."""
    if ends.dtype.kind not in "mM":
        listed: list[Any] = ends.tolist()
        return listed
    times = ends.astype(f"{ends.dtype.kind}8[us]")
    if not np.array_equal(times.astype(ends.dtype), ends, equal_nan=True):
        raise UsageError(
            f"nodes of type {ends.dtype} are finer than microseconds", hint="pass integers: column.astype(np.int64)"
        )
    return list(times.tolist())


def _columns(names: Sequence[str], keep: Keep) -> tuple[int, int, int | None]:
    """Return the places of sources, targets and weights."""
    from surveyor.graph.formats.pairs import ends_of

    ends = ends_of(names) or ((0, 1) if len(names) > 1 else None)
    if ends is None:
        raise UsageError(f"a table with {len(names)} column{'s' * (len(names) != 1)} has no links", hint=HINT)
    attribute = keep.attribute("weight", default=False)
    if attribute is None:
        return *ends, None
    if attribute not in names:
        raise UsageError(f"no column is named {attribute!r}", hint=f"columns: {', '.join(names)[:200]}")
    return *ends, list(names).index(attribute)


def _occurring(sources: AnyIntArray, targets: AnyIntArray) -> BoolArray | None:
    """Return which ids occur, up to the largest; None if one is negative or much larger than the number of links."""
    from surveyor.kernels.weighted_links import mark_ids

    occurs = np.zeros(min(max(1 << 16, DENSE * sources.size), MAX_PAGES), np.bool_)  # memory is used where it is marked
    pieces = [(ends[at : at + PIECE], occurs) for ends in (sources, targets) for at in range(0, ends.size, PIECE)]
    with ThreadPool() as pool:  # threads only ever write the same value
        found = list(pool.imap(mark_ids, pieces))
    if any(beyond for _, beyond in found):
        return None
    return occurs[: int(max(largest for largest, _ in found)) + 1]


def _numbers(column: Any) -> AnyIntArray:
    """Return a column of integers; of one chunk, without a copy."""
    chunk = column.chunk(0) if column.num_chunks == 1 else column
    values: AnyIntArray = chunk.to_numpy()
    return values


def _is_text(pa: Any, kind: Any) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(value) for test in tests)


def _text_links(pa: Any, ends: list[Any], weights: FloatArray | None) -> Links:
    """Return links between texts: each distinct text is numbered by Arrow, in order of first appearance."""
    kind = pa.large_string()
    rows = len(ends[0])
    chunks = [chunk.cast(kind) for column in ends for chunk in column.chunks]
    if any(chunk.null_count for chunk in chunks):  # of the values of a dictionary
        raise UsageError("some nodes are missing", hint="drop these rows, or give them a name")
    coded = pa.chunked_array(chunks, kind).combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks() if coded.num_chunks != 1 else coded.chunk(0)
    numbers: IntArray = coded.indices.to_numpy()
    try:
        coded.dictionary.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"some nodes are no valid text ({error})", hint="pass them as binary values") from error
    text = coded.dictionary.cast(pa.large_binary())
    _, offsets, data = text.buffers()
    places = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    blob = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    first = int(places[0]) if places.size else 0
    names = Names(places - first, blob[first : int(places[-1])]) if len(text) else Names.of([])
    return Links(numbers[:rows], numbers[rows:], len(text), names, weights)


def _weight_column(values: npt.NDArray[Any], name: str) -> FloatArray:
    return real_numbers(values, f"column {name!r}", hint="leave weights out to ignore it")

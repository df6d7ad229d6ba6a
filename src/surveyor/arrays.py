"""Array type aliases, and array functions that NumPy lacks.

Untrusted `.npy` files: NumPy evaluates their header as Python source and trusts the shape in it. Here the header is
matched by a regular expression, only plain types are accepted (no objects, no records), and the file size must equal
the size given by type and shape before anything is allocated or mapped.
"""

from __future__ import annotations

import math
import mmap
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surveyor.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    import polars

IntArray: TypeAlias = npt.NDArray[np.int64]
IdArray: TypeAlias = npt.NDArray[np.int32]  # page ids
KeyArray: TypeAlias = npt.NDArray[np.uint64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
AnyIntArray: TypeAlias = npt.NDArray[np.integer[Any]]
AnyInt: TypeAlias = int | np.integer[Any]

MAX_PAGES = 2**31 - 1  # page ids are int32
MAGIC = b"\x93NUMPY"
LONGEST = 4096  # bytes of a header
TYPE = r"[<>=|](?:[biufcSU?][0-9]{1,4}|[mM]8\[[0-9]{0,6}[A-Za-z]{1,2}\])"
HEADER = re.compile(
    rf"\{{'descr': ?'(?P<type>{TYPE})', ?'fortran_order': ?(?P<order>True|False), ?"
    r"'shape': ?\((?P<shape>(?:[0-9]{1,18}L?, ?)*(?:[0-9]{1,18}L?)?)\),? ?\} *\n?"
)


def read_only(array: npt.NDArray[Any]) -> Any:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def marked(pages: AnyIntArray | BoolArray, count: int) -> BoolArray:
    """Return a boolean mask of pages that are given as ids or as a mask; validated, because kernels do not check it."""
    given = np.asarray(pages)
    if given.dtype == np.bool_:
        if given.shape != (count,):
            raise UsageError(f"{given.size:,} truth values for {count:,} pages", hint="give one per page, or ids")
        return given.astype(np.bool_)
    if given.size and given.dtype.kind not in "iu":
        raise UsageError(
            f"{given.dtype} is no type of page ids", hint="give whole numbers, or one truth value per page"
        )
    ids = given.astype(np.int64)
    if ids.size and not 0 <= ids.min() <= ids.max() < count:
        raise UsageError(f"no page {ids.min() if ids.min() < 0 else ids.max()}", hint=f"ids go from 0 to {count - 1}")
    inside = np.zeros(count, np.bool_)
    inside[ids] = True
    return inside


def real_numbers(values: npt.ArrayLike, name: str, *, hint: str) -> FloatArray:
    """Return one number per link, page or row as float64; text, times and complex numbers are none.

    >>> real_numbers([1, True, 2.5], "weights", hint="pass numbers").tolist()
    [1.0, 1.0, 2.5]
    """
    try:
        given = np.asarray(values)
        if given.ndim != 1 or given.dtype.kind not in "biufO":
            kind = f"{given.ndim} dimensions" if given.ndim != 1 else str(given.dtype)
            raise TypeError(kind)
        if given.dtype == np.object_ and any(isinstance(value, str | bytes) for value in given):
            raise TypeError("text")
        return np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{name} must hold numbers ({str(error)[:100]})", hint=hint) from error


def save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a `.npy` file; unlike `np.save`, raise if a full disk truncates it."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(np.ascontiguousarray(array).data)


def optional(name: str, feature: str, extra: str) -> Any:
    """Import an optional package; if it is missing, raise an error that names the extra."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(feature, name.split(".")[0], extra) from error


def data_frame(columns: Any, **options: Any) -> polars.DataFrame:
    """Return a Polars data frame of columns; raise if Polars is not installed."""
    frame: polars.DataFrame = optional("polars", "to_polars()", "frames").DataFrame(columns, **options)
    return frame


def let_go(array: npt.NDArray[Any], first: AnyInt, last: AnyInt) -> None:
    """Release the memory of entries first to last of a memory-mapped array; the page cache of the system is unaffected.

    Otherwise streaming a file larger than memory would count towards the memory of this process until others need it.
    """
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = getattr(owner, "base", None)
    if owner is None or not hasattr(owner, "madvise") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data
    start = begin + int(first) * array.itemsize
    start += -start % mmap.PAGESIZE
    length = begin + int(last) * array.itemsize - start
    if length > 0:
        owner.madvise(mmap.MADV_DONTNEED, start, length)


def read_npy(data: bytes | ByteArray) -> npt.NDArray[Any]:
    """Return the array in the contents of a file, as a view; raise ValueError if it is invalid."""
    start, kind, shape, order = _header(bytes(data[: LONGEST + 16]), len(data))
    array: npt.NDArray[Any] = np.frombuffer(data, kind, math.prod(shape), start).reshape(shape, order=order)
    return array


def map_npy(path: Path) -> npt.NDArray[Any]:
    """Memory-map the array in a file, read-only; raise ValueError if it is invalid."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start, kind, shape, order = _header(file.read(LONGEST + 16), size)
    if 0 in shape:  # nothing to map
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r", start, shape, order)


def plain_type(text: str) -> np.dtype[Any]:
    """Return the dtype of numbers, dates or text with this name; NumPy would evaluate unknown names."""
    try:
        if re.fullmatch(TYPE, text):
            return np.dtype(text)
    except TypeError as error:
        raise ValueError(f"unknown type {text}") from error
    raise ValueError(f"unknown type {text[:40]!r}")


def _header(head: bytes, size: int) -> tuple[int, np.dtype[Any], tuple[int, ...], Any]:
    """Return the data offset, the dtype, the shape and the order; check that they match the file size."""
    wide = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}.get(head[6:8])
    if not head.startswith(MAGIC) or wide is None:
        raise ValueError("it is not a .npy array")
    length = int.from_bytes(head[8 : 8 + wide], "little")
    start = 8 + wide + length
    match = HEADER.fullmatch(head[8 + wide : start].decode("latin-1")) if start <= len(head) else None
    if match is None:
        raise ValueError("its .npy header is not one of plain numbers or text")
    shape = tuple(int(part.strip().rstrip("L")) for part in match["shape"].split(",") if part.strip())
    kind = plain_type(match["type"])
    if len(shape) > 8 or math.prod(shape) * kind.itemsize != size - start or kind.hasobject:
        raise ValueError(f"{size - start:,} bytes are not a {match['type']} array of shape {shape}")
    return start, kind, shape, "F" if match["order"] == "True" else "C"

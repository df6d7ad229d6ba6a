"""Array type aliases, and array functions that NumPy lacks."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surveyor.errors import UsageError

IntArray: TypeAlias = npt.NDArray[np.int64]
IdArray: TypeAlias = npt.NDArray[np.int32]  # page ids
KeyArray: TypeAlias = npt.NDArray[np.uint64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
AnyIntArray: TypeAlias = npt.NDArray[np.integer[Any]]
AnyInt: TypeAlias = int | np.integer[Any]

MAX_PAGES = 2**31 - 1  # page ids are int32


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


def save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a `.npy` file; unlike `np.save`, raise if a full disk truncates it."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(np.ascontiguousarray(array).data)


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

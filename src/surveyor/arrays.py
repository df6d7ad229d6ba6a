"""The array types that signatures speak of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

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
    """Return a view of the array that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view

"""Reader for untrusted files in NumPy's `.npy` format: numbers, dates and text of fixed width.

NumPy evaluates the header of such a file as Python source and trusts the shape in it. Here the header is matched by a
regular expression, only plain types are accepted (no objects, no records), and the file size must equal the size given
by type and shape before anything is allocated or mapped.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import ByteArray

MAGIC = b"\x93NUMPY"
LONGEST = 4096  # bytes of a header
TYPE = r"[<>=|](?:[biufcSU?][0-9]{1,4}|[mM]8\[[0-9]{0,6}[A-Za-z]{1,2}\])"
HEADER = re.compile(
    rf"\{{'descr': ?'(?P<type>{TYPE})', ?'fortran_order': ?(?P<order>True|False), ?"
    r"'shape': ?\((?P<shape>(?:[0-9]{1,18}L?, ?)*(?:[0-9]{1,18}L?)?)\),? ?\} *\n?"
)


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

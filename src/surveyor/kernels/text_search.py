"""Search of a word in many texts."""

from __future__ import annotations

from surveyor.arrays import BoolArray, ByteArray, IntArray
from surveyor.kernels._jit import kernel


@kernel
def mark_containing(blob: ByteArray, offsets: IntArray, needle: ByteArray, pivot: int, found: BoolArray) -> None:
    """Mark each text that contains a word of at least one byte; `pivot` is the place of its rarest byte."""
    size = needle.size
    rare = needle[pivot]
    for row in range(offsets.size - 1):
        last = offsets[row + 1] - size + pivot
        at = offsets[row] + pivot
        while at <= last:
            if blob[at] == rare:
                first = at - pivot
                same = 0
                while same < size and blob[first + same] == needle[same]:
                    same += 1
                if same == size:
                    found[row] = True
                    break
            at += 1

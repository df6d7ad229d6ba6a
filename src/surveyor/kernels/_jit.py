"""The one decorator that compiles a kernel.

- No signatures: they would compile at import.
- `nogil`, not `parallel`: threads come from `crew.Crew`, which hands each thread whole blocks. The result
  does not depend on the number of threads, and a kernel compiles in a fraction of the time.
- No `fastmath`: a proven error bound forbids it.
- `boundscheck` follows NUMBA_BOUNDSCHECK; `NUMBA_DISABLE_JIT=1` runs the same code as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile on first use, keep the machine code on disk, release the GIL while running."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a small step into the kernels that call it."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))

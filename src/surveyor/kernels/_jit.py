"""The one decorator that compiles a kernel.

- No signatures: they would compile at import.
- `nogil`, not `parallel`: threads come from `thread_pool.ThreadPool`, which gives each thread whole blocks. The result
  does not depend on the number of threads, and a kernel compiles in a fraction of the time.
- No `fastmath`: a proven error bound forbids it.
- `boundscheck` follows NUMBA_BOUNDSCHECK; `NUMBA_DISABLE_JIT=1` runs the same code as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile on first use, keep the machine code on disk, release the GIL while running."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a small step into the kernels that call it."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))


def kernel_without_refcounts(function: Kernel) -> Kernel:
    """Compile a step over many arrays that allocates nothing, without counting references to them.

    Counting would take most of its time: each array that is handed on costs two atomic operations. Numba has
    an option for it that is not documented; should it go, the step is compiled like any other kernel.
    """
    settings: dict[str, Any] = {"_nrt": False, "cache": True, "nogil": True, "error_model": "numpy"}
    try:
        return cast("Kernel", numba.njit(**settings)(function))
    except (KeyError, TypeError):  # pragma: no cover
        return kernel(function)

"""The decorators that compile kernels.

- No signatures: they would compile at import.
- `nogil`, not `parallel`: threads come from `thread_pool.ThreadPool`, which gives each thread whole blocks. The result
  does not depend on the number of threads, and a kernel compiles in a fraction of the time.
- No `fastmath`: a proven error bound forbids it.
- Compiled code is kept in the folder that `_cache` chooses.
- `boundscheck` follows NUMBA_BOUNDSCHECK; `NUMBA_DISABLE_JIT=1` runs the same code as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from surveyor.kernels._cache import cached

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile on first use, cache the machine code on disk, release the GIL while running."""
    return _compiled(function)


def inlined(function: Kernel) -> Kernel:
    """Compile a small function that is inlined into its callers."""
    return _compiled(function, inline="always")


def kernel_without_refcounts(function: Kernel) -> Kernel:
    """Compile a function over many arrays that allocates nothing, without reference counting.

    Reference counting would take most of its time: each array argument costs two atomic operations. The Numba option
    is undocumented; if it is removed, the function is compiled like any other kernel.
    """
    try:
        return _compiled(function, _nrt=False)
    except (KeyError, TypeError):  # pragma: no cover
        return kernel(function)


def _compiled(function: Kernel, **settings: Any) -> Kernel:
    with cached() as cache:
        return cast("Kernel", numba.njit(cache=cache, nogil=True, error_model="numpy", **settings)(function))

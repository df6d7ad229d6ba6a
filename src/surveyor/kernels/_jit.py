"""The one decorator that compiles a kernel.

- No signatures: they would compile at import.
- `nogil`, not `parallel`: threads come from `crew.Crew`, which hands each thread whole blocks. The result
  does not depend on the number of threads, and a kernel compiles in a fraction of the time.
- No `fastmath`: a proven error bound forbids it.
- `boundscheck` follows NUMBA_BOUNDSCHECK; `NUMBA_DISABLE_JIT=1` runs the same code as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def kernel(function: Kernel) -> Kernel:
    """Compile on first use, keep the machine code on disk, release the GIL while running."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Kernel) -> Kernel:
    """Compile a small step into the kernels that call it."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))


def bare(function: Kernel) -> Kernel:
    """Compile a step over many arrays that allocates nothing, without counting references to them.

    Counting would take most of its time: each array that is handed on costs two atomic operations. Numba has
    an option for it that is not documented; should it go, the step is compiled like any other kernel.
    """
    settings: dict[str, Any] = {"_nrt": False, "cache": True, "nogil": True, "error_model": "numpy"}
    try:
        return cast("Kernel", numba.njit(**settings)(function))
    except (KeyError, TypeError):  # pragma: no cover
        return kernel(function)


@intrinsic
def _prefetch(context: Any, array: Any, index: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
        place, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        at = builder.bitcast(builder.gep(data, [arguments[1]]), place)
        builder.call(function, [at, whole(0), whole(3), whole(1)])  # to read, to stay, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), emit


def _nothing(array: Any, index: Any) -> None:
    """Stand in for a prefetch where nothing is compiled."""


prefetch = _nothing if numba.config.DISABLE_JIT else _prefetch  # ask for array[index] ahead of its use

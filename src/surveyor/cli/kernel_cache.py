"""Messages about compiled kernels: where they are cached if not in the usual folder, and when some are compiled."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

REPORTED_AFTER = 0.3  # seconds of compiling
SECONDS = 10  # to compile all kernels of one command on a slow machine


@contextmanager
def kernels(output: Output) -> Iterator[None]:
    """Report compiling inside the block, once, and a cache that cannot be written."""
    from numba.core import event

    from surveyor.kernels._cache import VARIABLE, cache_folder, config, has_kernels

    if config.DISABLE_JIT and os.environ.get(VARIABLE):  # nothing is cached in the folder that was chosen
        yield
        return
    folder = cache_folder()
    if folder.path is None:
        output.warn(f"{folder.wanted} cannot be written or is full, so every run compiles the kernels again")
    elif folder.path != folder.wanted:
        output.info(f"{folder.wanted} cannot be written or is full; compiled kernels go to {folder.path}")

    class Listener(event.Listener):
        depth, began, spent, announced = 0, 0.0, 0.0, False  # a kernel may compile another one; Numba holds a lock

        def on_start(self, event: Any) -> None:  # noqa: ARG002
            if self.depth == 0:
                self.announce(now=folder.path is not None and not has_kernels(folder.path))
                self.began = time.perf_counter()
            self.depth += 1

        def on_end(self, event: Any) -> None:  # noqa: ARG002
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.perf_counter() - self.began
                output.compiling += time.perf_counter() - self.began
                self.announce(now=self.spent > REPORTED_AFTER)

        def announce(self, *, now: bool) -> None:
            if now and not self.announced:
                self.announced = True
                output.info(f"compiling kernels (about {SECONDS} s); they are cached for later runs")

    listener = Listener()
    with event.install_listener("numba:compile", listener), _careful_cache(output, listener):
        yield


@contextmanager
def _careful_cache(output: Output, listener: Any) -> Iterator[None]:
    """Use kernels that cannot be saved, and count loading of kernels as compiling."""
    from numba.core import caching

    from surveyor.kernels._cache import VARIABLE, cache_folder

    numba_cache: Any = caching.Cache
    load, save, warned = numba_cache.load_overload, numba_cache.save_overload, False

    def loaded(cache: Any, *key: Any) -> Any:
        began = time.perf_counter()
        try:
            return load(cache, *key)
        finally:
            if listener.depth == 0:
                output.compiling += time.perf_counter() - began

    def saved(cache: Any, *entry: Any) -> None:
        nonlocal warned
        try:
            save(cache, *entry)
        except OSError as error:
            if not warned:
                warned = True
                output.warn(
                    f"compiled kernels cannot be saved in {cache_folder().wanted} "
                    f"({error.strerror or error}), so every run compiles them again\n"
                    f"  hint: free space there, or set another folder with {VARIABLE} or XDG_CACHE_HOME"
                )

    numba_cache.load_overload, numba_cache.save_overload = loaded, saved
    try:
        yield
    finally:
        numba_cache.load_overload, numba_cache.save_overload = load, save

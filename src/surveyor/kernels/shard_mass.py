"""Mass that moves between the shards of a crawl: taken from proxies, and added to the pages they stand for."""

from __future__ import annotations

import numpy as np

from surveyor.arrays import AnyInt, FloatArray, IdArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.mass import (
    BLOCKED,
    FLAGS,
    OUTBOX,
    STATUS,
    UNKNOWN,
    WAITING,
    Mass,
    account_of,
    add,
    receive,
    set_status,
)


@kernel_without_refcounts
def withdraw(mass: Mass, pages: IdArray, amounts: FloatArray) -> None:
    """Take mass from proxies: it is sent to their shards."""
    for entry in range(pages.shape[0]):
        receive(mass, np.int64(pages[entry]), -amounts[entry])
        add(mass.totals, OUTBOX, -amounts[entry])


@kernel_without_refcounts
def deposit(mass: Mass, pages: IdArray, amounts: FloatArray) -> None:
    """Add mass that other shards have sent to pages of this shard, or to the targets of their redirects."""
    for entry in range(pages.shape[0]):
        page = np.int64(pages[entry])
        if mass.state[page] & STATUS == UNKNOWN:
            set_status(mass, page, WAITING)
        add(mass.totals, account_of(receive(mass, page, amounts[entry])), amounts[entry])


@kernel_without_refcounts
def stop_redirect(mass: Mass, page: AnyInt) -> None:
    """Block a redirected page: its redirects lead in a circle through other shards."""
    mass.settled[page] = 0.0
    mass.state[page] = np.uint8((mass.state[page] & FLAGS) | BLOCKED)

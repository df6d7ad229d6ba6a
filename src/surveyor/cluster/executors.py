"""Executors of steps over pieces: in this process, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from surveyor.cluster.ranking import RayExecutor
from surveyor.cluster.session import Machines, Session
from surveyor.graph.pieces.tasks import LocalExecutor, MakeExecutor


@contextmanager
def executors(cluster: str | Machines | None) -> Iterator[MakeExecutor]:
    """Yield what makes executors: for "local:N", "auto", "HOST:PORT", a cluster that is connected, or this process."""
    if cluster is None:
        yield LocalExecutor
    elif isinstance(cluster, str):
        with Session(cluster) as session:
            yield partial(RayExecutor, session)
    else:
        yield partial(RayExecutor, cluster)

"""Connect to a Ray cluster, or start one on this machine.

    local:N      start N workers on this machine, and stop them at the end
    auto         the cluster that this machine is part of
    HOST:PORT    the cluster with this address

**Loopback.** Ray is meant for trusted networks: its processes run the code that they are sent. Workers of `local:N`
bind all their ports to 127.0.0.1. Ray binds to one interface only if the address of a node is exactly that, and
otherwise to all; and it replaces this address by a public one, which it finds by connecting a socket to a public
address, except on systems where it supports single machines only: `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0` selects that
behaviour on all. Each process has a random token without which no call is accepted; there is no dashboard, and no usage
statistics are sent. The variables are set while workers run, and restored afterwards.

For a cluster of several machines the same settings are made where it is started (`docs/how-to/several-machines.md`).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from surveyor.errors import MissingExtra, SurveyError, UsageError
from surveyor.kernels.thread_pool import cores

LOOPBACK = "127.0.0.1"
MAX_LOCAL = 64
STORE = 256 << 20  # bytes of the object store of a local worker; more is spilled to disk
HEALTH = {  # a dead worker is noticed within seconds, a busy one has ten
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 10_000,
    "health_check_failure_threshold": 3,
}
PATIENCE = 5.0  # seconds for a connection to a cluster
ADDRESS = re.compile(r"[^\s/]+:[0-9]{1,5}")
HINT = "use auto, local:N, or HOST:PORT of a running cluster"


class Node(NamedTuple):
    """A machine of a cluster, or a worker of `local:N`."""

    id: str
    address: str
    cpus: int


class Machines(Protocol):
    """Machines to compute on, such as a `Session`."""

    def nodes(self) -> list[Node]:
        """Return the machines that can be used now."""

    def restore(self) -> None:
        """Start local workers in place of those that have died."""


class Session:
    """A connection to a cluster; use it in a `with` statement."""

    def __init__(self, address: str) -> None:
        """Check the address; `with` starts or connects."""
        self.address, self.workers = address, _local_workers(address)
        if address != "auto" and not self.workers and not ADDRESS.fullmatch(address):
            raise UsageError(f"cluster must be auto, local:N or HOST:PORT, got {address!r}", hint=HINT)
        self._stack = ExitStack()
        self._cluster: Any = None  # of `local:N`
        self._temporary = Path()

    def __enter__(self) -> Session:
        with ExitStack() as stack:
            if self.workers:
                self._start(stack)
            else:
                self._connect(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def nodes(self) -> list[Node]:
        """Return the machines that can be used now."""
        alive = [node for node in load_ray().nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        found = [Node(node["NodeID"], node["NodeManagerAddress"], int(node["Resources"]["CPU"])) for node in alive]
        return sorted(found)

    def restore(self) -> None:
        """Start local workers in place of those that have died; the others suffice where one does not start."""
        if self._cluster is None:
            return
        head, *others = self._cluster.list_all_nodes()
        if _is_dead(head):
            raise SurveyError(
                "the local cluster has stopped: the worker of this process was killed",
                hint="run the same command again",
            )
        for node in others:  # not those that Ray reports as dead: it may notice a death after half a minute
            if _is_dead(node):
                with suppress(Exception):  # Ray raises plain exceptions
                    self._cluster.remove_node(node, allow_graceful=False)
        for _ in range(self.workers - len(self._cluster.list_all_nodes())):
            with suppress(Exception):
                self._cluster.add_node(**self._node_arguments())

    def _start(self, stack: ExitStack) -> None:
        """Start the workers of `local:N` and connect to them."""
        place = tempfile.mkdtemp(prefix="surveyor-ray-")
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        self._temporary = Path(place) / "ray"  # as Ray names the folder inside RAY_TMPDIR
        self._temporary.mkdir()
        stack.enter_context(_variables({**local_variables(), "RAY_TMPDIR": place}))
        ray = load_ray()
        if ray.is_initialized():
            raise UsageError(
                "Ray is already initialised in this process", hint="call ray.shutdown() first, or use auto"
            )
        if import_module("ray._private.ray_constants").ENABLE_RAY_CLUSTER:
            raise UsageError(
                "Ray was imported before, so its workers would listen on all interfaces",
                hint="use local:N before `import ray`, or start a cluster and pass its address",
            )
        cluster = import_module("ray.cluster_utils").Cluster()
        stack.callback(_quietly, cluster.shutdown)
        cluster.add_node(include_dashboard=False, _system_config=HEALTH, **self._node_arguments())
        for _ in range(self.workers - 1):
            cluster.add_node(**self._node_arguments())
        stack.callback(_quietly, ray.shutdown)
        ray.init(
            address=cluster.address,
            _node_ip_address=LOOPBACK,
            logging_level="error",
            log_to_driver=False,
        )
        self._cluster = cluster
        stack.callback(self._forget)

    def _forget(self) -> None:
        self._cluster = None

    def _node_arguments(self) -> dict[str, Any]:
        return {
            "num_cpus": max(1, cores() // self.workers),
            "node_ip_address": LOOPBACK,
            "object_store_memory": STORE,
            "temp_dir": str(self._temporary),
        }

    def _connect(self, stack: ExitStack) -> None:
        ray = load_ray()
        if self.address == "auto" and ray.is_initialized():
            return
        if self.address != "auto":
            _check_reachable(self.address)
        try:
            ray.init(address=self.address, logging_level="error", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, AssertionError) as error:
            problem = (str(error).splitlines() or [type(error).__name__])[0]
            raise UsageError(
                f"no connection to the cluster {self.address}: {problem}",
                hint=f"{HINT}, and set the token of the cluster as RAY_AUTH_TOKEN",
            ) from error
        stack.callback(_quietly, ray.shutdown)


def load_ray() -> Any:
    """Import Ray; if it is missing, raise an error that names the extra."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtra("--cluster", "ray", "ray") from error


@cache
def token() -> str:
    """Return the token of the workers that this process starts; Ray reads it once per process."""
    return secrets.token_hex(32)


def local_variables() -> dict[str, str]:
    """Return the environment variables under which local workers are started."""
    return {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # see the module docstring
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token(),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # by default workers yield to everything else
    }


def _local_workers(address: str) -> int:
    """Return the number of workers of `local:N`, 0 for another address."""
    if not address.startswith("local"):
        return 0
    found = re.fullmatch(r"local:([0-9]{1,4})", address)
    if found is None or not 1 <= int(found[1]) <= MAX_LOCAL:
        raise UsageError(
            f"cluster {address!r} must have a number of workers in [1, {MAX_LOCAL}]", hint="such as local:2"
        )
    return int(found[1])


def _check_reachable(address: str) -> None:
    """Reject an address that nothing listens on; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"no cluster answers at {address}: {error}", hint=HINT) from error


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_dead(node: Any) -> bool:
    """Return whether a process of a local worker has ended; this also waits for it, as it is a child of this one."""
    return bool(node.dead_processes())


def _quietly(stop: Any) -> None:
    """Stop processes that may have died before, without the messages that Ray prints about them."""
    with suppress(Exception), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        stderr, sys.stderr = sys.stderr, nowhere
        try:
            stop()
        finally:
            sys.stderr = stderr

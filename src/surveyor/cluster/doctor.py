"""Check the machines of a cluster: versions, memory, disks, clocks."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from surveyor.cluster.session import Node, Session, load_ray

PACKAGES = ("surveyor", "ray", "numpy", "numba")
PATIENCE = 60.0  # seconds for the answer of a machine
MEMORY, DISK = 1 << 30, 10 << 30  # bytes, less of which are a problem
CLOCK = 2.0  # seconds between clocks, more of which are a problem


@dataclass(frozen=True, slots=True)
class Machine:
    """What one machine reports."""

    address: str
    cpus: int
    versions: dict[str, str]
    memory: int  # bytes available; 0 if unknown
    spill: str  # folder to which objects and shuffles are spilled
    disk: int  # bytes free there
    clock: float  # seconds ahead of this machine
    uncertainty: float  # of that, at most
    readable: bool | None  # whether the folder that was asked for exists there; None if there was none


@dataclass(frozen=True, slots=True)
class Checkup:
    """The machines of a cluster and the problems found."""

    machines: tuple[Machine, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "healthy": not self.problems,
            "machines": [asdict(machine) for machine in self.machines],
            "problems": list(self.problems),
        }


def examine(session: Session, folder: str | None = None, expected: int | None = None) -> Checkup:
    """Check all machines of a session, their number, and whether they can read a folder, if these are given."""
    silent, machines = [], []
    for node in session.nodes():
        try:
            machines.append(_ask(node, folder))
        except load_ray().exceptions.RayError as error:
            silent.append(f"{node.address} does not answer ({type(error).__name__})")
    few = len(machines) if expected is not None and len(machines) < expected else None
    missing = [] if few is None else [f"the cluster has {few} of {expected} machines"]
    return Checkup(tuple(machines), (*silent, *missing, *problems(machines, versions(), folder)))


def problems(machines: list[Machine], here: dict[str, str], folder: str | None = None) -> list[str]:
    """Return the problems that reports show, one sentence each."""
    found = [] if machines else ["no machine of the cluster has a free core"]
    for machine in machines:
        for name, value in here.items():
            other = machine.versions.get(name, "none")
            if other != value:
                found.append(f"{machine.address} has {name} {other}, and this machine {value}")
        if 0 < machine.memory < MEMORY:
            found.append(f"{machine.address} has only {machine.memory / 1e9:.1f} GB of memory available")
        if machine.disk < DISK:
            found.append(f"{machine.address} has only {machine.disk / 1e9:.1f} GB free in {machine.spill}")
        if abs(machine.clock) - machine.uncertainty > CLOCK:
            found.append(f"the clock of {machine.address} differs by {machine.clock:+.1f} s")
        if machine.readable is False:
            found.append(f"{machine.address} cannot read {folder}")
    return found


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that must be equal on all machines."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def report(folder: str | None) -> dict[str, Any]:
    """Return what this machine reports about itself."""
    spill = tempfile.gettempdir()
    return {
        "versions": versions(),
        "memory": available_memory(),
        "spill": spill,
        "disk": shutil.disk_usage(spill).free,
        "time": time.time(),
        "readable": None if folder is None else os.access(folder, os.R_OK),
    }


def available_memory() -> int:
    """Return the available memory in bytes; 0 where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return 0
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(values.get("MemAvailable", "0 kB").split()[0]) * 1024


def _ask(node: Node, folder: str | None) -> Machine:
    """Ask a machine twice, as the first answer waits for the start of a process; compare its clock with ours."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray = load_ray()
    where = NodeAffinitySchedulingStrategy(node.id, soft=False)
    task = ray.remote(report).options(num_cpus=0, scheduling_strategy=where, max_retries=0)
    ray.get(task.remote(folder), timeout=PATIENCE)
    asked = time.time()
    found = ray.get(task.remote(folder), timeout=PATIENCE)
    answered = time.time()
    at = found.pop("time")
    return Machine(
        address=node.address,
        cpus=node.cpus,
        clock=at - (asked + answered) / 2,
        uncertainty=(answered - asked) / 2,
        **found,
    )

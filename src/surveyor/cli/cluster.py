"""`surveyor cluster doctor`: check the machines of a cluster."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command(
    "doctor",
    kernels=False,
    epilog=options.examples(
        "surveyor cluster doctor", "surveyor cluster doctor --cluster 10.0.0.5:6379 --folder web.pieces"
    ),
)
@options.cluster
@options.path("--folder", "DIR", "Also check that all machines can read this folder.")
@options.whole("--machines", 1, "N", "Also check that the cluster has at least N machines.")
def doctor(output: Output, *, cluster: str | None, folder: str | None, machines: int | None) -> int:
    """Check versions, memory, disks and clocks of the machines of a cluster.

    Without --cluster, one worker is started on this machine and checked. The exit code is 1 if there is a problem.
    """
    from pathlib import Path

    from surveyor.cluster.doctor import examine
    from surveyor.cluster.session import Session
    from surveyor.report.numbers import size

    path = None if folder is None else str(Path(folder).resolve())
    with redirect_stdout(sys.stderr), Session(cluster or "local:1") as session:  # Ray prints there
        found = examine(session, path, machines)
    output.object("cluster doctor", found.to_dict())
    for machine in found.machines:
        versions = ", ".join(f"{name} {value}" for name, value in machine.versions.items())
        output.line(f"{machine.address}, {machine.cpus} cores: {versions}")
        clock = f"clock {machine.clock:+.3f} s (within {machine.uncertainty:.3f} s)"
        output.line(f"  {size(machine.memory)} of memory, {size(machine.disk)} free in {machine.spill}, {clock}")
    output.warn(*found.problems)
    output.line("problems found, see above" if found.problems else "no problems found")
    return 1 if found.problems else 0

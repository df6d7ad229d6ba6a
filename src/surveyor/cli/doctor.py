"""`surveyor doctor`: whether everything is here that ranking needs, and whether a survey or graph is undamaged."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

EXTRAS = {
    "formats": ("networkx", "pyarrow", "scipy", "zstandard"),
    "report": ("matplotlib",),
    "frames": ("polars",),
    "sql": ("duckdb",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    value: str
    fine: bool | None = True  # None: not needed
    advice: str = ""


@options.command("doctor")
@click.argument("path", type=click.Path(), metavar="[SURVEY|GRAPH]", required=False)
def command(output: Output, *, path: str | None) -> int:
    """Check Python, packages, memory, the cache of compiled kernels, and one small ranking.

    With SURVEY or GRAPH, read all of that folder instead and verify all checksums; of a damaged journal the last good
    commit is named. The exit code is 1 if something is wrong, and 4 if a folder is damaged.
    """
    findings = list(_examine() if path is None else _examine_folder(Path(path)))
    healthy = all(finding.fine is not False for finding in findings)
    output.object("doctor", {
        "healthy": healthy,
        "findings": [{"name": found.name, "value": found.value, "fine": found.fine} for found in findings],
    })  # fmt: skip
    output.facts({found.name: ("! " if found.fine is False else "") + found.value for found in findings})
    for found in findings:
        if found.advice:
            (output.warn if found.fine is False else output.say)(f"{found.name}: {found.advice}")
    output.line("all is well" if healthy else "something is wrong, see above")
    return 0 if healthy else 1 if path is None else 4


def _examine_folder(path: Path) -> Iterator[Finding]:
    from surveyor.errors import GraphError, UsageError

    if (path / "graph.json").is_file():
        from surveyor.graph.folder import open_folder

        try:
            graph = open_folder(path)
        except GraphError as error:
            yield Finding(path.name, error.problem, fine=False, advice=error.hint)
        else:
            yield Finding(path.name, f"{graph.pages:,} pages and {graph.links:,} links verified")
        return
    if not layout.is_survey(path) and not (path / layout.JOURNAL).is_file():
        kind = "is neither a survey nor a graph folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {kind}", hint="name a folder that `surveyor crawl` or `surveyor graph build` made")
    from surveyor.store.recovery import examine

    for check in examine(path):
        yield Finding(check.name, check.value, check.fine, check.advice)


def _examine() -> Iterator[Finding]:
    from surveyor.cli.compiled import VARIABLE, writable
    from surveyor.kernels.thread_pool import cores
    from surveyor.report.numbers import counted, size

    yield Finding("surveyor", version("surveyor"))
    yield Finding("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    yield Finding("packages", ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "click", "rich")))
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        value = f"not installed: {', '.join(missing)}" if missing else ", ".join(map(_versioned, packages))
        advice = f"pip install 'surveyor[{extra}]' adds it" if missing else ""
        yield Finding(f"extra [{extra}]", value, None if missing else True, advice)
    yield Finding("cores", f"{counted(cores(), 'core')}, all used unless --threads says otherwise")
    memory = _memory()
    yield Finding("memory", "not known" if memory is None else size(memory))
    if VARIABLE in os.environ:
        cache = Path(os.environ[VARIABLE])
        fine = writable(cache)
        yield Finding("kernel cache", str(cache), fine, "" if fine else "every run compiles again")
        kept = sum(1 for _ in cache.rglob("*.nbi"))
        yield Finding("kernels", f"{counted(kept, 'kernel')} compiled" if kept else "none compiled yet")
    yield _self_check()


def _self_check() -> Finding:
    """Rank three pages in a ring: each must get a third."""
    from surveyor.graph.csr import Graph
    from surveyor.rank.pagerank import pagerank
    from surveyor.report.numbers import at_most, duration

    began = time.perf_counter()
    ranking = pagerank(Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a")]), tolerance=1e-9)
    off = float(abs(ranking.scores - 1 / 3).sum())
    took = duration(time.perf_counter() - began)
    if off <= ranking.error + 1e-12:
        return Finding("self-check", f"a ring of three pages is ranked 1/3 each ({took})")
    return Finding(
        "self-check",
        f"a ring of three pages is off by {at_most(off)}",
        fine=False,
        advice="install surveyor again",
    )


def _versioned(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None

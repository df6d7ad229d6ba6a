"""`surveyor doctor` and `surveyor completion`: check the installation, a survey or a graph; complete in a shell."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.cli.lazy import SETTINGS, surveyor
from surveyor.store import layout
from surveyor.store.recovery import Check, examine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.cli.output import Output

EXTRAS = {
    "formats": ("networkx", "pyarrow", "scipy", "zstandard"),
    "report": ("matplotlib",),
    "frames": ("polars",),
    "sql": ("duckdb",),
    "ray": ("ray",),
}


@options.command("doctor", kernels=False)
@click.argument("path", type=click.Path(), metavar="[SURVEY|GRAPH]", required=False)
@options.flag("--compile", "Compile all kernels now, which takes minutes: for container images.")
def command(output: Output, *, path: str | None, compile: bool) -> int:  # noqa: A002
    """Check Python, packages, memory, the cache of compiled kernels, and one small ranking.

    With SURVEY or GRAPH, read that folder completely and verify all checksums instead; for a damaged journal the last
    good commit is reported. The exit code is 1 if a check of the installation fails, and 4 if a folder is damaged.
    """
    from surveyor.cli.kernel_cache import kernels

    if compile:
        if path is not None:
            raise click.UsageError("--compile takes no SURVEY or GRAPH.", click.get_current_context())
        return _compile(output)
    with kernels(output):
        return _check(output, path)


def _compile(output: Output) -> int:
    """Compile all kernels; print their number, size and time."""
    from surveyor.cli.compile_kernels import all_kernels, compile_all
    from surveyor.errors import UsageError
    from surveyor.kernels._cache import VARIABLE, cache_folder
    from surveyor.report.numbers import count, duration, size

    folder = cache_folder()
    if folder.path is None:
        hint = f"free space, or set a folder with {VARIABLE}"
        raise UsageError(
            f"compiled kernels can be saved neither in {folder.wanted} nor in a temporary folder", hint=hint
        )
    with output.timed() as seconds, output.progress() as meter:
        ready = compile_all(meter)
    bytes_ = sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())
    every = len(all_kernels())
    found = {"kernels": ready, "all_kernels": every, "bytes": bytes_, "seconds": round(seconds[0], 1)}
    output.object("doctor", {"compiled": {"folder": str(folder.path), **found}})
    output.summary(
        {
            "kernels": f"{count(ready)} of {count(every)} compiled; the others when they are first needed",
            "size": size(bytes_),
            "time": duration(seconds[0]),
            "folder": str(folder.path),
        }
    )
    return 0


def _check(output: Output, path: str | None) -> int:
    """Check the installation or a folder, and print what was found."""
    checks = list(_check_installation() if path is None else _check_folder(Path(path)))
    healthy = all(check.fine is not False for check in checks)
    rows = [{"name": check.name, "value": check.value, "fine": check.fine} for check in checks]
    output.object("doctor", {"healthy": healthy, "checks": rows})
    output.facts({check.name: ("! " if check.fine is False else "") + check.value for check in checks})
    for check in checks:
        if check.advice:
            (output.warn if check.fine is False else output.info)(f"{check.name}: {check.advice}")
    output.line("no problems found" if healthy else "problems found, see above")
    return 0 if healthy else 1 if path is None else 4


def _check_folder(path: Path) -> Iterator[Check]:
    from surveyor.errors import GraphError, UsageError
    from surveyor.graph.folder import open_folder
    from surveyor.graph.pieces.folder import is_pieces, open_pieces

    if (whole := (path / "graph.json").is_file()) or is_pieces(path):
        try:
            graph = open_folder(path) if whole else open_pieces(path)
        except GraphError as error:
            yield Check(path.name, error.problem, fine=False, advice=error.hint)
        else:
            yield Check(path.name, f"{graph.pages:,} pages and {graph.links:,} links verified")
        return
    if not layout.is_survey(path) and not (path / layout.JOURNAL).is_file():
        kind = "is neither a survey nor a graph folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {kind}", hint="name a folder created by `surveyor crawl` or `surveyor graph build`")
    yield from examine(path)


def _check_installation() -> Iterator[Check]:
    from surveyor.kernels._cache import VARIABLE, cache_folder
    from surveyor.kernels.thread_pool import cores
    from surveyor.report.numbers import counted, size

    yield Check("surveyor", version("surveyor"))
    yield Check("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    yield Check("packages", ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "click", "rich")))
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        value = f"not installed: {', '.join(missing)}" if missing else ", ".join(map(_versioned, packages))
        advice = f"pip install 'surveyor[{extra}]' adds it" if missing else ""
        yield Check(f"extra [{extra}]", value, None if missing else True, advice)
    yield Check("cores", f"{counted(cores(), 'core')}, all used by default, see --threads")
    memory = _memory()
    yield Check("memory", "unknown" if memory is None else size(memory))
    cache = cache_folder().path
    if cache is None:
        advice = f"set a folder with room in {VARIABLE}, or every run compiles again"
        yield Check("kernel cache", f"{cache_folder().wanted} cannot be written or is full", fine=False, advice=advice)
    else:
        yield Check("kernel cache", str(cache))
        compiled = sum(1 for _ in cache.rglob("*.nbi"))
        yield Check("kernels", f"{counted(compiled, 'kernel')} compiled" if compiled else "none compiled yet")
    yield _self_check()


def _self_check() -> Check:
    """Rank three pages in a ring; each must have a share of 1/3."""
    from surveyor.graph.csr import Graph
    from surveyor.rank.pagerank import pagerank
    from surveyor.report.numbers import at_most, duration

    began = time.perf_counter()
    ranking = pagerank(Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a")]), tolerance=1e-9)
    error = float(abs(ranking.scores - 1 / 3).sum())
    took = duration(time.perf_counter() - began)
    if error <= ranking.error + 1e-12:
        return Check("self-check", f"a ring of three pages is ranked 1/3 each ({took})")
    return Check(
        "self-check",
        f"a ring of three pages has an error of {at_most(error)}",
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


@click.command(
    "completion",
    context_settings=SETTINGS,
    epilog="\b\n"
    "surveyor completion bash > ~/.local/share/bash-completion/completions/surveyor\n"
    "surveyor completion fish > ~/.config/fish/completions/surveyor.fish\n"
    "surveyor completion zsh > ~/.zfunc/_surveyor    (any folder of $fpath)",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None, "click supports the three shells"  # noqa: S101
    sys.stdout.write(script(surveyor, {}, "surveyor", "_SURVEYOR_COMPLETE").source() + "\n")

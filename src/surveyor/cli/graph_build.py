"""`surveyor graph build`: a file of links, or a made-up web, becomes a graph folder."""

from __future__ import annotations

import os
import shutil
import sys
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.graph.csr import Graph
    from surveyor.stopping import ProgressCallback

MADE_UP = "synthetic:"
FOR_FILES = ("nodes", "format", "strict")


@options.command(
    "build",
    epilog=options.examples(
        "surveyor graph build links.txt.gz my.graph", "surveyor graph build synthetic:small web.graph --rng 7"
    ),
)
@click.argument("source", metavar="SOURCE")
@click.argument("dest", type=click.Path(), metavar="DEST")
@options.format_option("--format", "SOURCE")
@click.option("--nodes", type=options.Amount(), metavar="N", help="Number of pages.  [largest id + 1]")
@click.option("--strict", is_flag=True, help="Stop at the first malformed line.")
@click.option(
    "--memory",
    type=options.Amount(),
    default="1GB",
    show_default=True,
    help="Memory for links; the rest goes to disk.",
)
@click.option("--replace", is_flag=True, help="Replace DEST if it is a graph.")
@click.option("--links", type=options.Amount(), help="Links of a synthetic web.  [of its preset]")
@click.option("--rng", type=options.Whole(0), help="Seed of a synthetic web.  [7]")
@options.threads
def command(
    output: Output,
    *,
    source: str,
    dest: str,
    links: int | None,
    rng: int | None,
    replace: bool,
    **settings: Any,
) -> None:
    """Turn SOURCE into the graph folder DEST.

    SOURCE is a file of links in any format surveyor reads, a survey, or `synthetic:PRESET` for a made-up web. Repeated
    links merge and self-links are dropped; both are counted, as are lines that cannot be read.
    """
    from surveyor.errors import UsageError

    clear_drafts(output, Path(dest))
    with output.progress() as progress, output.timed() as seconds:
        if source.startswith(MADE_UP):
            if any(settings[name] for name in FOR_FILES):
                raise UsageError("--nodes, --format and --strict are for files of links", hint="leave them out")
            preset, seed = source.removeprefix(MADE_UP), 7 if rng is None else rng
            graph = make_web(preset, dest, links=links, rng=seed, replace=replace, progress=progress)
        elif layout.is_survey(source):
            graph = from_survey(source, dest, replace=replace)
        elif links is not None or rng is not None:
            raise UsageError("--links and --rng are for synthetic webs", hint="leave them out, or give synthetic:small")
        else:
            from surveyor.graph.formats import build_graph

            graph = build_graph(source, dest, replace=replace, progress=progress, **settings)
    _report(output, graph, dest, seconds[0])


def make_web(
    preset: str, dest: str, *, links: int | None = None, rng: int, replace: bool, progress: ProgressCallback
) -> Graph:
    """Write a made-up web to a graph folder: as a stream, or through memory where one must be replaced."""
    from surveyor.graph.folder import check_free
    from surveyor.graph.synthetic.generate import synthetic_web

    folder = Path(dest)
    check_free(folder, replace=replace)
    if not folder.exists():
        return synthetic_web(preset, links=links, rng=rng, folder=folder, progress=progress).graph
    graph = synthetic_web(preset, links=links, rng=rng, progress=progress).graph
    graph.save(folder, replace=True)
    return graph


def from_survey(source: str, dest: str, *, replace: bool) -> Graph:
    """Write the links of a survey to a graph folder; repeated links, which aliases make, are merged there."""
    import numpy as np

    from surveyor.graph.csr import Graph
    from surveyor.graph.folder import check_free
    from surveyor.survey.survey import Survey

    check_free(Path(dest), replace=replace)
    with Survey(source) as survey:
        many = survey.graph()
    graph = Graph.from_arrays(np.repeat(np.arange(many.pages), np.diff(many.indptr)), many.indices, many.pages)
    graph = Graph(
        graph.indptr, graph.indices, names=many.names, provenance={"source": source, "links_read": many.links}
    )
    graph.save(Path(dest), replace=replace)
    return graph


def clear_drafts(output: Output, folder: Path) -> None:
    """Remove what builds of the same folder left behind when they were killed; nothing that may be another's."""
    from surveyor.graph.folder import ARRAYS, NAME_FILES

    for draft in folder.parent.glob(f"{escape(folder.name)}.draft-*"):
        pid = draft.name.rpartition("-")[2]
        if not (pid.isdecimal() and draft.is_dir()) or _alive(int(pid)):
            continue
        if {path.name for path in draft.iterdir()} <= {*ARRAYS, *NAME_FILES}:
            shutil.rmtree(draft, ignore_errors=True)
            output.info(f"removed {draft}, left by a build that was killed")


def _alive(pid: int) -> bool:
    if sys.platform == "win32":  # there os.kill ends a process, whatever the signal
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _report(output: Output, graph: Graph, dest: str, seconds: float) -> None:
    from surveyor.report.graphs import built

    output.object("graph build", {
        "graph": dest, "pages": graph.pages, "links": graph.links, "named": graph.names is not None,
        "provenance": dict(graph.provenance), "seconds": round(seconds, 3),
    })  # fmt: skip
    output.summary({"graph": dest, **built(graph, seconds)})
    output.graph_notes(graph)
    output.next_steps({
        "rank it": ["surveyor", "rank", dest],
        "look at it": ["surveyor", "graph", "info", dest],
    })  # fmt: skip

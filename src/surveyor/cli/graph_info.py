"""`surveyor graph info`: what a graph holds and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command("info", kernels=False)
@options.graph_argument
@click.option("--verify", is_flag=True, help="Read every file and compare checksums.")
def command(output: Output, *, graph: str, verify: bool) -> None:
    """Show pages, links, degrees, size and origin of GRAPH, a graph folder or any file of links."""
    from surveyor.graph.csr import Graph
    from surveyor.report.graphs import described, facts

    path = Path(graph)
    with output.progress() as progress:
        if (path / "graph.json").is_file():
            opened = Graph.open(path, verify=verify)
        else:
            from surveyor.cli.kernel_cache import kernels

            with kernels(output):
                from surveyor.graph.formats import read_graph

                with options.format_means("`surveyor graph build --format`"):
                    opened = read_graph(path, progress=progress)
    told = facts(opened, path)
    output.object("graph info", {"graph": graph, "verified": verify, **told})
    output.facts(
        {
            "graph": graph,
            **described(told),
            **({"checksums": "all match"} if verify and path.is_dir() else {}),
        }
    )

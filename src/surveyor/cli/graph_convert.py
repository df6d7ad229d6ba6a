"""`surveyor graph convert`: the same graph in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command("convert", epilog=options.examples("surveyor graph convert my.graph links.csv.gz"))
@click.argument("source", type=click.Path(), metavar="SOURCE")
@click.argument("dest", type=click.Path(), metavar="DEST")
@options.format_option("--format-in", "SOURCE")
@options.format_option("--format-out", "DEST")
@click.option("--replace", is_flag=True, help="Write over DEST if it exists.")
@options.threads
def command(
    output: Output,
    *,
    source: str,
    dest: str,
    format_in: str | None,
    format_out: str | None,
    replace: bool,
    threads: int | None,
) -> None:
    """Read SOURCE, a graph folder or any file of links, and write DEST."""
    from surveyor.errors import UsageError
    from surveyor.graph.formats import read_graph, write_graph
    from surveyor.report.numbers import count, duration

    if Path(dest).exists() and not replace:
        raise UsageError(f"{dest} exists already", hint="choose another name, or write over it with --replace")
    with output.progress() as progress, output.timed() as seconds:
        with options.format_means("--format-in"):
            graph = read_graph(source, format=format_in, threads=threads, progress=progress)
        with options.format_means("--format-out"):
            write_graph(graph, dest, format=format_out)
    output.object("graph convert", {
        "source": source, "graph": dest, "pages": graph.pages, "links": graph.links,
        "seconds": round(seconds[0], 3),
    })  # fmt: skip
    output.summary(
        {
            "written": dest,
            "pages": count(graph.pages),
            "links": count(graph.links),
            "time": duration(seconds[0]),
        }
    )
    output.graph_notes(graph)

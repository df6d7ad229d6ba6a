"""`surveyor graph`: build, inspect, convert and condense link graphs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.errors import UsageError
from surveyor.store import layout

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.graph.condense import CondensedGraph, CondenseOptions
    from surveyor.graph.csr import Graph
    from surveyor.stopping import ProgressCallback

SYNTHETIC = "synthetic:"
FOR_FILES = ("nodes", "input_format", "strict")
RNG = 7
BUILD_FORMAT = "`surveyor graph build --input-format`"

memory_option = click.option(
    "--memory", type=options.Amount(), default="1GB", help="Memory for links; the rest is stored on disk."
)
replace_option = options.flag("--replace", "Replace DEST if it is a graph.")
dest_argument = click.argument("dest", type=click.Path(), metavar="DEST")


@options.command(
    "build",
    epilog=options.examples(
        "surveyor graph build links.txt.gz my.graph", "surveyor graph build synthetic:small web.graph --rng 7"
    ),
)
@click.argument("source", metavar="SOURCE")
@dest_argument
@options.format_option("--input-format", "SOURCE")
@click.option("--nodes", type=options.Amount(), metavar="N", help="Number of pages.  [largest id + 1]")
@options.flag("--strict", "Stop at the first malformed line.")
@memory_option
@replace_option
@click.option("--links", type=options.Amount(), help="Links of a synthetic web.  [set by the preset]")
@click.option("--rng", type=options.Whole(0), help="Random seed of a synthetic web.  [7]")
@options.threads
@options.whole("--pieces", 1, "P", "Build a graph in P pieces.  [one graph folder]")
@options.cluster
def build(
    output: Output, *, source: str, dest: str, links: int | None, rng: int | None, pieces: int | None, **given: Any
) -> None:
    """Build the graph folder DEST from SOURCE.

    SOURCE is a file of links in any supported format, a survey, or `synthetic:PRESET` for a synthetic web. Duplicate
    links are merged and self-links dropped; both are counted, as are malformed lines.
    """
    if pieces is not None:
        _build_pieces(output, source, dest, pieces, {**given, "links": links, "rng": rng})
        return
    if given.pop("cluster"):
        raise UsageError("--cluster needs a graph in pieces", hint="add --pieces P, such as --pieces 8")
    clear_drafts(output, Path(dest))
    with output.progress() as progress, output.timed() as seconds:
        if source.startswith(SYNTHETIC):
            if any(given[name] for name in FOR_FILES):
                raise UsageError("--nodes, --input-format and --strict apply to files of links", hint="omit them")
            seed = RNG if rng is None else rng
            graph = _synthetic(source, dest, links=links, rng=seed, replace=given["replace"], progress=progress)
        elif layout.is_survey(source):
            graph = _from_survey(source, dest, replace=given["replace"])
        elif links is not None or rng is not None:
            raise UsageError("--links and --rng apply to synthetic webs", hint="omit them, or pass synthetic:small")
        else:
            from surveyor.graph.formats import build_graph

            given["format"] = given.pop("input_format")
            graph = build_graph(source, dest, progress=progress, **given)
    _report_built(output, graph, dest, seconds[0])


def _build_pieces(output: Output, source: str, dest: str, pieces: int, given: dict[str, Any]) -> None:
    """Build a graph in pieces: directly from a file, from the graph of a survey, or from a synthetic web on disk."""
    from surveyor.cli import pieces as commands
    from surveyor.graph.pieces.write import check_free

    check_free(Path(dest), replace=given["replace"])
    if source.startswith(SYNTHETIC):
        with tempfile.TemporaryDirectory(prefix="surveyor-", dir=Path(dest).absolute().parent) as folder:
            whole, rng = str(Path(folder) / "graph"), RNG if given["rng"] is None else given["rng"]
            with output.progress() as progress:
                graph = _synthetic(source, whole, links=given["links"], rng=rng, replace=False, progress=progress)
            commands.split_opened(output, graph, dest, pieces, given)
    elif layout.is_survey(source):
        commands.split_opened(output, _survey_graph(source), dest, pieces, given)
    else:
        commands.build(output, source, dest, pieces, given)


def _synthetic(
    source: str, dest: str, *, links: int | None, rng: int, replace: bool, progress: ProgressCallback
) -> Graph:
    """Write a synthetic web to a graph folder: as a stream, or through memory where a graph must be replaced."""
    from surveyor.graph.folder import check_free
    from surveyor.graph.synthetic.generate import synthetic_web

    folder, preset = Path(dest), source.removeprefix(SYNTHETIC)
    check_free(folder, replace=replace)
    if not folder.exists():
        return synthetic_web(preset, links=links, rng=rng, folder=folder, progress=progress).graph
    graph = synthetic_web(preset, links=links, rng=rng, progress=progress).graph
    graph.save(folder, replace=True)
    return graph


def _from_survey(source: str, dest: str, *, replace: bool) -> Graph:
    """Write the links of a survey to a graph folder."""
    from surveyor.graph.folder import check_free

    check_free(Path(dest), replace=replace)
    graph = _survey_graph(source)
    graph.save(Path(dest), replace=replace)
    return graph


def _survey_graph(source: str) -> Graph:
    """Return the graph of a survey; duplicate links, which redirects produce, are merged."""
    import numpy as np

    from surveyor.graph.csr import Graph
    from surveyor.survey.survey import Survey

    with Survey(source) as survey:
        multigraph = survey.graph()
    pages = multigraph.pages
    graph = Graph.from_arrays(np.repeat(np.arange(pages), np.diff(multigraph.indptr)), multigraph.indices, pages)
    provenance = {"source": source, "links_read": multigraph.links}
    return Graph(graph.indptr, graph.indices, names=multigraph.names, provenance=provenance)


def clear_drafts(output: Output, folder: Path) -> None:
    """Remove drafts of the same folder left by builds that were killed; keep drafts of running processes."""
    from surveyor.graph.folder import ARRAYS, NAME_FILES

    for draft in folder.parent.glob(f"{escape(folder.name)}.draft-*"):
        pid = draft.name.rpartition("-")[2]
        if not (pid.isdecimal() and draft.is_dir()) or is_alive(int(pid)):
            continue
        if {path.name for path in draft.iterdir()} <= {*ARRAYS, *NAME_FILES}:
            shutil.rmtree(draft, ignore_errors=True)
            output.info(f"removed {draft}, left by a build that was killed")


def is_alive(pid: int) -> bool:
    """Return whether a process exists."""
    if sys.platform == "win32":  # os.kill would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _report_built(output: Output, graph: Graph, dest: str, seconds: float) -> None:
    from surveyor.report.graphs import built

    fields = {
        "graph": dest,
        "pages": graph.pages,
        "links": graph.links,
        "named": graph.names is not None,
        "provenance": dict(graph.provenance),
        "seconds": round(seconds, 3),
    }
    output.object("graph build", fields)
    output.summary({"graph": dest, **built(graph, seconds)})
    output.graph_notes(graph)
    output.next_steps({"rank it": ["surveyor", "rank", dest], "inspect it": ["surveyor", "graph", "info", dest]})


@options.command("info", kernels=False)
@options.graph_argument
@options.flag("--verify", "Read every file and compare checksums.")
def info(output: Output, *, graph: str, verify: bool) -> None:
    """Show pages, links, degrees, size and source of a graph folder, a graph in pieces or a file of links."""
    from surveyor.graph.csr import Graph
    from surveyor.graph.pieces.folder import is_pieces
    from surveyor.report.graphs import described, facts

    path = Path(graph)
    if is_pieces(path):
        from surveyor.cli import pieces

        pieces.info(output, graph, verify=verify)
        return
    with output.progress() as progress:
        if (path / "graph.json").is_file():
            opened = Graph.open(path, verify=verify)
        else:
            from surveyor.cli.kernel_cache import kernels

            with kernels(output):
                from surveyor.graph.formats import read_graph

                with options.input_format_hint(BUILD_FORMAT):
                    opened = read_graph(path, progress=progress)
    found = facts(opened, path)
    output.object("graph info", {"graph": graph, "verified": verify, **found})
    checked = {"checksums": "all match"} if verify and path.is_dir() else {}
    output.facts({"graph": graph, **described(found), **checked})


@options.command("convert", epilog=options.examples("surveyor graph convert my.graph links.csv.gz"))
@click.argument("source", type=click.Path(), metavar="SOURCE")
@dest_argument
@options.format_option("--input-format", "SOURCE")
@options.format_option("--format", "DEST")
@options.flag("--replace", "Overwrite DEST if it exists.")
@options.threads
def convert(output: Output, *, source: str, dest: str, replace: bool, threads: int | None, **formats: Any) -> None:
    """Convert SOURCE, a graph folder or file of links, to DEST."""
    from surveyor.graph.formats import read_graph, write_graph
    from surveyor.report.numbers import count, duration

    if Path(dest).exists() and not replace:
        raise UsageError(f"{dest} already exists", hint="choose another name, or overwrite it with --replace")
    with output.progress() as progress, output.timed() as seconds:
        with options.input_format_hint("--input-format"):
            graph = read_graph(source, format=formats["input_format"], threads=threads, progress=progress)
        write_graph(graph, dest, format=formats["format"])
    fields = {"source": source, "graph": dest, "pages": graph.pages, "links": graph.links}
    output.object("graph convert", {**fields, "seconds": round(seconds[0], 3)})
    sizes = {"pages": count(graph.pages), "links": count(graph.links)}
    output.summary({"written": dest, **sizes, "time": duration(seconds[0])})
    output.graph_notes(graph)


@options.command(
    "condense",
    epilog=options.examples(
        "surveyor graph condense pages.graph domains.graph",
        "surveyor graph condense docs.example.org.survey hosts.graph --level hosts",
        "surveyor graph condense pages.pieces domains.pieces --cluster local:2",
    ),
)
@click.argument("source", type=click.Path(), metavar="GRAPH|SURVEY")
@dest_argument
@options.choice("--level", ("domains", "hosts"), "Nodes of the new graph.", default="domains")
@options.path("--suffixes", "FILE", "Public Suffix List to use instead of the bundled one.")
@options.flag(
    "--private-suffixes", "Also use the private section, so that names under github.io etc. are separate domains."
)
@options.flag("--nofollow", "Also count nofollow links of a survey.")
@options.whole("--pieces", 1, "P", "Pieces of DEST, if GRAPH is in pieces.  [as many as GRAPH has]")
@memory_option
@replace_option
@options.cluster
def condense(output: Output, *, source: str, dest: str, nofollow: bool, **given: Any) -> None:
    """Write the graph of the hosts or domains of GRAPH or SURVEY to the graph folder DEST.

    The pages need URLs or host names as names. Host or domain x links to y if some page of x links to a
    page of y. Domains are registrable domains by the ICANN section of the Public Suffix List. Out-of-scope links of a
    survey count, and a redirect counts as its target. The graph of a graph in pieces is in pieces.
    """
    from surveyor.cli import domain_pieces
    from surveyor.cli.graph_source import check_cluster, is_survey
    from surveyor.graph.condense import condense as condense_graph
    from surveyor.graph.folder import check_free
    from surveyor.graph.pieces.folder import is_pieces
    from surveyor.survey.survey import Survey
    from surveyor.web.suffixes import Suffixes

    survey, level, private = is_survey(source), given["level"], given["private_suffixes"]
    if nofollow and not survey:
        raise UsageError(f"--nofollow applies to surveys, and {source} is not a survey", hint="omit --nofollow")
    if level == "hosts" and (given["suffixes"] or private):
        raise UsageError(
            "--level hosts uses no public suffixes",
            hint="omit --suffixes and --private-suffixes, or choose --level domains",
        )
    if is_pieces(source):
        domain_pieces.condense(output, source, dest, given)
        return
    check_cluster(source, given["cluster"])
    if given["pieces"] is not None:
        raise UsageError(
            f"--pieces needs a graph in pieces, and {source} is not one",
            hint="condense it, then split the result with `surveyor graph split`",
        )
    check_free(Path(dest), replace=given["replace"])
    clear_drafts(output, Path(dest))
    suffixes = Suffixes(private=private, file=given["suffixes"]) if level == "domains" else None
    with output.progress() as progress, output.timed() as seconds:
        if survey:
            with Survey(source) as opened:
                condensed = opened.domain_graph(level, suffixes, nofollow=nofollow, progress=progress)
            condensed.graph.save(dest, replace=given["replace"])
        else:
            graph = _named_graph(source, progress)
            target: CondenseOptions = {"suffixes": suffixes, "folder": dest}
            target |= {"memory": given["memory"], "replace": given["replace"]}
            condensed = condense_graph(graph, level, progress=progress, **target)
    _report_condensed(output, condensed, dest, seconds[0])


def _named_graph(source: str, progress: ProgressCallback) -> Graph:
    from surveyor.graph.formats import read_graph

    with options.input_format_hint(BUILD_FORMAT):
        graph = read_graph(source, progress=progress)
    if graph.names is None:
        raise UsageError(
            f"{source} has no names, so the hosts of its pages are unknown",
            hint="build it from links between URLs or host names",
        )
    return graph


def _report_condensed(output: Output, condensed: CondensedGraph, dest: str, seconds: float) -> None:
    from surveyor.report.graphs import condensed_facts, condensed_warnings

    fields = {"graph": dest, "level": condensed.level, **condensed.to_dict(), "seconds": round(seconds, 3)}
    output.object("graph condense", fields)
    output.summary({"graph": dest, **condensed_facts(condensed, seconds)})
    output.warn(*condensed_warnings(condensed))
    output.graph_notes(condensed.graph)
    steps = {"domain reputation": ["surveyor", "domains", dest], "inspect it": ["surveyor", "graph", "info", dest]}
    output.next_steps(steps)

"""`surveyor graph split`, and the other commands for graphs in pieces."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack, redirect_stdout
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.options import current_command
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.cli.rank import RankingOptions
    from surveyor.graph.csr import Graph
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.graph.pieces.write import WriteOptions
    from surveyor.rank.pieces.ranking import PiecesRanking

PIECES = 8


@options.command(
    "split",
    epilog=options.examples(
        "surveyor graph split web.graph web.pieces --pieces 16", "surveyor rank web.pieces --cluster local:2"
    ),
)
@options.graph_argument
@click.argument("dest", type=click.Path(), metavar="PIECES")
@options.whole("--pieces", 1, "P", "Number of pieces, at least one per core of all machines.", default=PIECES)
@click.option("--memory", type=options.Amount(), default="1GB", help="Memory for links; the rest is stored on disk.")
@options.flag("--replace", "Replace PIECES if it is a graph in pieces.")
@options.threads
@options.cluster
def split(output: Output, *, graph: str, dest: str, pieces: int, **given: Any) -> None:
    """Split GRAPH or SURVEY into the folder PIECES, for ranking on several machines or beyond the memory of one.

    All pages of a host are in one piece. Results depend on the number of pieces (as sums are in their order), never on
    the number of machines.
    """
    from surveyor.cli.graph_source import open_graph
    from surveyor.graph.pieces.write import check_free

    check_free(Path(dest), replace=given["replace"])
    split_opened(output, open_graph(output, graph, given["threads"]), dest, pieces, given, command="graph split")


def split_opened(
    output: Output, graph: Graph, dest: str, pieces: int, given: dict[str, Any], *, command: str = "graph build"
) -> None:
    """Split a graph and print the counts."""
    from surveyor.cluster.executors import executors
    from surveyor.graph.pieces.split import split_graph

    clear_drafts(output, Path(dest))
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))  # Ray prints there
        progress, seconds = stack.enter_context(output.progress()), stack.enter_context(output.timed())
        executor = stack.enter_context(executors(given["cluster"]))
        made = split_graph(graph, dest, pieces, _write_options(given, progress), executor=executor)
    report_pieces(output, command, made, dest, seconds[0])


def clear_drafts(output: Output, folder: Path) -> None:
    """Remove drafts of the same folder left by commands that were killed; keep drafts of running processes."""
    from surveyor.cli.graph import is_alive

    for draft in folder.parent.glob(f"{escape(folder.name)}.draft-*"):
        pid = draft.name.rpartition("-")[2]
        if not (pid.isdecimal() and draft.is_dir()) or is_alive(int(pid)):
            continue
        parts = [path for path in draft.iterdir() if path.name != "pieces.json"]
        if all(path.name.partition(".")[0].isdecimal() and path.is_dir() for path in parts):
            shutil.rmtree(draft, ignore_errors=True)
            output.info(f"removed {draft}, left by a command that was killed")


def _write_options(given: dict[str, Any], progress: Any) -> WriteOptions:
    from surveyor.graph.pieces.write import WriteOptions

    return WriteOptions(given["memory"], given["threads"], given["replace"], progress)


def build(output: Output, source: str, dest: str, pieces: int, given: dict[str, Any]) -> None:
    """Build a folder of pieces from a file of links."""
    from surveyor.cluster.building import build_pieces
    from surveyor.graph.formats.intake import ReadOptions

    clear_drafts(output, Path(dest))
    with redirect_stdout(sys.stderr), output.progress() as progress, output.timed() as seconds:  # Ray prints there
        reading = ReadOptions(given["nodes"], given["strict"], given["memory"], given["threads"])
        more: dict[str, Any] = {"format": given["input_format"], "cluster": given["cluster"]}
        made = build_pieces(source, dest, pieces, reading, options=_write_options(given, progress), **more)
    report_pieces(output, "graph build", made, dest, seconds[0])


def report_pieces(output: Output, command: str, pieces: Pieces, dest: str, seconds: float) -> None:
    """Print the counts of a folder of pieces that was written."""
    from surveyor.report.numbers import duration
    from surveyor.report.pieces import described, facts

    found = facts(pieces)
    output.object(command, {"graph": dest, **found, "seconds": round(seconds, 3)})
    output.summary({"graph": dest, **described(found), "time": duration(seconds)})
    output.graph_notes(pieces)
    local = ["surveyor", "rank", dest, "--cluster", "local:2"]
    output.next_steps({"rank it": ["surveyor", "rank", dest], "with two processes": local})


def info(output: Output, graph: str, *, verify: bool) -> None:
    """Print the counts of a folder of pieces."""
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.report.pieces import described, facts

    found = facts(Pieces.open(graph, verify=verify))
    output.object("graph info", {"graph": graph, "verified": verify, **found})
    output.facts({"graph": graph, **described(found), **({"checksums": "all match"} if verify else {})})


def rank(
    output: Output,
    path: str,
    chosen: RankingOptions,
    *,
    cluster: str | None,
    checkpoints: str | None,
    top: int,
    out: str | None,
) -> int:
    """Rank a folder of pieces and print the best pages; return the exit code."""
    from surveyor.cli.graph_source import weighted_pages_of_pieces
    from surveyor.cluster.ranking import rank_pieces
    from surveyor.errors import NotConverged
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.rank.pieces.ranking import PieceOptions
    from surveyor.report.pieces import check_suffix, write_ranks

    _check(path, chosen)
    if out:
        check_suffix(out)
    pieces = Pieces.open(path)
    teleport = weighted_pages_of_pieces(output, pieces, chosen.trusted) if chosen.trusted else None
    problem = None
    with redirect_stdout(sys.stderr), output.progress() as progress, output.timed() as seconds:  # Ray prints there
        try:
            ranking: PiecesRanking = rank_pieces(
                pieces,
                0.85 if chosen.damping is None else chosen.damping,
                chosen.tolerance,
                teleport,
                dangling=chosen.dangling,
                cluster=cluster,
                options=PieceOptions(
                    max_sweeps=chosen.max_sweeps, threads=chosen.threads, progress=progress, checkpoints=checkpoints
                ),
            )
        except NotConverged as error:
            ranking, problem = error.best, error
    _print(output, path, ranking, problem, seconds[0], top, cluster)
    if out:
        write_ranks(ranking, out)
        output.info(f"ranks written to {out}")
    elif top:
        output.next_steps({"save all ranks": current_command("--out", "ranks.parquet")})
    return problem.exit_code if problem else 0


def _check(path: str, chosen: RankingOptions) -> None:
    refused = {
        "--warm-start": chosen.warm_start,
        "--crawled-only": chosen.crawled_only,
        "--teleport seeds": chosen.teleport == "seeds",
    }
    for name in (name for name, given in refused.items() if given):
        raise UsageError(f"{name} does not apply to {path}, a graph in pieces", hint=f"omit {name}")


def _print(
    output: Output,
    path: str,
    ranking: PiecesRanking,
    problem: Any,
    seconds: float,
    top: int,
    cluster: str | None,
) -> None:
    from surveyor.report.numbers import at_most, counted, duration, tiny
    from surveyor.report.pieces import near_ties, top_pages
    from surveyor.report.ranking import order_line, page_table

    pages, ties, pieces = top_pages(ranking, top), near_ties(ranking, top), ranking.pieces
    parameters = ("damping", "tolerance", "teleport", "dangling", "solver", "error", "sweeps", "recoveries")
    found = {name: getattr(ranking, name) for name in parameters}
    sizes = {"path": path, "pages": pieces.pages, "links": pieces.links, "pieces": len(pieces)}
    more = {"reached": problem is None, "seconds": round(seconds, 4), "cluster": cluster}
    rows = {"near_ties": ties, "pages": [page.to_dict() for page in pages]}
    output.object("rank", {"graph": sizes, "ranking": {**found, **more}, **rows})
    if pages or output.mode == "csv":
        output.table(page_table(pages))
        output.line()
    size = f"{counted(pieces.pages, 'page')}, {counted(pieces.links, 'link')} in {counted(len(pieces), 'piece')}"
    output.line(f"{size}; proven error at most {at_most(ranking.error)} in total")
    output.line(f"{order_line(ties)}; score: 0-100, log scale, this graph only")
    lost = f", {counted(ranking.recoveries, 'recovery', 'recoveries')} from lost workers" if ranking.recoveries else ""
    output.info(f"{counted(ranking.sweeps, 'sweep')}, {duration(seconds)}{lost}")
    if problem:
        output.warn(f"the proven error is {at_most(ranking.error)}, above the tolerance {tiny(ranking.tolerance)}.")
        output.info("  hint: raise --max-sweeps or --tolerance; the list is correct within its proven error")

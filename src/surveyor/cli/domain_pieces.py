"""`surveyor domains` and `surveyor graph condense` over a graph in pieces."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.cli.domains import Options
    from surveyor.cli.output import Output
    from surveyor.cluster.session import Machines
    from surveyor.crawler.budgets import Plan
    from surveyor.graph.pieces.condense import CondensedPieces
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.rank.bad_domains import Labels
    from surveyor.report.domain_scores import DomainReport

CHECKED_NAMES = 100  # names of each piece that are checked for URLs
ALL = {"tse", "in", "win", "pagerank", "harmonic", "bv", "qvs"}  # what --score all stands for


def check(path: str, chosen: Options) -> tuple[str, ...]:
    """Reject options that do not apply to a graph in pieces; return the scores."""
    from surveyor.rank.pieces.domains import check_scores

    for name in (name for name in ("trusted", "compare") if getattr(chosen, name)):
        raise UsageError(
            f"--{name} needs a graph in one part, and {path} is in pieces",
            hint=f"omit --{name}, or pass the graph itself",
        )
    scores = tuple(name for name in chosen.score if name != "bv") if set(chosen.score) >= ALL else chosen.score
    check_scores(scores, chosen.depth)
    return scores


def score(
    output: Output, path: str, stack: ExitStack, chosen: Options, plan: Plan | None, bad: list[Labels]
) -> DomainReport:
    """Score the domains of a graph in pieces; a graph of pages is condensed to domains first."""
    from surveyor.cli.domains import listed_ids
    from surveyor.cluster.domains import score_pieces
    from surveyor.cluster.session import Session
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.rank.domains.scores import DomainOptions
    from surveyor.report.domain_scores import DomainReport
    from surveyor.report.numbers import counted, duration

    scores = check(path, chosen)
    pieces = Pieces.open(path)
    if not pieces.named and (used := [name for name in ("blacklist", "condense") if getattr(chosen, name)]):
        raise UsageError(f"--{used[0]} needs names, and {path} has none", hint="build it from a file with names")
    machines = None
    if chosen.cluster:
        with redirect_stdout(sys.stderr):  # Ray prints there
            machines = stack.enter_context(Session(chosen.cluster))
    pieces = _domains_of(output, pieces, stack, chosen, machines)
    with redirect_stdout(sys.stderr), output.progress() as progress, output.timed() as seconds:  # Ray prints there
        result = score_pieces(
            pieces,
            scores,
            top=chosen.top,
            error=chosen.error,
            rng=chosen.rng,
            cluster=machines,
            options=DomainOptions(chosen.threads, chosen.memory, progress, p=chosen.p),
        )
    size = f"{counted(pieces.pages, 'domain')}, {counted(pieces.links, 'link')} in {counted(len(pieces), 'piece')}"
    output.info(f"{size}; {duration(seconds[0])}")
    plan = plan and plan.for_graph(pieces.pages)
    return DomainReport(result, plan, listed_ids(output, result.graph, bad))


def _domains_of(output: Output, pieces: Pieces, stack: ExitStack, chosen: Options, machines: Machines | None) -> Pieces:
    """Return pieces of domains: pages with URLs, and hosts with --condense, are condensed to a temporary folder."""
    from surveyor.cluster.domains import condense_pieces
    from surveyor.graph.pieces.write import WriteOptions
    from surveyor.report.numbers import counted
    from surveyor.web.suffixes import Suffixes

    suffixes = Suffixes(private=chosen.private_suffixes, file=chosen.suffixes)
    if not (pieces.named and (chosen.condense or _has_urls(pieces))):
        if chosen.suffixes is not None or chosen.private_suffixes:
            output.warn("the suffix list was not used: names are taken as domains; --condense condenses hosts")
        return pieces
    place = Path(pieces.folder).resolve()
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{place.name}.domains-", dir=place.parent))
    memory = WriteOptions().memory if chosen.memory is None else chosen.memory // 2
    with redirect_stdout(sys.stderr), output.progress() as progress:
        condensed = condense_pieces(
            pieces,
            Path(folder) / "domains",
            suffixes=suffixes,
            cluster=machines,
            options=WriteOptions(memory, chosen.threads, progress=progress),
        )
    verb = "is" if condensed.pages == 1 else "are"
    output.info(f"{counted(condensed.pages, 'name')} {verb} on {counted(condensed.pieces.pages, 'domain')}")
    _warn(output, condensed)
    return condensed.pieces


def _has_urls(pieces: Pieces) -> bool:
    """Return whether the names are URLs, by a sample of them."""
    return any(
        "://" in piece.names[page]
        for piece in pieces
        if piece.names is not None
        for page in range(0, piece.pages, max(1, piece.pages // CHECKED_NAMES))
    )


def _warn(output: Output, condensed: CondensedPieces) -> None:
    from surveyor.report.graphs import condensed_warnings

    output.warn(*condensed_warnings(condensed))


def condense(output: Output, source: str, dest: str, given: dict[str, Any]) -> None:
    """Condense a graph in pieces and print the counts."""
    from surveyor.cluster.domains import condense_pieces
    from surveyor.graph.pieces.folder import Pieces
    from surveyor.graph.pieces.write import WriteOptions, check_free
    from surveyor.report.numbers import duration
    from surveyor.report.pieces import described, facts
    from surveyor.web.suffixes import Suffixes

    check_free(Path(dest), replace=given["replace"])
    level = given["level"]
    suffixes = Suffixes(private=given["private_suffixes"], file=given["suffixes"]) if level == "domains" else None
    pieces = Pieces.open(source)
    with redirect_stdout(sys.stderr), output.progress() as progress, output.timed() as seconds:
        condensed = condense_pieces(
            pieces,
            dest,
            given["pieces"],
            level=level,
            suffixes=suffixes,
            cluster=given["cluster"],
            options=WriteOptions(memory=given["memory"], replace=given["replace"], progress=progress),
        )
    fields = {"graph": dest, "level": level, **condensed.to_dict(), "seconds": round(seconds[0], 3)}
    output.object("graph condense", fields)
    renamed = {"pages": level}
    described_facts = {renamed.get(name, name): value for name, value in described(facts(condensed.pieces)).items()}
    output.summary({"graph": dest, **described_facts, "time": duration(seconds[0])})
    _warn(output, condensed)
    output.next_steps(
        {"domain reputation": ["surveyor", "domains", dest], "inspect it": ["surveyor", "graph", "info", dest]}
    )

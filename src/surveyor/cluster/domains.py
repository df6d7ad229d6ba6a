"""Hosts, domains and their scores over graphs in pieces, in this process or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surveyor.cluster.executors import executors
from surveyor.cluster.session import Machines
from surveyor.graph.hosts_and_domains import Level
from surveyor.graph.pieces.condense import CondensedPieces, condense_with
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.write import DEFAULT_OPTIONS as DEFAULT_WRITING
from surveyor.graph.pieces.write import WriteOptions
from surveyor.rank.domains.scores import DEFAULT_OPTIONS, DomainOptions, Domains
from surveyor.rank.domains.tse import ERROR, TOP
from surveyor.rank.pieces.domains import score_with
from surveyor.web.suffixes import Suffixes


def score_pieces(
    pieces: Pieces | str | Path,
    score: str | Sequence[str] = "tse",
    *,
    top: int = TOP,
    error: float = ERROR,
    rng: int = 7,
    cluster: str | Machines | None = None,
    options: DomainOptions = DEFAULT_OPTIONS,
) -> Domains:
    """Score the domains of a graph in pieces, with the scores and intervals of the graph in one part.

    Parameters
    ----------
    pieces : a folder of pieces whose pages are domains (`surveyor.condense_pieces`, `surveyor.split_graph`).
    score : one or several of tse, supp, in, win, pagerank, harmonic and qvs, or "all" (except `supp`).
    top, error : TSE chooses p so that the relative standard deviation at rank `top` is `error`.
    cluster : "local:N", "auto" or "HOST:PORT"; by default, this process reads piece after piece.
    options : sampling probability, threads, memory of the lists of a piece, and progress.
    """
    opened = pieces if isinstance(pieces, Pieces) else Pieces.open(pieces)
    with executors(cluster) as executor:
        return score_with(opened, score, top=top, error=error, rng=rng, options=options, executor=executor)


def condense_pieces(
    pieces: Pieces | str | Path,
    folder: str | Path,
    count: int | None = None,
    *,
    level: Level = "domains",
    suffixes: Suffixes | None = None,
    cluster: str | Machines | None = None,
    options: WriteOptions = DEFAULT_WRITING,
) -> CondensedPieces:
    """Write the graph of the hosts or domains of pages in pieces to a folder of pieces.

    Parameters
    ----------
    pieces : a folder of pieces whose pages have URLs or host names as names.
    count : pieces of the result; as many as there are by default.
    suffixes : public suffix list; by default the bundled one.
    cluster : "local:N", "auto" or "HOST:PORT"; by default, this process reads piece after piece.
    """
    opened = pieces if isinstance(pieces, Pieces) else Pieces.open(pieces)
    with executors(cluster) as executor:
        return condense_with(opened, folder, count, level=level, suffixes=suffixes, options=options, executor=executor)

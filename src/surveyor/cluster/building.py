"""Build graphs in pieces, in this process or on the workers of a cluster."""

from __future__ import annotations

from pathlib import Path

from surveyor.cluster.executors import executors
from surveyor.cluster.session import Machines
from surveyor.graph.formats.intake import ReadOptions
from surveyor.graph.pieces.build import build_with
from surveyor.graph.pieces.folder import Pieces
from surveyor.graph.pieces.write import DEFAULT_OPTIONS, WriteOptions


def build_pieces(
    source: str | Path,
    folder: str | Path,
    pieces: int,
    reading: ReadOptions | None = None,
    *,
    format: str | None = None,  # noqa: A002
    options: WriteOptions = DEFAULT_OPTIONS,
    cluster: str | Machines | None = None,
) -> Pieces:
    """Convert a graph of any format to a folder of pieces, in bounded memory, and open it.

    Parameters
    ----------
    source : a file of links, a folder of WAT files, or a graph folder.
    cluster : "local:N", "auto" or "HOST:PORT"; this process reads the source, and the workers write the pieces.
        By default, this process does both. The bytes are the same.
    """
    with executors(cluster) as executor:
        return build_with(source, folder, pieces, reading, format=format, options=options, executor=executor)

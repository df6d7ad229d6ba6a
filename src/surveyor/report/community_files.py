"""The global rank of all local pages as a file: the columns of a list, best first; as .npy the shares alone, by id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.report.column_files import ROWS, readable, write_columns, write_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.estimate.community.result import CommunityRank
    from surveyor.store import tabular

WHOLE = ("page", "position", "local_position", "moved")


def write_community(found: CommunityRank, path: str | Path) -> Path:
    """Write all local pages in the format of the suffix."""
    path = Path(path)
    if path.name.lower().endswith(".npy"):
        return write_scores(path, found.scores)
    told = found.columns()
    if "name" in told:
        told["name"] = readable(told["name"])
    kinds = {name: "int64" if name in WHOLE else "string" if name == "name" else "float64" for name in told}
    return write_columns(path, kinds, _batches(told, found.pages.size))


def _batches(told: tabular.Batch, size: int) -> Iterator[tabular.Batch]:
    for start in range(0, size, ROWS):
        yield {name: values[start : start + ROWS] for name, values in told.items()}

"""The pages of a sample as a file: each with its weight, in the order in which walks first came to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.report.column_files import ROWS, readable, write_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surveyor.estimate.sampling.sample_result import Sample
    from surveyor.store import tabular

KINDS = {
    "url": "string", "weight": "float64", "visits": "int64", "degree": "float64", "walk": "int64", "fetches": "int64",
}  # fmt: skip


def write_pages(sample: Sample, path: str | Path) -> Path:
    """Write all pages on topic in the format of the suffix; the weights sum to 1."""
    told = sample.pages()
    told["url"] = readable(told["url"])
    kinds = {name: KINDS[name] for name in told}
    return write_columns(Path(path), kinds, _batches(told, len(told["url"])))


def _batches(told: tabular.Batch, size: int) -> Iterator[tabular.Batch]:
    for start in range(0, size, ROWS):
        yield {name: values[start : start + ROWS] for name, values in told.items()}

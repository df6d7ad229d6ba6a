"""Results as tables and pictures: one class that every result shares, and that asks of it only columns and a drawing.

A column is an array or a list. Labels of several types in one column remain objects in pandas and Polars; Arrow has no
such type, and holds their text.
"""

from __future__ import annotations

import base64
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surveyor.arrays import optional, read_only

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

POINTS = 1000  # drawn per curve
BARS = 15
SIZE = (6.0, 3.2)  # inches
LONGEST = 40  # characters of a name beside a bar
PLAIN = (str, bytes, bool, int, float)  # types that a column of Polars or Arrow holds


class Tabular(ABC):
    """A result that is a table with a picture.

    >>> import surveyor as sv
    >>> ranking = sv.pagerank([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")], tolerance=1e-9)
    >>> ranking.to_pandas().round(3).to_dict("list")
    {'node': ['a', 'b', 'c'], 'share': [0.215, 0.397, 0.388]}
    >>> ranking.to_polars().columns, ranking.to_arrow().num_rows
    (['node', 'share'], 3)
    """

    __slots__ = ()

    @abstractmethod
    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of the table."""

    @abstractmethod
    def _draw(self, axes: Axes) -> None:
        """Draw the picture."""

    def _html(self) -> str:
        """Return the part of the notebook display above the picture."""
        return f"<p>{escape(repr(self))}</p>"

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        pandas = optional("pandas", "to_pandas()", "frames")
        return pandas.DataFrame({name: _series(column) for name, column in self._columns().items()})

    def to_polars(self) -> polars.DataFrame:
        """Return a Polars data frame."""
        pl = optional("polars", "to_polars()", "frames")
        columns = self._columns().items()
        frame: polars.DataFrame = pl.DataFrame(
            [
                pl.Series(name, _listed(column), dtype=pl.Object) if _is_mixed(column) else pl.Series(name, column)
                for name, column in columns
            ]
        )
        return frame

    def to_arrow(self) -> Any:
        """Return a PyArrow table."""
        pa = optional("pyarrow", "to_arrow()", "formats")
        return pa.table({name: arrow_column(pa, column) for name, column in self._columns().items()})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result with matplotlib, on `ax` or on a new figure; return the axes."""
        if ax is None:
            ax = optional("matplotlib.pyplot", "plot()", "report").subplots(figsize=SIZE, layout="constrained")[1]
        assert ax is not None  # noqa: S101
        self._draw(ax)
        return ax

    def _repr_html_(self) -> str:
        return self._html() + picture(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields of a dataclass; private ones are caches, and start empty again."""
        state = {
            one.name: getattr(self, one.name)
            for one in fields(self)  # type: ignore[arg-type]  # results that are no dataclass define their own
            if not one.name.startswith("_")
        }
        return _restored, (type(self), {name: _in_memory(value) for name, value in state.items()})


def _restored(kind: type[Tabular], state: Mapping[str, Any]) -> Tabular:
    """Return a result from its fields; its arrays are read-only again."""
    result: Tabular = object.__new__(kind)
    for one in fields(kind):  # type: ignore[arg-type]
        made = one.default_factory() if callable(one.default_factory) else one.default
        value = state.get(one.name, made)
        object.__setattr__(result, one.name, read_only(value) if isinstance(value, np.ndarray) else value)
    return result


def _in_memory(value: Any) -> Any:
    """Return a memory map as an array, as its file may not exist where the pickle is read."""
    return np.asarray(value) if isinstance(value, np.memmap) else value


def picture(result: Tabular) -> str:
    """Return the picture of a result as an HTML image; empty if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return ""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasSVG(figure)
    result._draw(figure.subplots())
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(repr(result))}" src="data:image/svg+xml;base64,{data}">'


def html_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return an HTML table of text."""
    head = "".join(f"<th>{escape(title)}</th>" for title in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def draw_shares(axes: Axes, shares: npt.NDArray[Any], what: str = "pages") -> None:
    """Draw shares by position, both on log scales; shares need not be sorted."""
    ordered = np.sort(shares[shares > 0])[::-1]
    if ordered.size:
        at = np.unique(np.geomspace(1, ordered.size, min(POINTS, ordered.size)).round().astype(np.int64))
        axes.loglog(at, ordered[at - 1], marker="." if ordered.size < 50 else "")
    axes.set_xlabel(f"{what}, best first")
    axes.set_ylabel("share")


def draw_bars(
    axes: Axes,
    names: Sequence[Any],
    values: Sequence[float],
    title: str,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
) -> None:
    """Draw horizontal bars, the first at the top, with lower and upper bounds if given."""
    names, lengths = names[:BARS], np.asarray(values[:BARS], np.float64)
    places = np.arange(len(names))
    ends = None
    if bounds is not None:
        low, high = (np.asarray(bound[:BARS], np.float64) for bound in bounds)
        high = np.where(np.isfinite(high), high, lengths)
        ends = np.maximum(np.stack([lengths - low, high - lengths]), 0.0)
    axes.barh(places, lengths, xerr=ends, ecolor="0.3")
    shown = [text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in map(str, names)]
    axes.set_yticks(places, shown, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(title)


def arrow_column(pa: Any, column: Any) -> Any:
    """Return a column as an Arrow array; values of several types become text."""
    if not _is_mixed(column):
        try:
            return pa.array(column)
        except OverflowError:  # integers beyond 64 bits
            pass
    return pa.array([None if value is None else str(value) for value in _listed(column)])


def _series(column: Any) -> Any:
    """Return a column for pandas, which would take tuples for rows."""
    if isinstance(column, np.ndarray):
        return np.array(column)  # a copy: results are read-only
    values = list(column)
    if any(not isinstance(value, PLAIN) and value is not None for value in values):
        objects = np.empty(len(values), np.object_)
        objects[:] = values
        return objects
    return values


def _is_mixed(column: Any) -> bool:
    """Return whether values are of several types, or of one that a column cannot hold."""
    if isinstance(column, np.ndarray) and column.dtype != np.object_:
        return False
    kinds = {type(value) for value in column} - {type(None)}
    return (len(kinds) > 1 and not kinds <= {int, float}) or any(kind not in PLAIN for kind in kinds)


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)

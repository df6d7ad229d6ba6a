"""Nodes of a user's graph or table as page names: any hashable values, which results return unchanged.

`Names` are text in one blob. `Labels` are the nodes of an object from another library: page p has the label
`labels[p]`, and a page is found by its label, as in a dictionary (1, 1.0 and True are one label, "1" is another).
Where text is needed (hosts, files), it is that of `str(label)`, made on demand.

    >>> labels = Labels(["a", 1, ("b", 2)])
    >>> labels[2], labels.find(("b", 2)), labels.find("1"), Names.of(map(str, labels)) == labels.text
    (('b', 2), 2, None, True)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from surveyor.arrays import IntArray, read_only
from surveyor.errors import UsageError
from surveyor.graph.names import Names


class Labels(Names):
    """The labels of all pages: a list, ascending integers, or text."""

    def __init__(self, values: Sequence[Hashable] | IntArray | Names, ids: dict[Any, int] | None = None) -> None:
        """Keep the values; `ids` is their inverse, if it is already known."""
        self._values: Any = read_only(values) if isinstance(values, np.ndarray) else values
        self._ids = ids

    def __getattr__(self, name: str) -> Any:
        if name not in ("offsets", "blob", "_index"):
            raise AttributeError(name)
        self._index = None
        self.offsets, self.blob = self.text.offsets, self.text.blob
        return getattr(self, name)

    @property
    def text(self) -> Names:
        """The labels as text."""
        return self._values if isinstance(self._values, Names) else Names.of(map(str, self))

    def distinct_text(self) -> Names:
        """Return the labels as text, for a file; raise an error if two of them have the same."""
        text = self.text
        if repeats := text.repeats():
            raise UsageError(
                f"{repeats:,} nodes have the same text as another, such as 1 and '1'",
                hint="rename them, as nodes are text in files",
            )
        return text

    @property
    def integers(self) -> IntArray | None:
        """The labels if they are kept as an array of integers."""
        return self._values if isinstance(self._values, np.ndarray) else None

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, page: int) -> Any:  # type: ignore[override]  # as in Names
        value = self._values[page]
        return value.item() if isinstance(value, np.generic) else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values.tolist() if isinstance(self._values, np.ndarray) else self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels) or len(self) != len(other):
            return False
        return all(type(one) is type(two) and one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return f"Labels({len(self):,})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self._values,)

    def find(self, name: Any) -> int | None:
        """Return the id of a label, or None."""
        if isinstance(self._values, Names):
            return self._values.find(name) if isinstance(name, str) else None
        if isinstance(self._values, np.ndarray):
            return self._find_integer(name)
        if self._ids is None:
            self._ids = {label: page for page, label in enumerate(self._values)}
        try:
            return self._ids.get(name)
        except TypeError:  # not hashable
            return None

    def id_of(self, name: Any) -> int:
        """Return the id of a label; raise an error if it is unknown."""
        page = self.find(name)
        if page is None:
            raise UsageError(
                f"no node {name!r:.200} in this graph", hint="pass a node of the graph or table you passed"
            )
        return page

    def of(self, pages: Any) -> Any:  # type: ignore[override]
        """Return the labels of pages as an array: of integers if all are, otherwise of objects."""
        if isinstance(self._values, np.ndarray):
            return self._values[pages]
        found = np.empty(len(pages), np.object_)
        for place, page in enumerate(np.asarray(pages).tolist()):
            found[place] = self[page]
        if found.size and all(type(label) is int and abs(label) < 2**63 for label in found):
            return found.astype(np.int64)
        return found

    def repeats(self) -> int:
        """Return 0: labels are distinct."""
        return 0

    def _find_integer(self, label: Any) -> int | None:
        try:
            hash(label)  # as in a dictionary
            number = self._values.dtype.type(int(label))  # the same type: int64 and uint64 compare as floats
        except (TypeError, ValueError, OverflowError):
            return None
        place = int(np.searchsorted(self._values, number))
        found = place < self._values.size and bool(int(self._values[place]) == label)
        return place if found else None

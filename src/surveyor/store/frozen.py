"""Conversion of crawl state to arrays and a short description, and back: the contents of a checkpoint.

`freeze` walks the attributes of a few objects that refer to each other (graph, ledger, strategy, frontier) and of
everything they hold; `thaw` sets the same attributes on newly constructed objects. Identity is preserved: of the
objects that the caller names, lists, dicts, random generators, and memory that arrays share (`bits` is a view of
`residual`). Memory layout and read-only flags are preserved, as kernels would be recompiled otherwise.

Any strategy is supported whose attributes are numbers, text, arrays, lists, dicts, tuples, NamedTuples,
`np.random.Generator` or plain objects of these. For anything else (a file, a function, a set, whose order depends on
how it was filled) `freeze` returns None and the journal is replayed. No code is stored and none is run.

Freeze only between two batches: a page that is leased at that time would never be requested again. Arrays are stored
whole, with their spare capacity; freezing does not copy them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from surveyor.arrays import read_only
from surveyor.graph.npy import plain_type
from surveyor.store.checkpoint import Arrays
from surveyor.store.fingerprint import NUMBERS, Objects, Strange, attributes, fingerprint, set_attributes, slots

AnyArray: TypeAlias = npt.NDArray[Any]
CHANCES = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
LONG = 1 << 256  # larger integers are written in hexadecimal: Python limits decimal conversion
DAMAGE = (
    *(AttributeError, ImportError, IndexError, KeyError, RecursionError, TypeError, ValueError),
    *(MemoryError, OverflowError, BufferError),
)


def freeze(objects: Objects) -> tuple[dict[str, AnyArray], dict[str, Any]] | None:
    """Return views of the arrays, which may still change, and a description of the rest; None if unsupported."""
    ice = _Ice(objects)
    try:
        described = {name: ice.attributes(thing, name) for name, thing in objects.items()}
        return ice.blocks(), {"made": fingerprint(objects), "objects": described, "things": ice.things}
    except (Strange, RecursionError):
        return None


def thaw(objects: Objects, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Set the attributes of newly constructed objects, which take ownership of the arrays.

    Raises ValueError, and changes nothing, if the objects were constructed differently or have other attributes.
    """
    if about.get("made") != fingerprint(objects):
        raise ValueError("frozen from objects of other classes, settings or code")
    try:
        water = _Water(objects, arrays, about["things"])
        values = {name: {key: water.value(item) for key, item in about["objects"][name].items()} for name in objects}
    except DAMAGE as error:
        raise ValueError(f"not what was frozen: {type(error).__name__}: {error}") from error
    for name, thing in objects.items():
        lost = attributes(thing).keys() - values[name].keys()
        homeless = set() if hasattr(thing, "__dict__") else values[name].keys() - slots(type(thing)).keys()
        if lost or homeless:
            raise ValueError(f"the {name} has other attributes: {', '.join(sorted(lost | homeless))}")
    for name, thing in objects.items():
        set_attributes(thing, values[name])


class _Ice:
    """Describes values; each object is described once."""

    def __init__(self, objects: Objects) -> None:
        self.things: list[Any] = []
        self._homes = _homes(objects)
        self._names = {id(thing): name for name, thing in objects.items()}
        self._met: dict[int, tuple[int, object]] = {}  # by id; keeps the objects alive so that ids are not reused
        self._arrays: dict[int, tuple[AnyArray, str]] = {}

    def attributes(self, thing: object, path: str) -> dict[str, Any]:
        """Describe the attributes of a plain object."""
        return {name: self.describe(value, f"{path} {name}") for name, value in attributes(thing).items()}

    def describe(self, value: object, path: str) -> Any:
        """Return the description of a value: itself, or [kind, content]."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < LONG else ["int", hex(value)]
        if type(value) is float:
            return value if math.isfinite(value) else ["float", str(value)]
        if id(value) in self._names:
            return ["object", self._names[id(value)]]
        number, _ = self._met.setdefault(id(value), (len(self.things), value))
        if number == len(self.things):
            self.things.append(None)
            self.things[number] = self._thing(value, path, number)
        elif self.things[number] is None and isinstance(value, tuple):
            raise Strange("a tuple inside itself could not be made again")
        return ["thing", number]

    def _thing(self, value: Any, path: str, number: int) -> list[Any]:
        cls = type(value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in NUMBERS:
            if isinstance(value, np.generic):
                return ["scalar", value.dtype.str, value.tobytes().hex()]
            if cls in (np.ndarray, np.memmap):
                self._arrays[number] = value, path
                return ["array", "", 0, list(value.shape), list(value.strides), value.dtype.str, value.flags.writeable]
        if cls is bytes:
            return ["bytes", value.hex()]
        if cls in (list, tuple):
            return [cls.__name__, [self.describe(item, path) for item in value]]
        if cls is dict:
            return [
                "dict",
                [[self.describe(key, path), self.describe(item, f"{path} {key}")] for key, item in value.items()],
            ]
        if cls.__bases__ == (tuple,) and hasattr(cls, "_fields"):
            fields = zip(cls._fields, value, strict=True)
            return [
                "record",
                _findable(cls, self._homes),
                [self.describe(item, f"{path} {field}") for field, item in fields],
            ]
        if cls is np.random.Generator:
            return ["generator", self.describe(value.bit_generator, path)]
        if isinstance(value, np.random.BitGenerator) and cls.__name__ in CHANCES:
            return ["chance", cls.__name__, self.describe(value.seed_seq, path), self.describe(value.state, path)]
        if cls is np.random.SeedSequence:
            return ["sequence", self.describe(value.state, path)]
        return ["plain", _findable(cls, self._homes), self.attributes(value, path)]

    def blocks(self) -> dict[str, AnyArray]:
        """Return the memory of all arrays: one block per group of overlapping arrays."""
        together: list[list[int]] = []
        end = 0
        for low, high, number in sorted((*byte_bounds(array), n) for n, (array, _) in self._arrays.items()):
            if low >= end:
                together.append([])
            if low < high:  # an empty array shares no memory
                together[-1].append(number)
            end = max(end, high)
        blocks: dict[str, AnyArray] = {}
        for numbers in sorted(sorted(group) for group in together if group):
            name = f"a{len(blocks)}_" + re.sub("[^a-z0-9]+", "_", self._arrays[numbers[0]][1].lower())[:80]
            blocks[name], low = _memory([self._arrays[number][0] for number in numbers])
            for number in numbers:
                address = self._arrays[number][0].__array_interface__["data"][0]
                self.things[number][1:3] = name, address - low
        return blocks


class _Water:
    """Reconstructs values; each object is made on first use."""

    def __init__(self, objects: Objects, arrays: Arrays, things: list[Any]) -> None:
        self._objects, self._things, self._homes = objects, things, _homes(objects)
        self._blocks = {name: block if block.flags.writeable else block.copy() for name, block in arrays.items()}
        self._made: dict[int, Any] = {}

    def value(self, description: Any) -> Any:
        """Return the value of a description."""
        if not isinstance(description, list):
            return description
        kind, what = description
        if kind == "thing":
            if what not in self._made:
                self._make(what, *self._things[what])
            return self._made[what]
        return self._objects[what] if kind == "object" else float(what) if kind == "float" else int(what, 16)

    def _make(self, number: int, kind: str, *what: Any) -> None:
        made: Any
        if kind == "list":  # first: this and the next two may contain themselves
            made = self._made[number] = []
            made.extend(map(self.value, what[0]))
        elif kind == "dict":
            made = self._made[number] = {}
            made.update((self.value(key), self.value(item)) for key, item in what[0])
        elif kind == "plain":
            made = self._made[number] = object.__new__(_class(what[0], self._homes))
            set_attributes(made, {name: self.value(item) for name, item in what[1].items()})
        else:
            self._made[number] = self._fixed(kind, *what)

    def _fixed(self, kind: str, *what: Any) -> Any:
        if kind == "array":
            return self._array(*what)
        if kind == "scalar":
            return np.frombuffer(bytes.fromhex(what[1]), plain_type(what[0]))[0]
        if kind == "bytes":
            return bytes.fromhex(what[0])
        if kind == "tuple":
            return tuple(map(self.value, what[0]))
        if kind == "record":
            cls = _class(what[0], self._homes)
            if cls.__bases__ != (tuple,) or len(cls._fields) != len(what[1]):
                raise ValueError(f"{what[0]} is no record of {len(what[1])} fields")
            return tuple.__new__(cls, map(self.value, what[1]))
        if kind == "generator":
            return np.random.Generator(self.value(what[0]))
        if kind == "sequence":
            return np.random.SeedSequence(**self.value(what[0]))
        chance = getattr(np.random, CHANCES[CHANCES.index(what[0])])(self.value(what[1]))
        chance.state = self.value(what[2])
        return chance

    def _array(self, name: str, offset: int, shape: list[int], strides: list[int], kind: str, writeable: Any) -> Any:
        dtype = plain_type(kind)
        array = np.ndarray(shape, dtype, self._blocks[name], offset, strides) if name else np.empty(shape, dtype)
        array.flags.writeable = writeable
        return array


def _memory(arrays: list[AnyArray]) -> tuple[AnyArray, int]:
    """Return the memory that spans the arrays, as one of them if it covers all, and its address."""
    bounds = [byte_bounds(array) for array in arrays]
    low, high = min(first for first, _ in bounds), max(last for _, last in bounds)
    bases = [base for array in arrays for base in _bases(array)]
    for array in arrays + bases:
        first, last = byte_bounds(array)
        if array.flags.forc and first <= low and high <= last:
            flat = np.asarray(array).ravel("K")  # a view
            exact = (first, last) == (low, high)
            return read_only(flat if exact else flat.view(np.uint8)[low - first : high - first]), low
    raise Strange("arrays that overlap in memory which is no array")


def _bases(array: AnyArray) -> list[AnyArray]:
    return [array.base, *_bases(array.base)] if isinstance(array.base, np.ndarray) else []


def _homes(objects: Objects) -> frozenset[str]:
    """Return the packages whose classes may be instantiated: surveyor and those of the objects themselves."""
    return frozenset({"surveyor", *(type(thing).__module__.partition(".")[0] for thing in objects.values())})


def _findable(cls: type, homes: frozenset[str]) -> str:
    """Return the qualified name of a class if it can be looked up by it."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    try:
        if _class(name, homes) is cls:
            return name
    except DAMAGE:
        pass
    raise Strange(f"{name} is not the name of its class")


def _class(name: str, homes: frozenset[str]) -> Any:
    """Look up a class in a loaded module; nothing is imported.

    A checkpoint may come from elsewhere. No class of another package is instantiated, nor one with a finaliser: with
    attributes of an attacker's choice it could, for instance, remove a file.
    """
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in homes:
        raise ValueError(f"{name} is of no package that is known here")
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = vars(found)[part]
    if not isinstance(found, type) or hasattr(found, "__del__") or found.__module__ != module:
        raise ValueError(f"{name} is no plain class")
    return found

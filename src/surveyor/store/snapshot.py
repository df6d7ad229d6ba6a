"""Conversion of crawl state to arrays and a short description, and back: the contents of a checkpoint.

`snapshot` walks the attributes of a few objects that refer to each other (graph, ledger, strategy, frontier) and of
everything they hold; `restore` sets the same attributes on newly constructed objects. Identity is preserved: of the
objects that the caller names, lists, dicts, random generators, and memory that arrays share (`bits` is a view of
`residual`). Memory layout and read-only flags are preserved, as kernels would be recompiled otherwise.

Any strategy is supported whose attributes are numbers, text, arrays, lists, dicts, tuples, NamedTuples,
`np.random.Generator` or plain objects of these. For anything else (a file, a function, a set, whose order depends on
how it was filled) `snapshot` returns None and the journal is replayed. No code is stored and none is run.

**Fingerprint.** A saved state is valid only for the settings and code that would replay it. The fingerprint covers the
classes, the source of surveyor and of the modules that define the classes, and the settings: numbers, text and
read-only arrays that no method but `__init__` and `begin` sets. A setting that exists only in other arrays (the
closure, effort and precision of a ledger) is not covered. An attribute that is changed other than by a method of its
class (`setattr`, a wrapped method) counts as a setting; fingerprints then differ and the journal is replayed.

Take a snapshot only between two batches: a page that is leased at that time would never be requested again. Arrays are
stored whole, with their spare capacity; a snapshot does not copy them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from dis import get_instructions
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType, MemberDescriptorType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from surveyor.arrays import plain_type, read_only
from surveyor.store.checkpoint import Arrays

Objects: TypeAlias = Mapping[str, object]
AnyArray: TypeAlias = npt.NDArray[Any]
PACKAGE = Path(__file__).parents[1]
NUMBERS = "biufcmMSU"  # array kinds that are fully described by their bytes
CUSTOM = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__getstate__")
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
LONG = 1 << 256  # larger integers are written in hexadecimal: Python limits decimal conversion
DAMAGE = (
    *(AttributeError, ImportError, IndexError, KeyError, RecursionError, TypeError, ValueError),
    *(MemoryError, OverflowError, BufferError),
)


class Unsupported(ValueError):
    """An object that has state other than its attributes."""


def snapshot(objects: Objects) -> tuple[dict[str, AnyArray], dict[str, Any]] | None:
    """Return views of the arrays, which may still change, and a description of the rest; None if unsupported."""
    serializer = _Serializer(objects)
    try:
        described = {name: serializer.attributes(thing, name) for name, thing in objects.items()}
        return serializer.blocks(), {"made": fingerprint(objects), "objects": described, "things": serializer.things}
    except (Unsupported, RecursionError):
        return None


def restore(objects: Objects, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Set the attributes of newly constructed objects, which take ownership of the arrays.

    Raises ValueError, and changes nothing, if the objects were constructed differently or have other attributes.
    """
    if about.get("made") != fingerprint(objects):
        raise ValueError("saved from objects of other classes, settings or code")
    try:
        deserializer = _Deserializer(objects, arrays, about["things"])
        values = {
            name: {key: deserializer.value(item) for key, item in about["objects"][name].items()} for name in objects
        }
    except DAMAGE as error:
        raise ValueError(f"not a saved state: {type(error).__name__}: {error}") from error
    for name, thing in objects.items():
        lost = attributes(thing).keys() - values[name].keys()
        unknown = set() if hasattr(thing, "__dict__") else values[name].keys() - slots(type(thing)).keys()
        if lost or unknown:
            raise ValueError(f"the {name} has other attributes: {', '.join(sorted(lost | unknown))}")
    for name, thing in objects.items():
        set_attributes(thing, values[name])


class _Serializer:
    """Describes values; each object is described once."""

    def __init__(self, objects: Objects) -> None:
        self.things: list[Any] = []
        self._packages = _packages(objects)
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
            raise Unsupported("a tuple that contains itself is not supported")
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
                _findable(cls, self._packages),
                [self.describe(item, f"{path} {field}") for field, item in fields],
            ]
        if cls is np.random.Generator:
            return ["generator", self.describe(value.bit_generator, path)]
        if isinstance(value, np.random.BitGenerator) and cls.__name__ in BIT_GENERATORS:
            return [
                "bit generator",
                cls.__name__,
                self.describe(value.seed_seq, path),
                self.describe(value.state, path),
            ]
        if cls is np.random.SeedSequence:
            return ["sequence", self.describe(value.state, path)]
        return ["plain", _findable(cls, self._packages), self.attributes(value, path)]

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


class _Deserializer:
    """Reconstructs values; each object is made on first use."""

    def __init__(self, objects: Objects, arrays: Arrays, things: list[Any]) -> None:
        self._objects, self._things, self._packages = objects, things, _packages(objects)
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
            made = self._made[number] = object.__new__(_class(what[0], self._packages))
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
            cls = _class(what[0], self._packages)
            if cls.__bases__ != (tuple,) or len(cls._fields) != len(what[1]):
                raise ValueError(f"{what[0]} is not a NamedTuple of {len(what[1])} fields")
            return tuple.__new__(cls, map(self.value, what[1]))
        if kind == "generator":
            return np.random.Generator(self.value(what[0]))
        if kind == "sequence":
            return np.random.SeedSequence(**self.value(what[0]))
        generator = getattr(np.random, BIT_GENERATORS[BIT_GENERATORS.index(what[0])])(self.value(what[1]))
        generator.state = self.value(what[2])
        return generator

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
    raise Unsupported("arrays overlap in memory that is not an array")


def _bases(array: AnyArray) -> list[AnyArray]:
    return [array.base, *_bases(array.base)] if isinstance(array.base, np.ndarray) else []


def _packages(objects: Objects) -> frozenset[str]:
    """Return the packages whose classes may be instantiated: surveyor and those of the objects themselves."""
    return frozenset({"surveyor", *(type(thing).__module__.partition(".")[0] for thing in objects.values())})


def _findable(cls: type, packages: frozenset[str]) -> str:
    """Return the qualified name of a class if it can be looked up by it."""
    name = f"{cls.__module__}:{cls.__qualname__}"
    try:
        if _class(name, packages) is cls:
            return name
    except DAMAGE:
        pass
    raise Unsupported(f"{name} does not lead to its class")


def _class(name: str, packages: frozenset[str]) -> Any:
    """Look up a class in a loaded module; nothing is imported.

    A checkpoint may come from elsewhere. No class of another package is instantiated, nor one with a finaliser: with
    attributes of an attacker's choice it could, for instance, remove a file.
    """
    module, _, path = name.partition(":")
    if module.partition(".")[0] not in packages:
        raise ValueError(f"{name} is not in an allowed package")
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = vars(found)[part]
    if not isinstance(found, type) or hasattr(found, "__del__") or found.__module__ != module:
        raise ValueError(f"{name} is not a plain class")
    return found


def fingerprint(objects: Objects) -> str:
    """Return a hash that changes with classes, settings and code, but not during a crawl."""
    digest = sha256(_own_code())
    for name, thing in sorted(objects.items()):
        cls = type(thing)
        digest.update(f"{name}: {cls.__module__}:{cls.__qualname__}".encode())
        for base in cls.__mro__:
            digest.update(_source(getattr(sys.modules.get(base.__module__), "__file__", None)))
        changing = _changing(cls)
        for key, value in sorted(attributes(thing).items()):
            if key in changing:
                continue
            if isinstance(value, str | bytes | int | float | np.generic | None):
                digest.update(f"{key} = {value!r}".encode())
            elif isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS and not value.flags.writeable:
                digest.update(f"{key}: {value.dtype} {value.shape}".encode() + value.tobytes())
    return digest.hexdigest()


def attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of a plain object; raise Unsupported if it has other state."""
    cls = type(thing)
    custom = {name for name in CUSTOM if getattr(cls, name, None) is not getattr(object, name, None)}
    if custom and not (custom == {"__getstate__"} and is_dataclass(cls)):  # frozen dataclasses with slots have one
        raise Unsupported(f"{cls} is not a plain class")
    try:  # Python's own test for state other than attributes; nothing is pickled
        reduced: Any = object.__reduce_ex__(thing, 2)
    except TypeError as error:
        raise Unsupported(f"{cls} is not a plain class") from error
    if reduced[1] != (cls,) or reduced[3:] != (None, None):
        raise Unsupported(f"{cls} is a container")
    found = dict(getattr(thing, "__dict__", {}))
    for name, slot in slots(cls).items():
        with suppress(AttributeError):  # not set yet
            found[name] = slot.__get__(thing)
    return found


def set_attributes(thing: Any, values: Mapping[str, Any]) -> None:
    """Set attributes directly, bypassing the class, which may be frozen."""
    places = slots(type(thing))
    for name, value in values.items():
        if name in places:
            places[name].__set__(thing, value)
        else:
            vars(thing)[name] = value


def slots(cls: type) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class and its bases."""
    members = [item for base in reversed(cls.__mro__) for item in vars(base).items()]
    return {name: member for name, member in members if isinstance(member, MemberDescriptorType)}


def _changing(cls: type) -> set[str]:
    """Return the attributes that a method sets after construction."""
    members = [member for base in cls.__mro__ for member in vars(base).values()]
    methods = [member for member in members if isinstance(member, FunctionType)]
    later = [method for method in methods if method.__name__ not in ("__init__", "begin")]
    return {step.argval for method in later for step in get_instructions(method) if step.opname == "STORE_ATTR"}


@cache
def _own_code() -> bytes:
    return sha256(b"".join(map(_source, sorted(PACKAGE.rglob("*.py"))))).digest()


def _source(file: Path | str | None) -> bytes:
    return Path(file).read_bytes() if file and Path(file).is_file() else b""

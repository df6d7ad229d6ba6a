"""A hash of how objects were constructed: a saved state is valid only for the settings and code that would replay it.

It covers the classes, the source of surveyor and of the modules that define the classes, and the settings: numbers,
text and read-only arrays that no method but `__init__` and `begin` sets. A setting that exists only in other arrays
(the closure, effort and precision of a ledger) is not covered. An attribute that is changed other than by a method of
its class (`setattr`, a wrapped method) counts as a setting; fingerprints then differ and the journal is replayed.
"""

from __future__ import annotations

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

Objects: TypeAlias = Mapping[str, object]
PACKAGE = Path(__file__).parents[1]
NUMBERS = "biufcmMSU"  # array kinds that are fully described by their bytes
CUSTOM = ("__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__getstate__")


class Strange(ValueError):
    """An object that has state other than its attributes."""


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
    """Return the attributes of a plain object; raise Strange if it has other state."""
    cls = type(thing)
    custom = {name for name in CUSTOM if getattr(cls, name, None) is not getattr(object, name, None)}
    if custom and not (custom == {"__getstate__"} and is_dataclass(cls)):  # frozen dataclasses with slots have one
        raise Strange(f"{cls} is no plain class")
    try:  # Python's own test for state other than attributes; nothing is pickled
        reduced: Any = object.__reduce_ex__(thing, 2)
    except TypeError as error:
        raise Strange(f"{cls} is no plain class") from error
    if reduced[1] != (cls,) or reduced[3:] != (None, None):
        raise Strange(f"{cls} is a container")
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

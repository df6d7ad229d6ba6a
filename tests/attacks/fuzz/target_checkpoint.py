"""Checkpoints: loading gives a state or none, and thawing sets it or raises ValueError."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import numpy as np
from mutation import Mutator
from reading import PARTS
from scratch import scratch

from surveyor.errors import InputError
from surveyor.store import checkpoint, signing
from surveyor.store.snapshot import restore, snapshot

NAME = "checkpoint"
FILES = ["header.json", "first.npy", "second.npy"]
TOKENS = [
    *(b'"thing"', b'"array"', b'"plain"', b'"record"', b'"dict"', b'"list"', b'"tuple"', b'"bytes"', b'"scalar"'),
    *(b'"generator"', b'"sequence"', b'"chance"', b'"object"', b'"surveyor.errors:InputError"', b'"os:_Environ"'),
    *(b"null", b"true", b"[]", b"{}", b'"|O"', b'"<i8"', b'"builtins:object"', b'"../first"', b"[" * 2000),
]


class Thing:
    """What is frozen."""

    def __init__(self) -> None:
        self.numbers = np.arange(10)
        self.view = self.numbers[2:5]
        self.table = {"a": [1, 2.5, None], "b": (True, "text")}
        self.rng = np.random.default_rng(1)
        self.bits = b"abc"


def seeds() -> list[bytes]:
    frozen = snapshot({"thing": Thing()})
    assert frozen is not None
    arrays, about = frozen
    text = json.dumps({"objects": about["objects"], "things": about["things"]}).encode()
    return [PARTS.join((text, *(bytes(_saved(array)) for array in arrays.values())))]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change one of the parts."""
    parts = data.split(PARTS)
    place = rng.randrange(len(parts))
    parts[place] = Mutator(rng, TOKENS).mutate(parts[place], rng.choice(parts))
    return PARTS.join(parts)


def run(data: bytes) -> None:
    text, *files = data.split(PARTS)
    folder = scratch() / "checkpoints" / f"{7:012d}"
    os.environ["XDG_CONFIG_HOME"] = str(scratch() / "config")  # the key of whoever fuzzes stays out of it
    folder.mkdir(parents=True, exist_ok=True)
    thing = Thing()
    frozen = snapshot({"thing": thing})
    assert frozen is not None
    arrays, sound = frozen
    try:
        about = {**json.loads(text), "made": sound["made"]}
    except (ValueError, TypeError, RecursionError):
        about = {}
    sums = {}
    for name, file in zip(arrays, files, strict=False):
        (folder / f"{name}.npy").write_bytes(file)
        sums[name] = checkpoint._sum(file)
    result: dict[str, Any] = {"version": checkpoint.VERSION, "key": "k", "position": 7, "arrays": sums, "about": about}
    result["signature"] = signing.sign(checkpoint.PURPOSE, checkpoint._plain(result))  # beneath the signature
    (folder / "header.json").write_text(json.dumps(result))
    found = checkpoint.load(folder.parent, position=7, key="k")
    if found is None:
        raise InputError("no checkpoint", hint="the journal is replayed")
    try:
        restore({"thing": thing}, found.arrays, found.about)
    except ValueError as error:
        raise InputError(f"not thawed: {error}", hint="the journal is replayed") from error


def _saved(array: Any) -> bytes:
    path = scratch() / "array.npy"
    np.save(path, array)
    return path.read_bytes()

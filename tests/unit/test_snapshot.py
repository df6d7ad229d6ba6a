"""Snapshots of crawl state: a restored crawl continues bit for bit, and invalid states are rejected."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from crawl_states import END, MADE, WEB, Own, assert_same_state, fresh, objects, resume_crawl
from slow_cases import pairs
from surveyor.crawler.frontier import Budgets
from surveyor.crawler.loop import Crawl, replay
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.opic import Opic
from surveyor.store import checkpoint
from surveyor.store.snapshot import restore, snapshot


def through_disk(folder: Path, state: Crawl, into: Crawl) -> dict[str, Any]:
    frozen = snapshot(objects(state))
    assert frozen is not None
    arrays, about = frozen
    json.dumps(about, allow_nan=False)  # any JSON reader may read it
    assert checkpoint.save(folder, arrays, position=1, key="k", about=about)
    found = checkpoint.load(folder, position=1, key="k")
    assert found is not None
    restore(objects(into), found.arrays, found.about)
    return about


@pytest.mark.parametrize(("name", "done"), pairs(MADE, [0, 25, 140]))
def test_a_restored_crawl_equals_an_uninterrupted_one(name: str, done: int, tmp_path: Path) -> None:
    first, restored, replayed = (fresh(MADE[name]()) for _ in range(3))
    past, _ = resume_crawl(first, 0, done)
    through_disk(tmp_path, first, restored)
    replay(replayed, past)
    for state in (restored, replayed):
        assert_same_state(first, state)
    happened, coverage = resume_crawl(first, done, END)
    assert name == "breadth:3" or {one.kind for one in past + happened} == {"fetched", "gone", "blocked", "redirected"}
    for state in (restored, replayed):
        again, covered = resume_crawl(state, done, END)
        assert again == happened
        assert covered == coverage
        assert_same_state(first, state)


def test_a_state_can_be_restored_repeatedly(tmp_path: Path) -> None:
    whole, *states = [fresh(Own()) for _ in range(6)]
    for done, (state, into) in zip(range(0, 240, 60), pairwise(states), strict=True):
        assert resume_crawl(whole, done, done + 60) == resume_crawl(state, done, done + 60)
        through_disk(tmp_path, state, into)
    assert_same_state(whole, states[-1])
    assert whole.ledger.read > 150


def test_without_a_disk_nothing_is_shared_either() -> None:
    first, into = fresh(Own()), fresh(Own())
    resume_crawl(first, 0, 50)
    frozen = snapshot(objects(first))
    assert frozen is not None
    assert not any(array.flags.writeable for array in frozen[0].values())
    restore(objects(into), *frozen)
    assert not np.shares_memory(first.ledger.mass.residual, into.ledger.mass.residual)
    before = first.ledger.residual.tobytes()
    resume_crawl(into, 50, 90)
    assert first.ledger.residual.tobytes() == before


def test_budgets_continue_from_the_snapshot(tmp_path: Path) -> None:
    budgets = Budgets(np.arange(WEB.pages) % 7, np.full(7, 25))
    first, restored = (fresh(by_name("rankmass"), budgets=budgets) for _ in range(2))
    resume_crawl(first, 0, 120)
    through_disk(tmp_path, first, restored)
    happened, _ = resume_crawl(first, 120, END)
    assert any(outcome.reason == "budget" for outcome in happened)
    assert resume_crawl(restored, 120, END)[0] == happened


# --- one thing stays one thing ---


def test_shared_memory_stays_shared_and_flags_stay(tmp_path: Path) -> None:
    first, restored = fresh(Opic()), fresh(Opic())
    resume_crawl(first, 0, 60)
    through_disk(tmp_path, first, restored)
    queues: Any = restored.frontier._queues
    mass, queue = restored.ledger.mass, queues._queue
    assert np.shares_memory(mass.bits, mass.residual)
    assert np.shares_memory(queue.bits, queue.priority)
    assert restored.ledger.seeds is mass.seeds
    assert restored.ledger.teleport is mass.shares
    pairs: Any = zip(first.ledger.mass, mass, strict=True)
    for one, other in pairs:
        assert (one.flags.writeable, one.flags.c_contiguous) == (other.flags.writeable, other.flags.c_contiguous)
        assert other.flags.aligned
    assert restored.frontier._ledger is restored.ledger
    assert restored.ledger.graph is restored.graph
    assert type(mass) is type(first.ledger.mass)


class Point(NamedTuple):
    x: Any
    y: Any


class Plain:
    """Anything at all."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


class Slotted:
    __slots__ = ("__secret", "other", "unset")

    def __init__(self) -> None:
        self.__secret, self.other = 5, [1]

    @property
    def secret(self) -> int:
        return self.__secret


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    value: Any


def round_trip(folder: Path, held: dict[str, Any]) -> dict[str, Any]:
    frozen = snapshot({"it": Plain(held=held)})
    assert frozen is not None
    assert checkpoint.save(folder, frozen[0], position=1, key="k", about=frozen[1])
    found = checkpoint.load(folder, position=1, key="k")
    assert found is not None
    restored: Any = Plain(held={})
    restore({"it": restored}, found.arrays, found.about)
    return dict(restored.held)


def test_views_of_every_sort(tmp_path: Path) -> None:
    whole = np.arange(24.0)
    alone = np.arange(40)[4:30:3]
    twisted = np.asfortranarray(np.arange(12).reshape(3, 4))
    held = {
        "part": whole[3:9],
        "backwards": whole[::-2],
        "bits": whole.view(np.uint64)[8:],
        "table": whole.reshape(4, 6).T,
        "alone": alone,
        "twisted": twisted,
        "empty": whole[:0],
        "zero": np.array(3.5),
        "everywhere": np.broadcast_to(np.float32(2), (3, 2)),
        "words": np.array(["a", "été"]),
        "days": np.array(["2020-01-01"], "M8[D]"),
        "big": np.arange(3, dtype=">i4"),
        "none": np.empty((0, 3)),
    }
    restored = round_trip(tmp_path, {"lists": [held["part"], whole], **held})
    for name, array in held.items():
        again = restored[name]
        assert again.dtype == array.dtype
        assert (again.shape, again.tobytes()) == (array.shape, array.tobytes())
        assert again.size == 0 or again.strides == array.strides
        assert again.flags.writeable == array.flags.writeable
    assert restored["lists"][0] is restored["part"]
    restored["lists"][1][8] = -1.5
    whole[8] = -1.5
    for name in ("part", "backwards", "bits", "table"):
        np.testing.assert_array_equal(restored[name], held[name])
    size = sum(file.stat().st_size for file in tmp_path.rglob("*_alone.npy"))
    assert size == 128 + 8 * (3 * 8 + 1)  # not the whole array of which it is a part


def test_parts_that_overlap_without_the_whole(tmp_path: Path) -> None:
    whole = np.arange(1000)
    restored = round_trip(tmp_path, {"one": whole[10:20], "other": whole[15:40]})
    restored["one"][5] = 77
    assert restored["other"].tolist() == [77, *range(16, 40)]
    buffer = bytearray(80)  # two arrays that do not know of each other
    assert snapshot({"it": Plain(held=[np.frombuffer(buffer, count=6), np.frombuffer(buffer, offset=40)])}) is None


def test_containers_objects_and_chance(tmp_path: Path) -> None:
    loop: list[Any] = [1]
    loop.append({"loop": loop})
    rng = np.random.Generator(np.random.Philox(8))
    rng.spawn(2)
    rng.random(3)
    held = {
        "loop": loop,
        "point": Point(loop, (1, "x")),
        "slotted": Slotted(),
        "fixed": Fixed(Plain(back=loop)),
        "chances": [rng, rng, rng.bit_generator, np.random.Generator(np.random.MT19937(5))],
        "table": {1: "int", "1": "str", (2, 3.5): b"\x00\xff", None: math.inf, np.int32(4): -0.0, True and 7: False},
        "numbers": [np.float32(0.1), np.uint64(2**64 - 1), 2**70, -(2**20_000), 0.1, -math.inf, np.str_("é"), "\udc80"],
    }
    again = round_trip(tmp_path, held)
    assert again["loop"] is again["loop"][1]["loop"] is again["point"].x is again["fixed"].value.back
    assert type(again["point"]) is Point
    assert again["point"].y == (1, "x")
    assert (again["slotted"].secret, again["slotted"].other) == (5, [1])
    assert not hasattr(again["slotted"], "unset")
    assert again["table"] == held["table"]
    assert math.copysign(1, again["table"][4]) == -1
    assert [(type(one), one) for one in again["numbers"]] == [(type(one), one) for one in held["numbers"]]  # type: ignore[attr-defined]
    one, other, bits, twister = again["chances"]
    assert one is other
    assert one.bit_generator is bits
    assert one.spawn(1)[0].random() == rng.spawn(1)[0].random()
    assert [one.random(), other.random()] == rng.random(2).tolist()
    assert twister.random() == np.random.Generator(np.random.MT19937(5)).random()


# --- what is refused ---


class Shy:
    """Has its own idea of what it is made of."""

    def __getstate__(self) -> object:
        raise RuntimeError("do not ask")


def odd() -> dict[str, Any]:
    class Local:
        pass

    holder: list[Any] = []
    knot = (holder,)
    holder.append(knot)
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    return {
        "function": lambda: 0,
        "generator": (_ for _ in [0]),
        "set": {1, 2},
        "class": Own,
        "module": np,
        "local": Local(),
        "lock": threading.Lock(),
        "method": [].append,
        "objects": np.array([None]),
        "records": np.zeros(2, "i4,f8"),
        "masked": np.ma.zeros(3),
        "error": OSError(),
        "shy": Shy(),
        "list of mine": type("List", (list,), {})(),
        "path": Path(),
        "knot": knot,
        "deep": deep,
        "iterator": iter([]),
    }


@pytest.mark.parametrize("name", odd())
def test_what_is_not_understood_is_left_to_a_replay(name: str) -> None:
    state = fresh(Own())
    assert snapshot(objects(state)) is not None
    state.strategy.lazy = {"deep inside": [odd()[name]]}  # type: ignore[attr-defined]
    assert snapshot(objects(state)) is None


def test_a_file_and_a_strategy_that_is_a_container(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        assert snapshot({"strategy": Plain(log=log)}) is None
    assert snapshot({"strategy": type("Table", (dict,), {})()}) is None


def changed(about: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the description with something wrong in it that a checksum would not have let through."""
    about = copy.deepcopy(about)
    ledger, things = about["objects"]["ledger"], about["things"]
    number = ledger["mass"][1]
    if what == "renamed":
        ledger["_sheets"] = ledger.pop("_pages")
    elif what == "lost object":
        del about["objects"]["graph"]
    elif what == "lost thing":
        del things[number:]
    elif what == "unknown class":
        things[number][1] = "surveyor.kernels.mass:Masses"
    elif what == "unknown module":
        things[number][1] = "surveyor.nowhere:Mass"
    elif what == "foreign module":
        things[number][1] = "antigravity:Mass"
    elif what == "no class":
        things[number][1] = "surveyor.kernels.mass:bounds"
    elif what == "short record":
        things[number][2].pop()
    elif what == "too long":
        things[things[number][2][0][1]][3] = [10**6]
    elif what == "no block":
        things[things[number][2][0][1]][1] = "a0_nothing"
    else:
        return {}
    return about


DAMAGES = [
    "renamed",
    "lost object",
    "lost thing",
    "unknown class",
    "unknown module",
    "foreign module",
    "no class",
    "short record",
    "too long",
    "no block",
    "empty",
]


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_refused_and_changes_nothing(what: str, tmp_path: Path) -> None:
    state, into, same = fresh(Own()), fresh(Own()), fresh(Own())
    past, _ = resume_crawl(state, 0, 80)
    arrays, about = snapshot(objects(state)) or ({}, {})
    with pytest.raises(ValueError, match=r"saved|attributes"):
        restore(objects(into), arrays, changed(about, what))
    assert "antigravity" not in sys.modules  # nothing foreign is imported
    assert_same_state(into, same)
    replay(into, past)  # as a crawl would do now
    assert_same_state(into, state)
    through_disk(tmp_path, state, same)  # the undamaged one is taken


def test_an_attribute_without_a_place_is_refused() -> None:
    arrays, about = snapshot({"it": Slotted()}) or ({}, {})
    about["objects"]["it"]["more"] = 1
    with pytest.raises(ValueError, match="other attributes: more"):
        restore({"it": Slotted()}, arrays, about)

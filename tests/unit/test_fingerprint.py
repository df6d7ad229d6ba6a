"""Fingerprints: constant during a crawl, different for another class, setting or code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import surveyor.store.snapshot as fingerprints
from crawl_states import MADE, Own, fresh, objects, resume_crawl
from surveyor.crawler.strategies import by_name
from surveyor.store.snapshot import fingerprint, restore, snapshot


class Other(Own):
    """The same, by another name."""


class Plain:
    """Nothing."""


class Empty:
    """Nothing either."""


@pytest.mark.parametrize(
    ("strategy", "seeds"),
    [
        (Other(), (0, 7)),
        (by_name("rankmass"), (0, 7)),
        (Own(0.4), (0, 7)),
        (Own(), (0, 8)),
        (Own(), (0,)),
    ],
    ids=["class", "strategy", "setting", "seeds", "seed"],
)
def test_objects_made_in_another_way_are_refused(strategy: Any, seeds: tuple[int, ...]) -> None:
    state = fresh(Own())
    arrays, about = snapshot(objects(state)) or ({}, {})
    with pytest.raises(ValueError, match="other classes, settings or code"):
        restore(objects(fresh(strategy, seeds)), arrays, about)
    with pytest.raises(ValueError, match="other classes, settings or code"):
        restore({**objects(fresh(Own())), "more": Plain()}, arrays, about)
    restore(objects(fresh(Own())), arrays, about)


def test_every_strategy_and_setting_has_a_fingerprint_of_its_own() -> None:
    assert fingerprint({"it": Plain()}) != fingerprint({"it": Empty()})
    assert fingerprint({"it": Plain()}) != fingerprint({"other": Plain()})
    assert len({fingerprint({"strategy": make()}) for make in MADE.values()}) == len(MADE)


@pytest.mark.parametrize("name", MADE)
def test_it_stays_the_same_during_a_crawl(name: str) -> None:
    state = fresh(MADE[name]())
    before = fingerprint(objects(state))
    resume_crawl(state, 0, 150)
    assert fingerprint(objects(state)) == before


def test_other_code_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint({"it": Plain()})
    monkeypatch.setattr(fingerprints, "_own_code", lambda: b"another release")
    assert fingerprint({"it": Plain()}) != before
    monkeypatch.undo()
    edited = tmp_path / "edited.py"
    edited.write_text(Path(__file__).read_text("utf-8") + "\n", "utf-8")
    monkeypatch.setattr(f"{__name__}.__file__", str(edited))
    assert fingerprint({"it": Plain()}) != before

"""Checkpoints: what was saved comes back, and nothing else ever does."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from surveyor.errors import UsageError
from surveyor.store import checkpoint
from surveyor.store.checkpoint import load, save

AnyArray = npt.NDArray[np.float64]
NUMBERS: dict[str, npt.NDArray[Any]] = {"residual": np.linspace(0, 1, 50), "state": np.arange(50, dtype=np.uint8)}


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True),
        st.sampled_from(["<f8", "<i4", "<u8", "|u1", "|b1"]).flatmap(
            lambda kind: arrays.arrays(kind, arrays.array_shapes(max_dims=2, max_side=5, min_side=0))
        ),
        max_size=4,
    ),
    st.integers(0, 10**13),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=3),
)
def test_gives_back_what_was_saved(given: dict[str, AnyArray], position: int, about: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "checkpoint"
        assert save(here, given, position=position, key="j.0", about=about)
        found = load(here, position=position, key="j.0")
        assert found is not None
        assert found.position == position
        assert found.about == about
        assert found.arrays.keys() == given.keys()
        for name, array in given.items():
            assert found.arrays[name].dtype == array.dtype
            assert found.arrays[name].tobytes() == array.tobytes()
            assert found.arrays[name].shape == array.shape


def test_takes_the_latest_that_is_not_ahead_of_the_journal(tmp_path: Path) -> None:
    for position in (10, 20, 30):
        assert save(tmp_path, {"at": np.array([position])}, position=position, key="k")
    for position, expected in ((100, 30), (30, 30), (29, 20), (20, 20), (19, None)):  # two are kept
        found = load(tmp_path, position=position, key="k")
        assert (found and found.position) == expected
        assert found is None or found.arrays["at"] == [expected]
    assert load(tmp_path, position=100, key="another journal") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{20:012d}", f"{30:012d}"]
    assert save(tmp_path, {"at": np.array([31])}, position=30, key="k")  # again, at the same place
    found = load(tmp_path, position=30, key="k")
    assert found is not None
    assert found.arrays["at"] == [31]


def test_any_damage_is_passed_over(tmp_path: Path) -> None:
    assert save(tmp_path, NUMBERS, position=5, key="k")
    assert save(tmp_path, NUMBERS, position=9, key="k")
    place = tmp_path / f"{9:012d}"
    for file in sorted(place.iterdir()):
        whole = file.read_bytes()
        for at in range(0, len(whole) - 2, len(whole) // 40):  # the newline at the end of a header says nothing
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            changed = load(tmp_path, position=9, key="k")
            assert changed is not None
            assert changed.position == 5
            np.testing.assert_array_equal(changed.arrays["residual"], NUMBERS["residual"])
            file.write_bytes(whole[:at])
            torn = load(tmp_path, position=9, key="k")
            assert torn is not None
            assert torn.position == 5
        file.unlink()
        missing = load(tmp_path, position=9, key="k")
        assert missing is not None
        assert missing.position == 5
        file.write_bytes(whole)
    assert load(tmp_path, position=8, key="k") is not None


@pytest.mark.parametrize("header", ["[]", "{}", '{"checksum": 3}', "null", '"x"'])
def test_headers_that_are_something_else(tmp_path: Path, header: str) -> None:
    assert save(tmp_path, NUMBERS, position=5, key="k")
    (tmp_path / f"{5:012d}" / "header.json").write_text(header)
    assert load(tmp_path, position=5, key="k") is None


def test_another_version_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "VERSION", 99)
        assert save(tmp_path, NUMBERS, position=5, key="k")
        assert load(tmp_path, position=5, key="k") is not None
    assert load(tmp_path, position=5, key="k") is None
    header = tmp_path / f"{5:012d}" / "header.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "version": checkpoint.VERSION}))
    assert load(tmp_path, position=5, key="k") is None  # the checksum covers the header


def test_a_folder_that_is_missing_or_none(tmp_path: Path) -> None:
    assert load(tmp_path / "nothing", position=5, key="k") is None
    (tmp_path / "file").touch()
    assert load(tmp_path / "file", position=5, key="k") is None
    assert not save(tmp_path / "file", NUMBERS, position=5, key="k")


def test_a_full_disk_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert save(tmp_path, NUMBERS, position=5, key="k")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert not save(tmp_path, NUMBERS, position=6, key="k")
    assert [path.name for path in tmp_path.iterdir()] == [f"{5:012d}"]
    found = load(tmp_path, position=6, key="k")
    assert found is not None
    assert found.position == 5


@pytest.mark.parametrize(
    ("name", "array"), [("../out", np.zeros(1)), ("", np.zeros(1)), ("objects", np.array([None], dtype=object))]
)
def test_refuses_what_is_no_array_of_numbers(tmp_path: Path, name: str, array: AnyArray) -> None:
    with pytest.raises(UsageError, match="cannot be saved in a checkpoint"):
        save(tmp_path, {name: array}, position=1, key="k")

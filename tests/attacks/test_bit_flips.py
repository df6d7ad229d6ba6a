"""Single bits that flip on disk: no output changes unless damage is reported."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attack import attack
from experiments import flips

from surveyor.crawler import session as live
from surveyor.store.database import connect

FLIPS = 12  # in each place; the experiment makes 300
PLACES = ("journal", "wal", "checkpoint", "graph", "archive")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "SAVE_EVERY", live.SAVE_EVERY)  # which `make` sets
        patch.setattr(live, "SAVE_SHARE", live.SAVE_SHARE)
        yield flips.make(tmp_path_factory.mktemp("flips"))


@attack(
    "one bit flips in a journal, its log, a checkpoint, a graph folder or an archive",
    area="journal and archives",
    must_hold="every reader gives the same output as before or reports damage",
    inputs=FLIPS,
)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.slow
def test_no_flip_is_silent(sources: dict[str, Path], tmp_path: Path, place: str) -> None:
    figures = flips.flip_often(place, sources[place], FLIPS, tmp_path, seed=2)
    assert not figures.silent, figures.silent
    assert set(figures.counts) <= {"unchanged", "reported"}
    assert sum(figures.counts.values()) == FLIPS
    if place == "checkpoint":
        assert figures.by_doctor == FLIPS  # each is found, though none is needed
    else:
        assert figures.counts["reported"] > FLIPS / 2


@pytest.mark.slow
def test_a_flip_that_is_not_noticed_would_be_seen(sources: dict[str, Path], tmp_path: Path) -> None:
    """The experiment can fail: an old row that changes under right checksums gives another output."""
    survey = tmp_path / "a.survey"
    shutil.copytree(sources["journal"], survey)
    readers = {"sql": flips.READERS["journal"]["sql"]}
    before = flips.outputs(readers, survey)
    with closing(connect(survey / "journal.sqlite", write=True)) as connection:
        connection.execute("UPDATE robots SET body = x'00'")
    assert flips.judge(before, flips.outputs(readers, survey)) == "SILENT"

"""The folder `live/` of a survey: what is read from it, whatever is in it, and commands that are sent through it."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surveyor.errors import SurveyError, UsageError
from surveyor.store import published
from surveyor.store.layout import check_survey

SENT = f"{7:020d}-0123abcd.json"


COVERAGE: dict[str, Any] = {
    **dict.fromkeys(("captured", "moving", "waiting", "blocked", "lost"), 0.2),
    "at_least": 0.2,
    "at_most": 0.8,
    "sampled": None,
}


def state(**changes: Any) -> dict[str, Any]:
    """Return a valid state of this process."""
    counts = dict.fromkeys(("pages", "before", "known", "queued", "requests", "bytes", "hosts", "in_progress"), 3)
    made: dict[str, Any] = {
        "version": 1,
        "pid": os.getpid(),
        "machine": socket.gethostname(),
        "command": "crawl",
        "started_at": time.time(),
        "written_at": time.time(),
        "status": "running",
        "ending": None,
        "goal": "coverage 90 %",
        "strategy": "rankmass",
        **counts,
        "coverage": None,
        "blocked": [{"reason": "robots", "pages": 2, "mass": 0.1}],
        "statuses": {"fetched": 3},
        "http": {"200": 3},
        "rate": 1.5,
        "left": None,
        "best_possible": None,
        "next": [{"url": "http://a.example/", "mass": 0.5, "why": "50.0 % of the importance waits here"}],
        "recent": [],
        "hosts_waiting": [],
        "messages": [],
        "taken": [],
        "listening": True,
    }
    return {**made, **changes}


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A survey as far as this folder is concerned, with a crawl that runs."""
    (tmp_path / "survey.toml").write_text("")
    published.prepare(tmp_path)
    published.write_state(tmp_path, state())
    return tmp_path


def test_what_is_written_is_read(survey: Path) -> None:
    found = published.read(survey)
    assert found is not None
    assert found["next"][0]["url"] == "http://a.example/"
    assert published.is_running(found)
    assert published.read(str(survey)) == found
    assert sorted(path.name for path in (survey / "live").iterdir()) == ["commands", "state.json"]


def test_a_reason_that_is_no_unicode_is_published(survey: Path) -> None:
    published.write_state(survey, state(coverage=COVERAGE, messages=["disk \udcff é"]))
    found = published.read(survey)
    assert found is not None
    assert found["messages"] == ["disk ? é"]
    assert found["coverage"] == COVERAGE


def test_a_state_without_its_process_is_not_running() -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert not published.is_running(None)
    assert not published.is_running(state(status="ended", ending="reached"))
    assert not published.is_running(state(pid=int(child.stdout)))
    assert not published.is_running(state(written_at=time.time() - 1000))
    assert not published.is_running(state(written_at=time.time() + 1000))
    assert published.is_running(state(machine="another", pid=int(child.stdout)))  # its processes are not known here
    assert not published.is_running(state(machine="another", written_at=time.time() - 60))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        "\x00" * 100,
        "[" * 100_000,
        "9" * 5000,
        json.dumps(state(pid=-1)),
        json.dumps(state(pid=True)),
        json.dumps(state(pid=1 << 40)),
        json.dumps(state(pages=-1)),
        json.dumps(state(pages="3")),
        json.dumps(state(rate=math.nan)),
        json.dumps(state(rate=math.inf)),
        json.dumps(state(rate=10**400)),  # no float holds it
        json.dumps(state(left=1e300)),
        json.dumps(state(written_at=-(10**400))),
        json.dumps(state(best_possible=1.5)),
        json.dumps(state(coverage=COVERAGE | {"at_least": 1e308})),
        json.dumps(state(coverage=COVERAGE | {"captured": -1.0})),
        json.dumps(state(blocked=[{"reason": "robots", "pages": 2, "mass": 1e308}])),
        json.dumps(state(goal="\ud800")),  # half of a pair is no text
        json.dumps(state(messages=["\udcff"])),
        json.dumps(state(status="crawling")),
        json.dumps(state(version=2)),
        json.dumps(state(next=[{"url": 1, "mass": 0.5, "why": ""}])),
        json.dumps(state(next=[{"url": "", "mass": 0.5}])),
        json.dumps(state(next=state()["next"] * 11)),
        json.dumps(state(messages=["x" * 100_000])),
        json.dumps(state(http={"200": "many"})),
        json.dumps(state(coverage={"at_least": 0.5})),
        json.dumps(state(goal="x" * 2_000_000)),
        json.dumps({name: value for name, value in state().items() if name != "written_at"}),
    ],
)
def test_a_damaged_state_reads_as_none(survey: Path, text: str) -> None:
    (survey / "live" / "state.json").write_text(text)
    assert published.read(survey) is None
    with pytest.raises(SurveyError, match="no crawl or watch is running"):
        published.send(survey, "pause")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    path.symlink_to(path.parent.parent / "private")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
@pytest.mark.parametrize("make", [fifo, folder, link])
@pytest.mark.parametrize("name", ["state.json", "curve.tsv", f"commands/{SENT}"])
def test_what_is_no_plain_file_is_not_opened(survey: Path, make: Callable[[Path], None], name: str) -> None:
    (survey / "private").write_text(json.dumps(state()) if name != "curve.tsv" else "1\t1\t0\t1\t\n")
    path = survey / "live" / name
    path.unlink(missing_ok=True)
    (survey / "live" / "commands").mkdir(exist_ok=True)
    make(path)
    assert name != "state.json" or published.read(survey) is None
    assert published.curve(survey).pages.size == 0
    stuck: set[str] = set()
    found = list(published.take_commands(survey, stuck)) + list(published.take_commands(survey, stuck))
    if name.startswith("commands"):
        assert [text for text in found if isinstance(text, str) and "is not a plain file" in text] == found
        assert len(found) == 1  # not again and again
    assert (survey / "private").read_text()
    check_survey(survey)  # what is wrong there keeps no survey from being opened


@pytest.mark.parametrize("name", ["", "commands"])
def test_a_link_in_place_of_a_folder_is_not_followed(
    survey: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / SENT).write_text('{"command": "stop"}')
    (other / "commands").mkdir()
    (other / "commands" / SENT).write_text('{"command": "stop"}')
    published.discard(survey)
    if name:
        (survey / "live").mkdir()
    (survey / "live" / name if name else survey / "live").symlink_to(other)
    with pytest.raises(OSError, match="plain folder"):
        published.prepare(survey)
    with pytest.raises(OSError, match="plain folder"):
        list(published.take_commands(survey, set()))
    published.discard(survey)
    assert (other / SENT).is_file()
    assert (other / "commands" / SENT).is_file()


def test_commands_arrive_once_and_in_order(survey: Path) -> None:
    sent = [published.send(survey, "pause"), published.send(survey, "goal", "coverage=0.9")]
    sent.append(published.send(survey, "resume"))
    found = list(published.take_commands(survey, set()))
    assert found == [
        published.Command(sent[0], "pause"),
        published.Command(sent[1], "goal", "coverage=0.9"),
        published.Command(sent[2], "resume"),
    ]
    assert not list(published.take_commands(survey, set()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pause",
        "[]",
        '{"command": "delete"}',
        '{"command": "goal"}',
        '{"command": "pause", "value": "now"}',
        '{"command": ["pause"]}',
        '{"command": "goal", "value": 3}',
        "[" * 9_000,
        " " * 20_000 + '{"command": "pause"}',
    ],
)
def test_a_damaged_command_is_removed_with_a_message(survey: Path, text: str) -> None:
    (survey / "live" / "commands" / SENT).write_text(text)
    (survey / "live" / "commands" / "note.txt").write_text("not a command")
    (message,) = published.take_commands(survey, set())
    assert isinstance(message, str)
    assert SENT in message
    assert "ignored" in message
    assert not list(published.take_commands(survey, set()))


def test_commands_from_before_a_run_are_discarded(survey: Path) -> None:
    published.send(survey, "stop")
    (survey / "live" / "commands" / "folder").mkdir()
    published.prepare(survey)
    assert not list(published.take_commands(survey, set()))


@pytest.mark.parametrize(
    ("command", "value", "text"),
    [
        ("delete", None, "command must be one of pause, resume, stop, goal, got 'delete'"),
        ("goal", None, "goal needs a stopping rule"),
        ("pause", "now", "pause takes no value, got 'now'"),
        ("goal", "coverage=2", "coverage"),
        ("goal", "", "rule"),
    ],
)
def test_wrong_commands_are_not_sent(survey: Path, command: str, value: str | None, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        published.send(survey, command, value)
    assert not list((survey / "live" / "commands").iterdir())


def test_a_command_that_is_not_taken_is_withdrawn(survey: Path) -> None:
    sent = published.send(survey, "pause")
    with pytest.raises(SurveyError, match="did not take the command"):
        published.wait_until_taken(survey, sent, 0.2)
    assert not list((survey / "live" / "commands").iterdir())
    taken = {"id": sent, "command": "pause", "value": "", "problem": ""}
    published.write_state(survey, state(taken=[taken], status="paused"))
    assert published.wait_until_taken(survey, sent, 0.2)["status"] == "paused"
    published.write_state(survey, state(taken=[{**taken, "problem": "it has no goal"}]))
    with pytest.raises(UsageError, match="it has no goal"):
        published.wait_until_taken(survey, sent, 0.2)
    published.write_state(survey, state(status="ended", ending="reached"))
    with pytest.raises(SurveyError, match="has ended"):
        published.wait_until_taken(survey, sent, 0.2)


def test_the_curve_is_read_up_to_the_first_damage(survey: Path) -> None:
    rows: list[tuple[float, ...]] = [(1.0, 0.5, 0.1, 0.9, math.nan), (2.0, 1.5, 0.2, 0.8, 0.3)]
    published.write_points(survey, rows)
    published.append_point(survey, (3.0, 2.5, math.nan, math.nan, math.nan))
    found = published.curve(survey)
    assert found.pages.tolist() == [1, 2, 3]
    assert found.seconds.tolist() == [0.5, 1.5, 2.5]
    assert found.at_most.tolist()[:2] == [0.9, 0.8]
    assert math.isnan(found.sampled[0])
    for damage in ("4\t1\t0\t1\t\n", "4\t9\t0\n", "x\t9\t0\t1\t\n", "4\tnan\t0\t1\t\n", "-4\t9\t0\t1\t\n", "\xff\n"):
        path = survey / "live" / "curve.tsv"
        published.write_points(survey, rows)
        path.write_bytes(path.read_bytes() + damage.encode("latin-1"))
        assert published.curve(survey).pages.tolist() in ([1, 2], [])  # [] where it is no text
    path.write_bytes(b"1\t1\t0\t1\t\n" * 200_000)
    assert published.curve(survey).pages.size == 0  # too large

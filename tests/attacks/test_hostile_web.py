"""A small crawl of honest pages among hosts that do everything wrong; the large one is `experiments.hostile_web`."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from attack import attack
from experiments.hostile_hosts import faults
from experiments.hostile_server import HonestHost, HostileWeb, serving
from experiments.hostile_web import Outcome, crawl, problems, show

PAGES = 60
SLOW = {"slow headers", "slow body", "calendar without end", "a million tags"}  # in the large experiment only
FAULTS = [fault for fault in faults() if fault.name not in SLOW]


@pytest.fixture
def addresses() -> None:
    try:
        with socket.socket() as one:
            one.bind(("127.0.2.1", 0))
    except OSError:
        pytest.skip("this system answers at 127.0.0.1 alone")


def honest(folder: Path) -> HonestHost:
    pages = {f"/{number}.html": b"" for number in range(PAGES)}
    for number, path in enumerate(pages):
        links = f"<a href={(number * 7 + 1) % PAGES}.html>next</a><a href=/{number // 2}.html>back</a>"
        (folder / path[1:]).write_text(f"<title>Page {number}</title><p>Text of page {number}. {links}")
    return HonestHost("docs", folder, pages)


@attack(
    "honest pages among hosts with one fault each, crawled by the command line",
    area="traps and limits",
    must_hold="all honest pages are fetched, each fault is reported, nothing but loopback is contacted, exit code 3",
    inputs=len(FAULTS),
)
@pytest.mark.usefixtures("addresses")
@pytest.mark.slow
def test_a_crawl_among_hostile_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "run").mkdir()
    with serving(HostileWeb([honest(tmp_path / "docs")], FAULTS)) as web:
        found = crawl(web, tmp_path / "run", timeout=5.0, budget=PAGES + 5)
        assert problems(web, found) == []
        show(web, found)
    printed = capsys.readouterr().out
    assert all(f"| {fault.name} |" in printed for fault in FAULTS)
    assert f"{PAGES} of {PAGES} honest pages fetched" in printed


@pytest.mark.slow
def test_the_checks_can_fail() -> None:
    web = HostileWeb([HonestHost("docs", None, {"/a.html": b"x"})], FAULTS, port=1)
    good = Outcome(3, 1.0, 1, dict.fromkeys(web.honest_pages(), "fetched"), [], "")
    everything = problems(web, replace(good, pages={}))
    assert any("1 honest pages were not fetched" in one for one in everything)
    assert all(any(one.startswith(f"{fault.name}: reported as") for one in everything) for fault in FAULTS)
    web.requests["127.0.2.1"] = 1000
    assert any(f"{FAULTS[0].name}: 1,000 requests" in one for one in problems(web, good))
    for change, sentence in [
        ({"code": 1, "errors": "Traceback"}, "exit code is 1"),
        ({"memory": 10**10}, "MB of memory"),
        ({"seconds": 1e6}, "took more than"),
        ({"attempts": ["socket.connect ('10.0.0.1', 80)"]}, "left loopback"),
    ]:
        assert any(sentence in one for one in problems(web, replace(good, **change)))  # type: ignore[arg-type]

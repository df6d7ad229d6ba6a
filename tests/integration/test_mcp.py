"""`surveyor mcp` through the official client: every tool, crawls within limits, stdout, signals, the command line."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from loopback import linked, served
from mcp_sessions import CRAWLS, READS, SECONDS, SITE, crawled, session, user, within
from surveyor.cli import mcp as command
from surveyor.integrations.mcp import crawling, reading
from surveyor.serve.jobs import Jobs


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served(SITE) as url:
        yield url


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, site: str) -> Path:
    return crawled(tmp_path_factory.mktemp("home"), site)


def test_every_tool_that_reads(home: Path, site: str) -> None:
    """Among them, one over a survey that has no tables and no check yet."""

    async def work() -> None:
        async with session(home, "site.survey") as server:
            tools = (await server.client.list_tools()).tools
            assert [tool.name for tool in tools] == READS
            for tool in tools:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint
                assert tool.output_schema is not None  # with which the client compares every answer
            listed, _, _ = await server.call("surveys")
            assert [row["survey"] for row in listed["surveys"]] == ["site"]
            found, text, _ = await server.call("coverage", survey="site")
            with sv.open(home / "site.survey") as survey:
                truth = survey.coverage
            assert truth is not None
            assert found["coverage"]["at_least"] == pytest.approx(truth.at_least)
            assert found["coverage"]["at_most"] == pytest.approx(truth.at_most)
            accounts = ("captured", "moving", "waiting", "blocked", "lost")
            assert sum(found["coverage"][name] for name in accounts) == pytest.approx(1)
            assert {*accounts, "at_least", "at_most", "sampled"} <= found["meaning"].keys()
            assert "the certified coverage is from 71.2 % to 96.3 %" in text
            top, text, _ = await server.call("top", survey="site", limit=3, status="fetched")
            assert [page["title"] for page in top["pages"]] == ["Home", "Docs", "One"]
            assert top["total"] == 5
            assert top["from_the_web"] == ["pages[].url", "pages[].title"]
            marked = re.search(r"<web ([0-9a-f]{16})>\n(.*)\n</web \1>", text, re.DOTALL)
            assert marked is not None
            assert "Docs" in marked[2]
            assert "Docs" not in text.replace(marked[2], "")
            page, _, _ = await server.call("page", survey="site", url=f"{site}a", text_limit=40)
            assert page["page"]["title"] == "Page A"
            assert (page["text"], page["text_is_cut"]) == ("Some words that are worth reading. Some ", True)
            same, text, _ = await server.call("page", survey="site", id=page["page"]["id"], text_limit=0)
            assert (same["page"], same["text"]) == (page["page"], "")
            why, _, _ = await server.call("explain", survey="site", url=f"{site}b")
            links = {one["name"]: one["fraction"] for one in why["contributions"] if one["kind"] == "link"}
            assert links.keys() == {site, f"{site}a"}
            assert sum(one["fraction"] for one in why["contributions"]) == pytest.approx(1)
            blocked, _, _ = await server.call("blocked", survey="site")
            assert [page["url"] for page in blocked["pages"]] == [f"{site}private/x"]
            assert "Disallow: /private/" in blocked["reasons"][0]["reason"]
            findings, _, _ = await server.call("findings", survey="site", rule="broken-link")
            assert [one["url"] for one in findings["findings"]] == [f"{site}gone"]
            both, _, _ = await server.call("search", survey="site", words="PAGE b")
            assert [page["title"] for page in both["pages"]] == ["Page B"]
            assert (await server.call("search", survey="site", words="nowhere"))[0]["total"] == 0

    shutil.rmtree(home / "site.survey" / "view", ignore_errors=True)
    within(work())


def test_nothing_but_the_protocol_is_on_stdout(home: Path) -> None:
    """Also if the first lines are none of it; the server ends when stdin does."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "surveys", "arguments": {}}}
    sent = f"no JSON\n[]\n{json.dumps(hello)}\n{json.dumps(ready)}\n{json.dumps(call)}\n"
    words = [sys.executable, "-m", "surveyor", "mcp", "site.survey", "-v"]
    child = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(sent)
    child.stdin.flush()
    lines: list[str] = []
    while not lines or json.loads(lines[-1]).get("id") != 2:
        lines.append(child.stdout.readline())
        assert json.loads(lines[-1])["jsonrpc"] == "2.0"
    rest, _ = child.communicate(timeout=SECONDS)
    assert rest == ""
    assert child.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_a_signal_ends_the_server_although_stdin_is_open(number: int, home: Path) -> None:
    words = [sys.executable, "-m", "surveyor", "mcp", "site.survey"]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"no JSON\n{}\n")
    child.stdin.flush()
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    child.stdin.write(json.dumps(call).encode() + b"\n")
    child.stdin.flush()
    while json.loads(child.stdout.readline()).get("id") != 1:
        pass
    child.send_signal(number)
    assert child.wait(30) == 128 + number
    for stream in (child.stdin, child.stdout, child.stderr):
        assert stream is not None
        stream.close()


INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


# Crawls


@pytest.mark.slow
def test_a_crawl_within_limits(site: str, home: Path, tmp_path: Path) -> None:
    async def work() -> None:
        words = ["--allow-crawl", "--max-pages", "4", "--max-minutes", "5", "--scope", "host"]
        async with session(tmp_path, *words, **user(site)) as server:
            tools = {tool.name: tool for tool in (await server.client.list_tools()).tools}
            assert [*tools] == [*READS, *CRAWLS]
            assert tools["crawl"].annotations is not None
            assert not tools["crawl"].annotations.read_only_hint
            assert "at most 4 pages and 5 minutes" in (tools["crawl"].description or "")
            for arguments, expected in (
                ({"url": site, "pages": 5}, "Pages must be a whole number from 1 to 4, got 5"),
                ({"url": site, "minutes": 6}, "Minutes must be a number from 0.05 to 5.0, got 6"),
                ({"url": site, "scope": "any"}, "Scope must be at most host, got any"),
                ({"url": site, "coverage": 1}, "Coverage must be a number from 0.001 to 0.999"),
                ({"url": site, "delay": 0}, "There is no argument 'delay'"),
                ({"url": "ftp://a.example/"}, "Url must be an address of http or https"),
                ({"url": "--out=elsewhere"}, "Url must be an address of http or https"),
                ({"url": "/etc/passwd"}, "Url must be an address of http or https"),
                ({"url": "http://a.example/\nhttp://b.example/"}, "Url must be an address of http or https"),
            ):
                _, text, failed = await server.call("crawl", **arguments)
                assert failed
                assert text.startswith(expected), text
            assert (await server.call("crawl_status"))[1].startswith("No crawl was started")
            begun, text, failed = await server.call("crawl", url=site, pages=3)
            assert not failed, text
            name = begun["survey"]
            ended = await server.wait(lambda found: not found["is_running"], "crawl_status")
            assert ended["state"]["pages"] == 3
            assert ended["left"]["pages"] == 1
            assert (await server.call("crawl_stop"))[0]["is_running"] is False
            await server.call("crawl", url=site, pages=4)  # continues the survey, with what is left
            ended = await server.wait(lambda found: not found["is_running"], "crawl_status")
            assert (ended["survey"], ended["state"]["pages"], ended["granted"]["pages"]) == (name, 4, 1)
            _, text, failed = await server.call("crawl", url=f"{site}docs/")
            assert failed
            assert text.startswith("The limit of the user is reached: 4 pages and")
            top, _, _ = await server.call("top", survey=name, status="fetched")
            assert top["total"] == 4

    shutil.copytree(home / "site.survey", tmp_path / f"{site.partition('//')[2].strip('/').replace(':', '_')}.survey")
    before = snapshot_of(tmp_path)
    within(work())
    assert before.items() <= snapshot_of(tmp_path).items()  # a survey of the same site that the user has not named
    assert len([*tmp_path.glob("*.survey")]) == 2


def snapshot_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.name in ("survey.toml", "journal.sqlite")
    }


@pytest.mark.slow
def test_minutes_end_a_crawl(tmp_path: Path) -> None:
    pages = {f"/{number}": linked(f"/{number + 1}") for number in range(1, 5_000)}

    async def work() -> None:
        async with session(tmp_path, "--allow-crawl", "--max-minutes", "0.06", **user(url)) as server:
            began = time.monotonic()
            await server.call("crawl", url=url, minutes=0.05)
            ended = await server.wait(lambda found: not found["is_running"], "crawl_status")
            assert 3 <= time.monotonic() - began < 30
            assert ended["state"]["pages"] > 0
            _, text, failed = await server.call("crawl", url=url)
            assert failed
            assert text.startswith("The limit of the user is reached")

    with served({"/": linked("/1"), **pages}) as url:
        within(work())


@pytest.mark.slow
def test_a_crawl_that_does_not_end_by_itself_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here its last seconds are taken from it."""
    monkeypatch.setattr(crawling, "OVERTIME", -48.0)
    pages = {f"/{number}": linked(f"/{number + 1}") for number in range(1, 5_000)}

    async def work() -> None:
        jobs = Jobs(tethered=True)
        crawls = crawling.Crawls(jobs, crawling.Limits(home=tmp_path))
        try:
            crawl = await crawls.start(url, None, None, 1.0, "host")
            while crawl.job.is_running:
                await asyncio.sleep(0.05)
            assert crawl.job.stopped
            assert crawls.left()["pages"] < crawling.PAGES
        finally:
            await jobs.close()
            crawls.close()

    with served({"/": linked("/1"), **pages}) as url:
        for name, value in (user(url) | {"SURVEYOR_DELAY": "0.2"}).items():
            monkeypatch.setenv(name, value)
        within(work())


# The command


def test_crawls_need_a_contact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SURVEYOR_CONTACT", raising=False)
    printed = CommandResult(capsys, "mcp", "--allow-crawl")
    assert (printed.code, printed.out) == (2, "")
    assert "--allow-crawl needs a contact" in printed.err
    monkeypatch.setenv("SURVEYOR_CONTACT", "me@example.org")
    printed = CommandResult(capsys, "mcp", "--allow-crawl", "--out", "nowhere")
    assert (printed.code, printed.out) == (2, "")
    assert "nowhere is not a folder" in printed.err


def test_without_the_extra_one_sentence_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    printed = CommandResult(capsys, "mcp", "x")
    assert (printed.code, printed.out) == (2, "")
    assert "surveyor mcp needs mcp" in printed.err
    assert "pip install 'surveyor[mcp]'" in printed.err


def test_the_guide_has_every_tool_with_its_arguments() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "agents.md").read_text("utf-8")
    rows = {name: re.findall(r"`(\w+)`", given) for name, given in re.findall(r"\| `(\w+)` \|(.*?)\|", guide)}
    tools = (*reading.TOOLS, *crawling.tools(crawling.Limits()))
    assert rows == {tool.name: [one.name for one in tool.arguments] for tool in tools}


def test_the_help_names_the_defaults() -> None:
    assert (command.PAGES, command.MINUTES, command.SCOPES) == (crawling.PAGES, crawling.MINUTES, crawling.SCOPES)
    names = [tool.name for tool in (*reading.TOOLS, *crawling.tools(crawling.Limits()))]
    assert names == [*READS, *CRAWLS]

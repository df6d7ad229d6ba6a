"""Hostile pages: nothing raises beneath the boundary, and what the crawl does not parse itself can be stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attack import attack
from hostile_pages import HTML, hostile_pages

from surveyor.fetch.parser import Parser
from surveyor.web.boundary import Failure
from surveyor.web.html import Page, read_cheap_page, read_page
from surveyor.web.markup import CHEAP_ATTRIBUTES, CHEAP_LENGTH, CHEAP_TAGS, SMALL, cheap, tame
from surveyor.web.references import Addresses
from surveyor.web.urls import normalise

URL = "https://example.org/dir/page"
PAGES = {name: (body, headers) for name, body, headers in hostile_pages()}
LIMIT = 20.0  # seconds, on a machine that is busy


@asynccontextmanager
async def parsing(seconds: float = LIMIT) -> AsyncIterator[Parser]:
    parser = Parser(seconds)
    try:
        yield parser
    finally:
        await parser.close()


def parsed(body: bytes, headers: Mapping[str, str] = HTML) -> Page | Failure:
    async def ask() -> Page | Failure:
        async with parsing() as parser:
            return await parser.page(URL, headers, body)

    return asyncio.run(ask())


def test_there_are_sixty() -> None:
    assert len(PAGES) >= 60


@attack(
    "hostile pages beneath the boundary",
    area="pages",
    must_hold="nothing raises; the crawl itself parses only what is short and has few tags, the worker the rest",
)
@pytest.mark.parametrize("name", list(PAGES))
def test_a_hostile_page_is_read_or_left_to_the_worker(name: str) -> None:
    body, headers = PAGES[name]
    page = read_cheap_page(body, URL, headers, Addresses(normalise))
    assert page is None or (len(body) <= 2 * CHEAP_LENGTH and body.count(b"<") <= CHEAP_TAGS)


@pytest.mark.slow
@attack(
    "hostile pages through the worker",
    area="pages",
    must_hold="each ends with links or a reason, and the worker answers the next page",
    inputs=len(PAGES),
)
def test_hostile_pages_through_the_worker() -> None:
    async def ask() -> dict[str, Page | Failure]:
        async with parsing() as parser:
            return {name: await parser.page(URL, headers, body) for name, (body, headers) in PAGES.items()}

    found = asyncio.run(ask())
    assert [name for name, page in found.items() if isinstance(page, Failure)] == []


def test_the_worker_reads_what_the_crawl_would() -> None:
    body = """<html lang=en><title>Hi ☃</title><meta name=robots content="noarchive, unavailable_after: 2030-01-01">
    <link rel=canonical href=/c><a href=b#c>x</a><a rel=nofollow href=/d>y</a>""".encode()
    here = read_page(body, URL, headers=HTML, text=False, addresses=Addresses(normalise))
    assert len(here.links) == 2
    assert here.unavailable_after is not None
    assert parsed(body) == here == read_cheap_page(body, URL, HTML, Addresses(normalise))


@pytest.mark.parametrize("times", [1, 4])
def test_pieces_handed_to_the_parser_grow_with_the_page_and_none_is_large(times: int) -> None:
    pieces, cut = tame("<p>x</p>" * 20_000 * times)
    assert not cut
    assert max(piece.count("<") for piece in pieces) <= 2_000
    assert len(pieces) <= 1 + 40 * times


def _is_cheap(html: str) -> bool:
    return cheap(html, html.encode()) is not None


def test_a_tag_of_too_many_attributes_is_not_cheap_wherever_it_hides() -> None:
    crowded = " ".join(f"x{at}" for at in range(CHEAP_ATTRIBUTES + 1))
    rest = "<p>some text, and more of it</p>" * 900
    assert len(rest) > SMALL
    hidden = ['<a =">', "<svg><title>", "<!-->", "<a x=>", "<a x='>'>", "</a b c>", "<a\u00a0b>"]
    assert _is_cheap(rest)
    for before in hidden:
        assert not _is_cheap(f"{before}<b {crowded}>{rest}"), before
    quoted = " ".join(f'x{at}=">"' for at in range(CHEAP_ATTRIBUTES + 1))
    assert not _is_cheap(f"<b {quoted}>{rest}")
    others = " ".join(map(chr, range(0x4E00, 0x4E00 + SMALL // 3)))
    assert not _is_cheap(f"<b {others}>")  # short names, and many of them


@attack(
    "a parser that hangs",
    area="pages",
    must_hold="it is killed on a time limit, the page is blocked with that reason, and the next page is parsed",
)
def test_a_parser_that_hangs_is_stopped_and_replaced() -> None:
    async def ask() -> tuple[Page | Failure, Page | Failure]:
        async with parsing(0.5) as parser:
            await parser.page(URL, HTML, b"<a href=/x>")
            worker = parser._process
            assert worker is not None
            os.kill(worker.pid, signal.SIGSTOP)
            hung = await parser.page(URL, HTML, b"<a href=/x>")
            parser._seconds = LIMIT
            return hung, await parser.page(URL, HTML, b"<a href=/x>")

    hung, after = asyncio.run(ask())
    assert hung == Failure("could not be parsed: took longer than 0.5 s")
    assert isinstance(after, Page)
    assert after.links[0].url == "https://example.org/x"


@attack(
    "a parser that crashes",
    area="pages",
    must_hold="the page is blocked with that reason, and the next page is parsed",
)
def test_a_parser_that_dies_is_replaced() -> None:
    async def ask() -> tuple[Page | Failure, Page | Failure]:
        async with parsing() as parser:
            await parser.page(URL, HTML, b"")
            worker = parser._process
            assert worker is not None
            os.kill(worker.pid, signal.SIGSEGV)
            return await parser.page(URL, HTML, b"<a href=/x>"), await parser.page(URL, HTML, b"<a href=/x>")

    died, after = asyncio.run(ask())
    assert isinstance(died, Failure)
    assert died.reason.startswith("could not be parsed: the parser ended")
    assert isinstance(after, Page)


@pytest.mark.slow
@attack("a host that sends only pages that take too long", area="pages", must_hold="each has less time than the last")
def test_the_limit_shrinks_for_a_host_that_runs_into_it() -> None:
    async def stopped(parser: Parser, url: str) -> str:
        await parser.page("https://other.example/", HTML, b"")  # which starts a worker
        assert parser._process is not None
        os.kill(parser._process.pid, signal.SIGSTOP)
        answer = await parser.page(url, HTML, b"<p>")
        assert isinstance(answer, Failure)
        return answer.reason.rpartition("longer than ")[2]

    async def ask() -> list[str]:
        async with parsing(2.0) as parser:
            slow = [await stopped(parser, "https://a.example/") for _ in range(5)]
            other = await stopped(parser, "https://b.example/")
            await parser.page("https://a.example/", HTML, b"")
            return [*slow, other, await stopped(parser, "https://a.example/")]

    assert asyncio.run(ask()) == ["2 s", "1 s", "0.67 s", "0.5 s", "0.5 s", "2 s", "2 s"]


def test_a_cancelled_page_leaves_no_worker_with_half_an_answer() -> None:
    async def ask() -> Page | Failure:
        async with parsing() as parser:
            await parser.page(URL, HTML, b"")
            worker = parser._process
            assert worker is not None
            os.kill(worker.pid, signal.SIGSTOP)
            task = asyncio.create_task(parser.page(URL, HTML, b"<a href=/old>"))
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return await parser.page(URL, HTML, b"<a href=/new>")

    page = asyncio.run(ask())
    assert isinstance(page, Page)
    assert page.links[0].url == "https://example.org/new"


ORPHAN = """
import asyncio, sys
from surveyor.fetch.parser import Parser
async def main():
    parser = Parser()
    await parser.page("http://a.org/", {}, b"")
    print(parser._process.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def test_the_worker_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert _is_running(worker)
        parent.kill()
        parent.wait()
    for _ in range(600):
        if not _is_running(worker):
            return
        time.sleep(0.1)
    pytest.fail("the worker is still there")


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

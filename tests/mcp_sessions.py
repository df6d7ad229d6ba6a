"""The official client of the Model Context Protocol with a server of its own, for tests of `surveyor mcp`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import surveyor as sv
from loopback import linked
from surveyor.integrations.mcp.replies import MOST

SITE: dict[str, str | int] = {
    "/": linked("/a", "/b", "/gone", "/docs/", "/private/x", title="Home"),
    "/a": linked("/", "/b", title="Page A"),
    "/b": linked("/", "/docs/one", title="Page B"),
    "/docs/": linked("/docs/one", title="Docs"),
    "/docs/one": linked("/docs/", title="One"),
    "/robots.txt": "User-agent: *\nDisallow: /private/\n",
}
READS = ["surveys", "coverage", "top", "page", "explain", "blocked", "findings", "search"]
CRAWLS = ["crawl", "crawl_status", "crawl_stop"]
SECONDS = 120.0  # a busy machine needs


class Session:
    """A client with its server; a call returns the JSON and the text, and checks what holds for every answer."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, name: str, **arguments: Any) -> tuple[dict[str, Any], str, bool]:
        result = await self.client.call_tool(name, arguments)
        assert len(result.content) == 1
        text: str = result.content[0].text  # type: ignore[union-attr]
        data: dict[str, Any] = result.structured_content
        assert data["schema"] == 1
        assert max(len(text), len(json.dumps(data, ensure_ascii=False))) <= MOST + 1_000
        check_harmless(text, data)
        return data, text, bool(result.is_error)

    async def wait(self, done: Callable[[dict[str, Any]], bool], name: str, **arguments: Any) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while not done((found := await self.call(name, **arguments))[0]):
            assert time.monotonic() < end, found
            await asyncio.sleep(0.1)
        return found[0]


def check_harmless(text: str, data: Any) -> None:
    """Fail if an answer has control characters, or anything unmarked between our words."""
    assert all(line.isprintable() for line in text.split("\n")), text
    for value in leaves(data):
        assert all(line.isprintable() for line in value.split("\n")), value


def leaves(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for name, value in data.items():
            yield from leaves(name)
            yield from leaves(value)
    elif isinstance(data, list):
        for value in data:
            yield from leaves(value)


def parameters(home: Path, *words: str, **variables: str) -> StdioServerParameters:
    env = {"XDG_CONFIG_HOME": os.environ.get("XDG_CONFIG_HOME", ""), "PYTHONWARNINGS": "ignore", **variables}
    env = {name: value for name, value in env.items() if value}
    return StdioServerParameters(command=sys.executable, args=["-m", "surveyor", "mcp", *words], env=env, cwd=home)


@asynccontextmanager
async def session(home: Path, *words: str, **variables: str) -> AsyncIterator[Session]:
    async with Client(stdio_client(parameters(home, *words, **variables))) as client:
        yield Session(client)


def within(work: Awaitable[None], seconds: float = SECONDS) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work, seconds)

    asyncio.run(limited())


def user(url: str) -> dict[str, str]:
    """Settings of a user who crawls a site on loopback."""
    allowed = url.partition("//")[2].strip("/")
    return {
        "SURVEYOR_CONTACT": "me@example.org",
        "SURVEYOR_ALLOW": allowed,
        "SURVEYOR_DELAY": "0",
        "SURVEYOR_DOMAIN_DELAY": "0",
        "SURVEYOR_BACKOFF": "0.02",
    }


def crawled(home: Path, url: str) -> Path:
    """Crawl a site into a folder; return the folder."""
    options: dict[str, Any] = {"out": home / "site.survey", "delay": 0.0, "backoff": 0.02}
    sv.crawl(url, contact="me@example.org", until=sv.Pages(100), **options).close()
    return home

"""Serve metrics over HTTP, on loopback unless another address is given."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from surveyor.cluster.session import LOOPBACK
from surveyor.crawler.shards.metrics import CONTENT_TYPE
from surveyor.errors import UsageError

PLACE = re.compile(r"(?:(?P<host>[^\s/]+):)?(?P<port>[0-9]{1,5})")


def address_of(place: str) -> tuple[str, int]:
    """Return the host and port of "PORT" or "HOST:PORT".

    >>> address_of("9464"), address_of("10.0.0.5:9464"), address_of("[::1]:9464")
    (('127.0.0.1', 9464), ('10.0.0.5', 9464), ('::1', 9464))
    """
    found = PLACE.fullmatch(place)
    if found is None or int(found["port"]) > 65_535:
        raise UsageError(
            f"metrics must be PORT or HOST:PORT with a port in [0, 65535], got {place!r}", hint="such as 9464"
        )
    return (found["host"] or LOOPBACK).strip("[]"), int(found["port"])


@asynccontextmanager
async def served(place: str | None, text: Callable[[], str]) -> AsyncIterator[int]:
    """Serve a text at /metrics while the block runs; yield the port, 0 if there is no place."""
    if place is None:
        yield 0
        return
    host, port = address_of(place)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=text().encode(), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.router.add_get("/metrics", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {host}:{port}: {error.strerror or error}", hint="choose another port"
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()

"""The server process: a socket, uvicorn around the application, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import uvicorn

from surveyor.errors import UsageError
from surveyor.serve.app import create, site_of
from surveyor.serve.security import Identity, token_for

if TYPE_CHECKING:
    from types import FrameType

    from surveyor.serve.site import Site

TRIED = 20  # ports after the default one
BACKLOG = 512


class Place(NamedTuple):
    """Where to listen, as asked for."""

    host: str
    port: int | None  # None: the default, or the next free one
    default_port: int
    token: str | None


class Server(uvicorn.Server):
    """A server whose event streams end with it."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, so that the server does not wait for them."""
        if self._site.hub is not None:
            self._site.hub.close()
        super().handle_exit(sig, frame)


def serve(place: Place, surveys: Sequence[str], ready: Callable[[str, str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` gets the address and the token once the socket listens."""
    token = token_for(place.host, place.token)
    with contextlib.closing(listening(place)) as listener:
        identity = Identity(place.host, listener.getsockname()[1], token)
        site = site_of(identity, surveys)
        ready(identity.url, token)
        server = Server(config_of(site), site)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn repeats the signal when it has ended
            previous = signal.signal(signal.SIGTERM, _interrupt)
            try:
                asyncio.run(server.serve(sockets=[listener]))
            finally:
                signal.signal(signal.SIGTERM, previous)


def config_of(site: Site) -> uvicorn.Config:
    """Return the configuration of uvicorn for a site."""
    return uvicorn.Config(
        create(site),
        http="h11",
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        backlog=BACKLOG,
    )


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def listening(place: Place) -> socket.socket:
    """Return a socket that listens; without a port, on the first free one from the default."""
    ports = range(place.default_port, place.default_port + TRIED) if place.port is None else [place.port]
    for port in ports:
        try:
            return _bound(place.host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != ports[-1]:
                continue
            if error.errno == errno.EADDRINUSE:
                hint = "leave --port out to take the next free one"
                raise UsageError(f"port {port} of {place.host} is in use", hint=hint) from None
            raise UsageError(
                f"cannot listen on {place.host} port {port}: {error.strerror or error}",
                hint="an address of this machine, such as 127.0.0.1, and a port from 1024",
            ) from None
    raise AssertionError("there is at least one port")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends without waiting for acknowledgements (TCP_NODELAY), 40 ms less per page.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host.strip("[]"), port))
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made

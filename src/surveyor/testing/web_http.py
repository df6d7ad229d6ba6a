"""Just enough HTTP/1.1 to serve an embedded web: GET and HEAD, connections that stay open, pipelining.

It is not a server for the internet. It exists because a test server must be able to answer late, drop connections and
send odd headers, and must cost less than the crawler that it serves, whose process it shares. A request line with a
whole URL is understood, so a client can also use it as its proxy.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

LONGEST = 1 << 16  # bytes of a request
PHRASES = {
    200: "OK", 301: "Moved Permanently", 302: "Found", 304: "Not Modified", 308: "Permanent Redirect",
    400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 410: "Gone", 421: "Misdirected Request",
    429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


class Asked(NamedTuple):
    """A request."""

    method: str
    host: str
    target: str  # path and query
    headers: dict[str, str]  # names in lower case


class Reply(NamedTuple):
    """An answer as bytes; status 0 drops the connection."""

    status: int
    head: bytes = b""
    body: bytes = b""
    delay: float = 0.0  # seconds to wait before


def head_of(status: int, length: int | None, *headers: tuple[str, str]) -> bytes:
    """Write the status line and the headers of an answer."""
    lines = [f"HTTP/1.1 {status} {PHRASES[status]}", *(f"{name}: {value}" for name, value in headers if value)]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Connection(asyncio.Protocol):
    """One client; its requests are answered in order."""

    def __init__(self, answer: Callable[[Asked], Reply], others: set[Connection]) -> None:
        self._answer, self._others = answer, others
        self._buffer, self._last = b"", False
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what servers of the loop make
        self._transport = transport
        self._others.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Forget an answer that nobody waits for."""
        self._others.discard(self)
        if self._waiting:
            self._waiting.cancel()

    def drop(self) -> None:
        """End without a word: the client sees a reset."""
        plain: socket.socket = self._transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._buffer += data
        self._work()
        if len(self._buffer) > LONGEST and self._waiting is None:
            self._transport.close()

    def _work(self) -> None:
        while self._waiting is None and not self._transport.is_closing():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            asked = _parse(head)
            if asked is None or asked.method not in ("GET", "HEAD"):
                self._last = True
                self._send(Reply(405, head_of(405 if asked else 400, 0, ("Connection", "close"))), body=False)
                return
            self._last = asked.headers.get("connection", "").lower() == "close"
            reply, body = self._answer(asked), asked.method == "GET"
            if reply.delay:
                loop = asyncio.get_running_loop()
                self._waiting = loop.call_later(reply.delay, lambda: self._later(reply, body=body))  # noqa: B023
            else:
                self._send(reply, body=body)

    def _later(self, reply: Reply, *, body: bool) -> None:
        self._waiting = None
        self._send(reply, body=body)
        self._work()

    def _send(self, reply: Reply, *, body: bool) -> None:
        if reply.status == 0:
            self.drop()
            return
        self._transport.write(reply.head + reply.body if body else reply.head)
        if self._last:
            self._transport.close()


def _parse(head: bytes) -> Asked | None:
    """Read a request; None if it is none."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    host, target = headers.get("host", ""), words[1]
    if target.startswith("http://"):
        host, _, path = target[7:].partition("/")
        target = "/" + path
    return Asked(words[0], host.partition(":")[0].lower(), target, headers)

"""A running `surveyor serve` for tests, and a visitor that sends what a browser would."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from surveyor.serve.app import site_of
from surveyor.serve.security import Identity
from surveyor.serve.server import Place, Server, config_of, listening
from surveyor.serve.site import Site


class Answer(NamedTuple):
    """One response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Visitor:
    """A browser without scripts, which keeps cookies and follows nothing."""

    def __init__(self, site: Site, port: int) -> None:
        self.site, self.port = site, port
        self.cookies: dict[str, str] = {}

    def ask(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: str | bytes | None = None
    ) -> Answer:
        """Send one request; headers replace those that are sent by default, and an empty one leaves it out."""
        sent = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        if self.cookies and "Cookie" not in sent:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            data = body.encode() if isinstance(body, str) else body
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        """Send a form as a page of the server would."""
        fields = {"secret": self.site.identity.form_secret, **form}
        sent = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, headers=sent, body=urlencode(fields))

    def wait(self, path: str, done: Any, seconds: float = 60.0) -> Any:
        """Ask for JSON until it is as wanted."""
        end = time.monotonic() + seconds
        while True:
            found = self.get(path).json()
            if done(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.1)

    def events(self, path: str) -> Iterator[dict[str, str]]:
        """Yield the parts of a page as they change."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200
            assert response.getheader("Content-Type", "").startswith("text/event-stream")
            for line in response:
                if found := re.fullmatch(rb"data: (.*)\n", line):
                    yield json.loads(found[1])
        finally:
            connection.close()


@contextmanager
def serving(
    places: Sequence[Path | str] = (), home: Path | str = ".", *, host: str = "127.0.0.1", token: str = ""
) -> Iterator[Visitor]:
    """Serve in a thread, on a free port of loopback, as if on `host`."""
    with listening(Place("127.0.0.1", 0, 0, None)) as listener:
        port = listener.getsockname()[1]
        site = site_of(Identity(host, port, token), places, home)
        server = Server(config_of(site), site)
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            await server.serve(sockets=[listener])

        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield Visitor(site, port)
        finally:
            assert site.hub is not None
            loops[0].call_soon_threadsafe(site.hub.close)
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()

"""How long Ctrl-C takes: the real command line against servers on loopback that keep it busy, one state after another.

`python -m experiments.interrupts` prints the table. Each crawl runs in a process of its own; when the server
has it in the state wanted, it gets SIGINT, and the time until it has ended is measured. It must exit with 130, and the
survey must open with all that was committed before.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROBOTS = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
HUNG = "import socket, time; socket.getaddrinfo = lambda *_, **__: time.sleep(600)"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
LIMIT = 60.0  # seconds after which a state is given up
SETTLE = 0.5  # seconds between the state and the signal


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What came of one interruption."""

    state: str
    seconds: float
    code: int
    saved: bool  # the survey opens


class Server(threading.Thread):
    """Answers robots.txt and the seed, then does with the next page what a state asks for."""

    def __init__(self, behave: Callable[[socket.socket, threading.Event], None]) -> None:
        super().__init__(daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.reached, self._behave = threading.Event(), behave

    def run(self) -> None:
        """Serve, each connection in a thread."""
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._socket.accept()[0],), daemon=True).start()

    def close(self) -> None:
        """Serve no more."""
        self._socket.close()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):
            path = peer.recv(65_536).split(b" ")[1]
            if path == b"/robots.txt":
                peer.sendall(ROBOTS)
            elif path == b"/":
                body = b'<a href="/next">next</a><a href="http://hangs.invalid.test.org/">other</a>'
                peer.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            else:
                self._behave(peer, self.reached)


def _silent(_: socket.socket, reached: threading.Event) -> None:
    reached.set()
    time.sleep(LIMIT)


def _slow_headers(peer: socket.socket, reached: threading.Event) -> None:
    reached.set()
    for byte in HEAD:
        peer.sendall(bytes([byte]))
        time.sleep(1)


def _slow_body(peer: socket.socket, reached: threading.Event) -> None:
    peer.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
    reached.set()
    while True:
        peer.sendall(b"x")
        time.sleep(0.2)


def _backoff(peer: socket.socket, reached: threading.Event) -> None:
    peer.sendall(b"HTTP/1.1 429 Wait\r\nRetry-After: 600\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    reached.set()


def _huge(peer: socket.socket, reached: threading.Event) -> None:
    body = b"".join(b'<a href="/p%d">x</a>' % number for number in range(400_000))
    peer.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
    peer.sendall(body)
    reached.set()


STATES: dict[str, tuple[Callable[[socket.socket, threading.Event], None], str]] = {
    "accepts and stays silent": (_silent, ""),
    "slow headers": (_slow_headers, ""),
    "slow body": (_slow_body, ""),
    "waits for a retry": (_backoff, ""),
    "a huge page is parsed": (_huge, ""),
    "a look-up hangs": (_silent, HUNG),
}


def interrupt(state: str, folder: Path) -> Interrupted:
    """Bring a crawl into a state and interrupt it."""
    behave, before = STATES[state]
    server = Server(behave)
    server.start()
    seed = "http://hangs.example.org/" if before else f"http://127.0.0.1:{server.port}/"
    words = ["crawl", seed, "--out", str(folder), "--contact", "me@example.org", "--delay", "0", "--patient"]
    words += ["--max-bytes", "50MB", "--until", "pages=100000"]
    code = f"{before}\nfrom surveyor.cli import main\nimport sys\nsys.argv[1:] = {words!r}\nmain()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        _wait_for(lambda: (folder / "journal.sqlite").exists() if before else server.reached.is_set())
        time.sleep(SETTLE + 2 * bool(before))
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
        seconds = time.monotonic() - began
    server.close()
    return Interrupted(state, seconds, process.returncode, _opens(folder))


def _wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT
    while not happened() and time.monotonic() < until:
        time.sleep(0.05)


def _opens(folder: Path) -> bool:
    from surveyor.errors import SurveyorError
    from surveyor.store.directory import SurveyFolder

    try:
        with SurveyFolder.open(folder) as survey:
            survey.journal.check()
    except SurveyorError:
        return False
    return True


def table(results: list[Interrupted]) -> str:
    """Return the table of the documentation."""
    rows = [f"| {one.state} | {one.seconds:.2f} | {one.code} | {'yes' if one.saved else 'NO'} |" for one in results]
    return "\n".join(["| state | seconds until it has ended | exit code | survey opens |", "|---|--:|--:|---|", *rows])


def main() -> None:
    """Interrupt a crawl in each state, and print the table."""
    with tempfile.TemporaryDirectory() as base:
        results = [interrupt(state, Path(base) / f"{number}.survey") for number, state in enumerate(STATES)]
    sys.stdout.write(table(results) + "\n")


if __name__ == "__main__":
    main()

"""Serve a site with planted faults, and another site, on loopback: a process of `benchmarks.site_audit`.

    python -m benchmarks.planted_server FOLDER CERTIFICATE FAILS

It prints both ports as JSON, and ends when its standard input does or after an hour.
"""

from __future__ import annotations

import json
import mimetypes
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from benchmarks.planted_faults import Reply, page, plan

LONGEST = 3_600.0  # seconds
LOST = Reply(404, b"<!doctype html><title>Not found</title>")


class Server(ThreadingHTTPServer):
    """A site."""

    daemon_threads = True

    def __init__(self, root: Path | None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.replies = root, dict[str, Reply]()
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """Ignore clients that close their connections."""

    def reply(self, target: str) -> Reply:
        """Return the answer for a path."""
        name = unquote(target.partition("?")[0]).lstrip("/")
        if name in self.replies:
            return self.replies[name]
        if self.root is None or ".." in name.split("/"):
            return LOST
        file = self.root / name
        if file.is_dir():
            if name and not name.endswith("/"):
                return Reply(301, location=f"/{name}/")
            file /= "index.html"
        if not file.is_file():
            return LOST
        return Reply(body=file.read_bytes(), kind=mimetypes.guess_type(file.name)[0] or "application/octet-stream")


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        reply = self.server.reply(self.path)
        time.sleep(reply.delay)
        self.send_response(reply.status)
        if reply.location:
            self.send_header("Location", reply.location)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    do_HEAD = do_GET  # noqa: N815  # as http.server names it

    def log_message(self, *_: object) -> None:
        pass


def started(server: Server, replies: Mapping[str, Reply]) -> None:
    """Answer requests in a thread."""
    server.replies.update(replies)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(folder: str, certificate: str, fails: str) -> None:
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, Path(certificate).with_name("key.pem"))
    server, other = Server(Path(folder), context), Server(None)
    base, outside = (
        f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}/",
        f"http://localhost:{other.server_port}/",
    )
    faults = plan(Path(folder), base, outside, secure=bool(certificate), fails=fails == "1")
    started(server, faults.replies)
    started(other, {"fine": Reply(body=page("fine").encode())})
    print(json.dumps([server.server_port, other.server_port]), flush=True)
    end = threading.Timer(LONGEST, sys.stdin.close)
    end.daemon = True
    end.start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

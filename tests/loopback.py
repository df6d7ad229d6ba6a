"""HTTP server on loopback for pages in a dictionary."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Pages = Mapping[str, str | int | tuple[str, bytes]]  # HTML, a status, or a content type and a body


@contextmanager
def served(
    pages: Pages,
    log: list[str] | None = None,
    moves: Mapping[str, str] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    port: int = 0,
) -> Iterator[str]:
    """Serve pages and redirects by path; yield the URL of the site, with a slash at its end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if log is not None:
                log.append(self.path)
            answer = pages.get(self.path, 404)
            kind = "text/plain" if self.path == "/robots.txt" else "text/html; charset=utf-8"
            if isinstance(answer, tuple):
                kind, body = answer
            else:
                body = b"" if isinstance(answer, int) else answer.encode()
            status = answer if isinstance(answer, int) else 200
            target = (moves or {}).get(self.path, "")
            self.send_response(302 if target else status)
            if target:
                self.send_header("Location", target)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def linked(*links: str, title: str = "A page", text: str = "Some words that are worth reading. " * 8) -> str:
    """Return an HTML page with text and links."""
    anchors = "".join(f'<p><a href="{link}">a link</a></p>' for link in links)
    return f"<!doctype html><html><head><title>{title}</title></head><body><p>{text}</p>{anchors}</body></html>"


SMALL: dict[str, str | int] = {
    "/": linked("/a", "/b", "/c"),
    "/a": linked("/", "/b"),
    "/b": linked("/", "/c"),
    "/c": linked("/"),
}
QUICK = ["--contact", "me@example.org", "--allow", "127.0.0.1", "--delay", "0", "--backoff", "0.02"]

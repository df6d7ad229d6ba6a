"""The parser boundary: whatever a parser raises, one page is blocked and the crawl continues."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attack import attack

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from surveyor.cli import run
from surveyor.config import Settings
from surveyor.crawler import preview, seeds
from surveyor.fetch import responses as answers
from surveyor.fetch.http import Fetched
from surveyor.fetch.parser import Parser
from surveyor.store.layout import LOG
from surveyor.store.logs import LOG_BYTES, log_errors_to
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_cheap_page
from surveyor.web.robots import Robots
from surveyor.web.sitemaps import read_listing

ERRORS = [
    RuntimeError("broken"),
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    KeyError("href"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
]


@contextmanager
def served(pages: dict[str, bytes]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[str]:
    pages = {
        "/": b"<a href=/bad>b</a><a href=/good>g</a>",
        "/bad": b"<a href=/never>n</a>",
        "/good": b"<a href=/>h</a>",
    }
    with served(pages) as origin:
        yield origin


def raising(error: Exception, real: Callable[..., Any], where: str = "/bad") -> Callable[..., Any]:
    def read(body: bytes, url: str, *args: Any, **kwargs: Any) -> Any:
        if url.endswith(where):
            raise error
        return real(body, url, *args, **kwargs)

    return read


def crawl(site: str, out: Path) -> sv.Survey:
    return sv.crawl(f"{site}/", out=out, contact="me@example.org", allow=("127.0.0.1",), delay=0.0, until="pages=100")


def outcomes(survey: sv.Survey) -> dict[str, tuple[str, str]]:
    return {url.rpartition("/")[2]: (v.kind, v.reason) for _, url, v in survey.pages() if v is not None}


@attack(
    "a parser that raises, in a crawl over HTTP",
    area="pages",
    must_hold="that page is blocked with the error as reason, the traceback is logged, all other pages are fetched",
)
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_parser_that_raises_costs_one_page(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(answers, "read_cheap_page", raising(error, read_cheap_page))
    with crawl(site, tmp_path / "a.survey") as survey:
        found = outcomes(survey)
        assert found["bad"] == ("blocked", f"could not be parsed: {error!r}"[:200])
        assert (found[""][0], found["good"][0]) == ("fetched", "fetched")
        assert survey.blocked_pages()[0]["reason"] == found["bad"][1]
    assert "Traceback" in (tmp_path / "a.survey" / LOG).read_text("utf-8")
    assert "Traceback" not in capfd.readouterr().err


def test_the_crawl_can_be_resumed_and_reports_it(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.survey"
    monkeypatch.setattr(answers, "read_cheap_page", raising(KeyError("href"), read_cheap_page))
    crawl(site, out).close()
    with crawl(site, out) as survey:
        assert outcomes(survey)["bad"] == ("blocked", "could not be parsed: KeyError('href')")
        assert survey.pages_fetched == 2
    for command in (["status", str(out)], ["top", str(out), "--blocked"]):
        assert run(command) == 0
        assert "could not be parsed: KeyError('href')" in capsys.readouterr().out


def test_making_a_visit_is_inside_the_boundary(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = answers.Reader._visit

    def visit(self: answers.Reader, reading: Any, ids: Any) -> Any:
        if reading.answer.fetched.url.endswith("/bad"):
            raise RuntimeError("broken")
        return real(self, reading, ids)

    monkeypatch.setattr(answers.Reader, "_visit", visit)
    with crawl(site, tmp_path / "a.survey") as survey:
        assert outcomes(survey)["bad"] == ("blocked", "could not be parsed: RuntimeError('broken')")
        assert survey.pages_fetched == 2


@attack(
    "a robots.txt that its parser fails at",
    area="robots.txt",
    must_hold="nothing of the site is fetched, and that is the reason; also when the crawl is resumed",
)
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_rules_that_cannot_be_interpreted_permit_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def delay(rules: Robots) -> float | None:
        if rules.state == "rules":
            raise error
        return None

    monkeypatch.setattr(Robots, "crawl_delay", property(delay))
    rules = Fetched("http://a.org/robots.txt", 200, body=b"User-agent: *\nDisallow: /x\n")
    client = Sites(Time(), {rules.url: rules, "http://a.org/": page("http://a.org/")})
    for _ in range(2):
        crawled(tmp_path / "a.survey", ["http://a.org/"], client)
        with sv.open(tmp_path / "a.survey") as survey:
            assert outcomes(survey)[""] == ("blocked", f"robots.txt could not be parsed: {error!r}"[:211])
    assert [url for url, _ in client.log] == [rules.url]


@attack(
    "a list that its parser fails at",
    area="sitemaps and lists",
    must_hold="it is left out with a message that gives the error, and the other lists are read",
)
@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.slow
def test_a_list_that_cannot_be_interpreted_is_left_out(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    result: list[str] = []
    with served({
        "/robots.txt": b"Sitemap: /bad\nSitemap: /good\n",
        "/bad": b"http://127.0.0.1/a\n",
        "/good": b"http://127.0.0.1/b\n",
    }) as site:  # fmt: skip
        monkeypatch.setattr(preview, "read_listing", raising(error, read_listing))
        chosen = Settings(contact="me@example.org", allow=("127.0.0.1",), delay=0.0)
        found = asyncio.run(seeds.gather_seeds([], chosen, sitemaps_of=[f"{site}/"], say=result.append))
    assert list(found.urls) == ["http://127.0.0.1/b"]
    assert any(f"could not be parsed: {error!r}"[:100] in line for line in result)


def test_an_error_in_the_worker_is_a_failure_with_its_traceback(tmp_path: Path) -> None:
    async def ask() -> Any:
        parser = Parser()
        try:
            return await parser._ask({"task": "page", "url": "http://a.org/"}, b"")  # which lacks the headers
        finally:
            await parser.close()

    with log_errors_to(tmp_path / LOG):
        assert asyncio.run(ask()) == Failure("could not be parsed: KeyError('headers')")
    assert "parser_worker.py" in (tmp_path / LOG).read_text("utf-8")


def broken() -> None:
    raise KeyError("x")


class Unprintable(Exception):
    def __repr__(self) -> str:
        raise ValueError("no")


def test_reasons_are_short_and_never_raise() -> None:
    def fail(error: Exception) -> None:
        raise error

    assert guarded("http://a.org/", fail, Unprintable()) == Failure("could not be parsed: Unprintable")
    long = guarded("http://a.org/", fail, ValueError("x" * 10_000))
    assert isinstance(long, Failure)
    assert len(long.reason) == 200


def test_only_exceptions_stop_at_the_boundary() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded("http://a.org/", stop)


@attack(
    "a crawl.log that is a link",
    area="surveys from elsewhere",
    must_hold="its target is not written to, and the crawl continues",
)
def test_the_log_follows_no_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / LOG).symlink_to(target)
    with log_errors_to(tmp_path / LOG):
        guarded("http://a.org/", broken)
    assert target.read_text() == "mine"


def test_the_log_is_bounded(tmp_path: Path) -> None:
    with log_errors_to(tmp_path / LOG):
        for _ in range(3 * LOG_BYTES // 1_000):
            logging.getLogger("surveyor.parsing").error("x" * 1_000)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2 * LOG_BYTES
    with log_errors_to(tmp_path / "nowhere" / LOG):
        guarded("http://a.org/", broken)  # there is no such folder, and that is no trouble

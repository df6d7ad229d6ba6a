"""Visits to pages that change, over HTTP: honest and lying validators, the hash of the main text, revisit records."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from surveyor.crawler.queues import Batch
from surveyor.crawler.sources.live import LiveSource, PageLookup
from surveyor.fetch.client import HttpClient
from surveyor.fetch.http import HttpSettings, sent_by
from surveyor.fetch.parser import Parser
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.fetch.responses import Reader
from surveyor.outcome import Visit, has_changed
from surveyor.store.warc import Archive
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls

warcio: Any = pytest.importorskip("warcio")
SETTINGS = HttpSettings("test/1.0 (+https://example.org/bot)", allow=("127.0.0.1",))
TEXT = "The river rises in the mountains and reaches the sea after four hundred miles of forest and farmland. "
PAST = formatdate(1e9, usegmt=True)
FUTURE = formatdate(4e9, usegmt=True)


def page(text: str, footer: str = "") -> str:
    return f"<html><title>T</title><article><p>{text}</p><p>{TEXT * 3}</p></article><footer>{footer}</footer></html>"


@dataclass
class Site:
    """One page: its content, and the headers that the server sends with it, of which it may lie."""

    body: str = page("one")
    headers: dict[str, str] = field(default_factory=dict)
    codes: list[int] = field(default_factory=list)
    asked: list[tuple[str | None, str | None]] = field(default_factory=list)
    url: str = ""


@contextmanager
def served(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tag, date = self.headers["If-None-Match"], self.headers["If-Modified-Since"]
            site.asked.append((tag, date))
            same = (
                tag == site.headers.get("ETag")
                if tag
                else date is not None and date == site.headers.get("Last-Modified")
            )
            body = b"" if same else site.body.encode()
            site.codes.append(304 if same else 200)
            self.send_response(site.codes[-1])
            for name, value in {"Content-Type": "text/html; charset=utf-8", **site.headers}.items():
                self.send_header(name, value)
            if not same:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_address[1]}/"
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def visits(
    folder: Path, site: Site, changes: list[Callable[[], None]], *, audits: bool = False, parses: bool = True
) -> list[Visit]:
    """Visit the page once, and again after each change; store the exchanges."""
    found: list[Visit] = []

    async def work() -> None:
        urls, hosts, archive = Urls(), Hosts(0.0, resolves=False), Archive.open(folder)
        seeds = urls.ids([site.url]).tolist()
        reader = Reader(urls, Scope("any", ()), seeds, main_text=True, sent=sent_by(SETTINGS))
        parser = Parser() if parses else None
        lookup = PageLookup(
            lambda number: (urls[number], hosts.number("127.0.0.1")),
            lambda _: found[-1] if found else None,
            is_conditional=lambda _page, _visit: not audits,
        )
        async with HttpClient(SETTINGS) as client:
            source = LiveSource(client, reader, hosts, lookup, parser=parser)
            for change in [lambda: None, *changes]:
                change()
                hosts.lease(hosts.number("127.0.0.1"), "page")
                source.start(Batch(pages=seeds))
                outcomes: list[Any] = []
                while not outcomes:
                    outcomes = (await source.results(hosts.clock() + 5.0)).outcomes
                (visit,) = outcomes
                assert isinstance(visit, Visit)
                place = archive.write(visit.exchange) if visit.exchange else visit.warc
                found.append(replace(visit, warc=place, exchange=None))
            await source.close()
        if parser is not None:
            await parser.close()
        archive.close()

    asyncio.run(work())
    return found


def test_an_honest_validator_saves_the_body(tmp_path: Path) -> None:
    with served(Site(headers={"ETag": '"1"', "Last-Modified": PAST, "Cache-Control": "max-age=60"})) as site:
        first, second = visits(tmp_path, site, [lambda: None])
        assert site.codes == [200, 304]
        assert site.asked == [(None, None), ('"1"', PAST)]
    assert has_changed(first, second) is False
    assert second == replace(
        first, status=304, size=0, fetched_at=second.fetched_at, seconds=second.seconds,
        expires=second.expires, warc=second.warc,
    )  # fmt: skip
    assert first.text_hash
    assert second.expires == pytest.approx(second.fetched_at + 60)
    kinds = kinds_of(tmp_path)
    assert kinds == ["response", "server-not-modified"]


def kinds_of(folder: Path) -> list[str]:
    with (folder / "00000.warc.gz").open("rb") as file:
        records = [record.rec_headers for record in warcio.ArchiveIterator(file, check_digests="raise")]
    kinds = [(header.get_header("WARC-Type"), header.get_header("WARC-Profile", "")) for header in records]
    return [profile.rpartition("/")[2] or kind for kind, profile in kinds if kind in ("response", "revisit")]


@pytest.mark.parametrize("parses", [True, False])
def test_a_timestamp_is_no_change_and_a_sentence_is_one(tmp_path: Path, parses: bool) -> None:
    def write(body: str) -> Callable[[], None]:
        return lambda: setattr(site, "body", body)

    pytest.importorskip("resiliparse")
    with served(Site(page("one", "12:00:01"))) as site:
        changes = [write(page("one", "12:00:02, 7 comments")), write(page("two", "12:00:03")), lambda: None]
        found = visits(tmp_path, site, changes, parses=parses)
    assert [has_changed(one, other) for one, other in pairwise(found)] == [False, True, False]
    assert len({visit.hash for visit in found}) == 3
    assert kinds_of(tmp_path) == ["response"] * 3 + ["identical-payload-digest"]
    archive = Archive.open(tmp_path, write=False)
    assert [visit.warc is not None and archive.read(visit.warc).body.count(b"two") for visit in found] == [0, 0, 1, 1]


def test_an_etag_that_stays_the_same_hides_a_change_until_it_is_audited(tmp_path: Path) -> None:
    def change() -> None:
        site.body = page("two")

    with served(Site(headers={"ETag": '"lie"'})) as site:
        hidden = visits(tmp_path / "a", site, [change])
        assert site.codes == [200, 304]
        assert has_changed(*hidden) is False
        site.body = page("one")
        found = visits(tmp_path / "b", site, [change], audits=True)
        assert site.codes[2:] == [200, 200]
    assert found[0].etag == found[1].etag
    assert has_changed(*found) is True  # the same ETag for other content: it lies


def test_an_etag_that_always_changes_costs_a_download_but_is_no_change(tmp_path: Path) -> None:
    with served(Site(headers={"ETag": '"1"'})) as site:
        found = visits(
            tmp_path, site, [lambda: site.headers.update(ETag='"2"'), lambda: site.headers.update(ETag='"3"')]
        )
        assert site.codes == [200, 200, 200]
        assert [tag for tag, _ in site.asked] == [None, '"1"', '"2"']
    assert [has_changed(one, other) for one, other in pairwise(found)] == [False, False]
    assert kinds_of(tmp_path) == ["response", "identical-payload-digest", "identical-payload-digest"]


@pytest.mark.parametrize("date", [FUTURE, "yesterday", "Tue, 99 Nov 2023 22:13:20 GMT"])
def test_a_date_in_the_future_or_an_invalid_one_is_not_sent_back(tmp_path: Path, date: str) -> None:
    def change() -> None:
        site.body = page("two")

    with served(Site(headers={"Last-Modified": date})) as site:
        found = visits(tmp_path, site, [change])
        assert site.codes == [200, 200]
        assert site.asked == [(None, None), (None, None)]
    assert has_changed(*found) is True

"""Lists of pages to start from: files, stdin, sitemaps and feeds of sites, asked for as politely as pages."""

from __future__ import annotations

import asyncio
import gzip
import io
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult
from fake_web import CONTACT, Alone, Answers, Sites, moved
from surveyor.config import Settings
from surveyor.crawler.seeds import SeedLists, gather_seeds
from surveyor.crawler.sources.live import Connection
from surveyor.errors import InputError, NothingFetched
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import Hosts

SITE = "https://a.org"
ROBOTS = f"{SITE}/robots.txt"


def sitemap(*urls: str) -> bytes:
    return b"<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls).encode() + b"</urlset>"


def index(*urls: str) -> bytes:
    return (
        b"<sitemapindex>"
        + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls).encode()
        + b"</sitemapindex>"
    )


def answer(url: str, body: bytes) -> Fetched:
    return Fetched(url, 200, body=body, raw=body)


def gather(client: Sites, *places: str, say: Any = lambda _: None, **options: Any) -> SeedLists:
    connection = Connection(client, None, Hosts(clock=client.time), client.time.wait)
    return asyncio.run(gather_seeds(places, Settings(contact=CONTACT), connection=connection, say=say, **options))


ANSWERS: Mapping[str, Answers] = {
    ROBOTS: answer(ROBOTS, f"Sitemap: {SITE}/all.xml\nSitemap: /news.xml\nUser-agent: *\nDisallow: /no".encode()),
    f"{SITE}/all.xml": answer(f"{SITE}/all.xml", index(f"{SITE}/1.xml.gz", f"{SITE}/2.xml", f"{SITE}/no/3.xml")),
    f"{SITE}/1.xml.gz": answer(f"{SITE}/1.xml.gz", gzip.compress(sitemap(f"{SITE}/a", f"{SITE}/b#x"))),
    f"{SITE}/2.xml": moved(f"{SITE}/2.xml", "/two.xml"),
    f"{SITE}/two.xml": answer(f"{SITE}/two.xml", sitemap(f"{SITE}/b", "https://www.a.org/c", "https://b.org/d")),
    f"{SITE}/news.xml": answer(f"{SITE}/news.xml", b"<rss><channel><item><link>/news/1</link></item></channel></rss>"),
}
FOUND = [f"{SITE}/a", f"{SITE}/b", "https://www.a.org/c", f"{SITE}/news/1"]


def test_the_sitemaps_that_robots_txt_names_are_read_politely() -> None:
    client, result = Sites(Alone(), ANSWERS), list[str]()
    found = gather(client, sitemaps_of=[f"{SITE}/x", f"{SITE}/y"], say=result.append)
    assert list(found.urls) == FOUND
    assert found.kinds == {"index", "sitemap", "feed"}
    asked = [url for url, _ in client.log]
    assert asked[0] == ROBOTS
    assert f"{SITE}/no/3.xml" not in asked
    assert all(then - at >= 1.0 for (_, at), (_, then) in pairwise(client.log))
    assert client.time.now >= client.log[-1][1] + 1.0  # who comes next need not know
    assert any("no/3.xml: robots.txt disallows it" in line for line in result)
    assert any("1 pages of other domains" in line for line in result)


def test_without_a_word_in_robots_txt_the_usual_place_is_asked() -> None:
    place = f"{SITE}/sitemap.xml"
    client = Sites(Alone(), {place: answer(place, sitemap(f"{SITE}/a"))})
    assert list(gather(client, sitemaps_of=[SITE + "/"]).urls) == [f"{SITE}/a"]
    nothing = Sites(Alone(), {})
    assert not gather(nothing, sitemaps_of=[SITE + "/"]).urls


@pytest.mark.parametrize(
    ("place", "why"),
    [(f"{SITE}/gone", "http 404"), (f"{SITE}/no/x", "robots.txt disallows it"), (f"{SITE}/page", "neither a sitemap")],
)
def test_a_list_that_was_named_must_be_there(place: str, why: str) -> None:
    client = Sites(Alone(), {**ANSWERS, f"{SITE}/page": answer(f"{SITE}/page", b"<html>hello</html>")})
    with pytest.raises(NothingFetched, match=why):
        gather(client, place)


def test_an_index_of_indexes_in_a_circle_ends() -> None:
    one, two = f"{SITE}/1.xml", f"{SITE}/2.xml"
    answers: dict[str, Answers] = {one: answer(one, index(two, one)), two: answer(two, index(one, f"{SITE}/gone.xml"))}
    client = Sites(Alone(), answers)
    assert not gather(client, one).urls
    assert len(client.log) == 4


def test_files_of_all_kinds_may_name_any_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, xml = tmp_path / "a.txt", tmp_path / "b.xml.gz"
    text.write_text("# some\nexample.org/a\n\nhttps://b.example/\n", "utf-8")
    xml.write_bytes(gzip.compress(sitemap("https://c.example/")))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"https://d.example/\n")))
    found = sv.read_seeds([str(text), str(xml), "-"])
    assert list(found) == ["example.org/a", "https://b.example/", "https://c.example/", "https://d.example/"]
    with pytest.raises(InputError, match="No such file"):
        sv.read_seeds(str(tmp_path / "nowhere.txt"))
    page = tmp_path / "page.html"
    page.write_text("<html><a href=x>x</a></html>", "utf-8")
    with pytest.raises(InputError, match="names no pages"):
        sv.read_seeds(str(page))


# --- over real HTTP ---


@pytest.fixture
def site() -> Iterator[tuple[str, list[str]]]:
    log: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            log.append(self.path)
            root = f"http://{self.headers['Host']}"
            bodies = {
                "/robots.txt": f"Sitemap: {root}/map.xml.gz\n".encode(),
                "/map.xml.gz": gzip.compress(sitemap(*(f"{root}/deep/{n}/" for n in range(5)))),
            }
            body = bodies.get(self.path, b"<title>x</title><a href='/'>home</a>")
            kind = "application/gzip" if self.path.endswith("gz") else "text/html"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", log
        server.shutdown()


def test_a_crawl_from_a_sitemap(
    site: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, log = site
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = ["--contact", CONTACT, "--allow", "127.0.0.1", "--delay", "0.01", "--until", "coverage=0.99", "--json"]
    result = CommandResult(capsys, "crawl", root, "--sitemap", *words)
    assert result.code == 0, result.err
    assert result.json()["pages_fetched"] == 6
    assert "map.xml.gz: 5 pages" in result.err
    assert log[:2] == ["/robots.txt", "/map.xml.gz"]
    with sv.open(f"127.0.0.1_{root.rpartition(':')[2]}.survey") as survey:
        assert survey.manifest.seeds == (f"{root}/",)
        assert survey.listed == {"pages": 5, "fetched": 5, "queued": 0}
        assert len(survey.orphans()) == 5
        assert survey.top(1)[0]["share"] == 1.0
    other = CommandResult(capsys, "crawl", "--seeds", f"{root}/map.xml.gz", *words, "--out", "b.survey")
    assert other.json()["pages_fetched"] == 6

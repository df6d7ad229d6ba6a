"""Real sites on loopback: what is served, what the truth about it is, and how a crawl is compared with it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import numpy as np
import pytest
from experiments.real_sites import Surveyed, check, compare, describe, sites_of
from experiments.site_truth import FINE, OTHER, SiteTruth, find_truth, resolve
from experiments.sites import Site, SiteServer, serving

from surveyor.errors import UsageError
from surveyor.fetch.client import HttpClient
from surveyor.fetch.http import FetchRequest, HttpSettings
from surveyor.graph.csr import Graph
from surveyor.rank.pagerank import pagerank
from surveyor.web.html import read_page
from surveyor.web.scope import Scope
from surveyor.web.urls import normalise

FILES = {
    "index.html": """<title>Home</title><a href=a.html>a</a><a href="guide">guide</a><a href=guide/>guide</a>
        <a href=notes.txt>notes</a><a href=missing.html>missing</a><a href=manual.pdf>file</a><a href=#top>self</a>
        <a href=https://elsewhere.example/>out</a><a rel=nofollow href=secret.html>secret</a>
        <template><a href=template.html>no</a></template><!-- <a href=comment.html> -->""",
    "a.html": "<link rel=canonical href=/b.html><a href=only-here.html>x</a>",
    "b.html": "<base href=/guide/><a href=x%79z.html?q=1&amp;r=2>x</a><a href='../a.html'>a</a><iframe src=/f.html>",
    "f.html": "<frameset><frame src=packed.html></frameset>",
    "packed.html.gz": "<meta http-equiv=refresh content='0; url=/guide/sp ace.html'>",
    "guide/index.html": "<a href=..>up</a><a href=/link.html>link</a><a href=/out.html>out</a>",
    "guide/xyz.html": "<a href=/guide?a=b>moves with its query</a>",
    "guide/sp ace.html": "",
    "notes.txt": "<a href=not-a-link.html>",
    "secret.html": "<a href=more-secret.html>",
}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    root = tmp_path_factory.mktemp("sites") / "docs"
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    root.with_name("outside.html").write_text("<a href=/stolen.html>")
    (root / "link.html").symlink_to("guide/xyz.html")
    (root / "out.html").symlink_to("../outside.html")
    (root / "loop.html").symlink_to("loop.html")
    with serving(sites_of([root.parent], [])) as web:
        yield web


@pytest.fixture(scope="module")
def truth(web: SiteServer) -> SiteTruth:
    return find_truth(web, "docs")


class Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def ask(web: SiteServer, path: str) -> tuple[int, str, bytes]:
    opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{web.port}"}), Stay)
    try:
        with opener.open(web.origin("docs.docs.example") + path, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Location"] or "", b""


def test_files_are_served_as_web_servers_do(web: SiteServer) -> None:
    assert ask(web, "/") == ask(web, "/index.html") == (200, "text/html", FILES["index.html"].encode())
    assert ask(web, "/guide?a=b") == (301, web.origin("docs.docs.example") + "/guide/?a=b", b"")
    assert ask(web, "/notes.txt")[:2] == (200, "text/plain")
    assert ask(web, "/guide/sp%20ace.html")[0] == 200
    assert gzip.decompress(ask(web, "/packed.html")[2]).decode() == FILES["packed.html.gz"]
    assert ask(web, "/link.html")[2].decode() == FILES["guide/xyz.html"]
    for path in (
        "/out.html",
        "/loop.html",
        "/missing.html",
        "/a.html/",
        "/../outside.html",
        "/%2E%2E/outside.html",
        "/%00",
    ):
        assert ask(web, path)[0] == 404, path


def test_the_truth_is_what_can_be_reached(web: SiteServer, truth: SiteTruth) -> None:
    at = web.origin("docs.docs.example")
    names = ["/", "/b.html", "/guide/", "/guide/xyz.html?q=1&r=2", "/link.html", "/f.html", "/packed.html"]
    assert set(truth.with_status(FINE)) == {at + name for name in [*names, "/guide/sp%20ace.html", "/guide/?a=b"]}
    assert truth.with_status(OTHER) == [at + "/notes.txt"]
    assert truth.urls[int(truth.stands_for[truth.ids[at + "/a.html"]])] == at + "/b.html"
    assert [truth.urls[page] for page in truth.graph.links_of(0)].count(at + "/guide/") == 2  # one through a redirect
    assert dict(truth.links) == {"site": 18, "file": 1, "other host": 1, "nofollow": 1}
    assert repr(truth) == "SiteTruth(9 fine, 1 other, 2 gone, 3 alias; 18 links; 4.8% of all links leave)"
    assert describe(Site("docs", web.sites["docs.docs.example"].root), truth, 1.0).startswith(
        "| docs | 9 | 1 | 2 | 3 |"
    )


def test_several_processes_find_the_same(web: SiteServer, truth: SiteTruth) -> None:
    again = find_truth(web, "docs", workers=2)
    assert (again.graph, again.urls, again.links) == (truth.graph, truth.urls, truth.links)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("x", "http://h.example:81/a/x"),
        (" \n../%7ejoe?\t", "http://h.example:81/~joe"),
        ("\\x y|ä?'", "http://h.example:81/x%20y|%C3%A4?%27"),
        ("//E.example:80", "http://e.example/"),
        ("http://<name>/", None),
        ("http://[", None),
        ("mailto:a@b", None),
    ],
)
def test_addresses_are_spelt_as_the_crawler_spells_them(reference: str, expected: str | None) -> None:
    base = "http://h.example:81/a/b?c"
    assert resolve(base, reference) == normalise(reference, base) == expected


async def small_crawl(web: SiteServer, site: Site) -> dict[str, list[str]]:
    """Return the links of each page that can be reached, and aliases as pages with one link."""
    entry = web.entry(site.name)
    scope, rows, queue = Scope("host", (entry,)), dict[str, list[str]](), [entry]
    settings = HttpSettings("test (+a@example.org)", allow=(site.host,))
    async with HttpClient(settings, resolver=web.resolver) as client:
        for url in queue:
            fetched = await client.fetch(FetchRequest(url))
            page = (
                read_page(fetched.body, url) if fetched.status == 200 and not fetched.skipped else read_page(b"", url)
            )
            moved = fetched.target or (page.canonical if page.canonical != url else None)
            links = [moved] if moved else [link.url for link in page.links if link.follow]
            found = dict.fromkeys(normalise(link) or "" for link in links)
            rows[url] = [link for link in found if link != url and scope.admits(link)]
            queue += [link for link in rows[url] if link not in queue]
    return rows


def surveyed(web: SiteServer, site: Site, truth: SiteTruth) -> Surveyed:
    rows = asyncio.run(small_crawl(web, site))
    names = list(rows)
    final = {url: truth.urls[int(truth.stands_for[truth.ids[url]])] for url in names}
    kept = [[names.index(final[link]) for link in rows[url]] if final[url] == url else [] for url in names]
    indptr = np.cumsum([0, *map(len, kept)])
    graph = Graph(indptr, np.array([page for row in kept for page in sorted(row)], np.int32))
    ranking = pagerank(graph, tolerance=1e-9, teleport=np.arange(len(names)) == 0)
    read = tuple(url for url in names if url in truth.with_status(FINE))
    return Surveyed(read, dict(zip(names, ranking.scores.tolist(), strict=True)), ranking.error, 0.8, 1.0)


def test_a_crawl_agrees_with_the_truth(web: SiteServer, truth: SiteTruth, capsys: pytest.CaptureFixture[str]) -> None:
    site = web.sites["docs.docs.example"]
    result = surveyed(web, site, truth)
    compared = compare(result.read, result.ranks, result.error, truth)
    assert compared.holds, compared
    assert compared.coverage == pytest.approx(0.815, abs=0.001)  # the rest is on what is gone or no HTML
    assert check(web, site, truth, lambda *_: result) == ["docs: asked for 90%, ended at 0.8000"]
    assert capsys.readouterr().out.startswith("| docs | 9 |")


def test_differences_are_said(web: SiteServer, truth: SiteTruth, capsys: pytest.CaptureFixture[str]) -> None:
    site = web.sites["docs.docs.example"]
    result = surveyed(web, site, truth)
    assert compare(result.read[1:], result.ranks, result.error, truth).missing == result.read[:1]
    assert compare([*result.read, "x"], result.ranks, result.error, truth).strange == ("x",)
    wrong = {**result.ranks, "x": 0.5}
    assert compare(result.read, wrong, result.error, truth).distance == pytest.approx(0.5)
    bad = Surveyed(result.read[1:], wrong, result.error, 0.1, 0.2)
    sentences = check(web, site, truth, lambda *_: bad)
    assert len(sentences) == 4
    assert "1 pages missing" in sentences[0]
    assert capsys.readouterr().out


def test_sites_are_named(tmp_path: Path) -> None:
    (tmp_path / "start.html").write_text("")
    site = Site.read(f"docs={tmp_path}:start.html")
    assert (site.host, site.entry) == ("docs.docs.example", "start.html")
    for text in (f"docs={tmp_path}", "docs", "a b=c"):
        with pytest.raises(UsageError):
            Site.read(text)
    with pytest.raises(UsageError):
        SiteServer([site, site])
    with pytest.raises(UsageError):
        sites_of([tmp_path], [])

"""Each feature of an embedded web shows over HTTP as it should."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pytest
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

from reference_crawler import AGENT, TIMEOUT, Client, Clock, host_of_role, host_of_style, links_in, url_of_kind
from surveyor.errors import UsageError
from surveyor.testing import EmbeddedWeb, PerfectCrawler, Truth, WebSettings, running, serve
from surveyor.testing.web_content import WebPages, vocabulary


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    """A web with everything, whose clock leaps so that no host feels hurried."""
    with running(WebSettings(slow_seconds=0.001), clock=Clock(10.0)) as web:
        yield web


@pytest.fixture(autouse=True)
def forget(request: pytest.FixtureRequest) -> None:
    if "web" in request.fixturenames:
        request.getfixturevalue("web").reset()


@pytest.fixture
def client(web: EmbeddedWeb) -> Iterator[Client]:
    with Client(web) as client:
        yield client


@pytest.fixture(scope="module")
def truth(web: EmbeddedWeb) -> Truth:
    return web.truth()


def test_same_settings_same_bytes() -> None:
    one, two = (WebPages(WebSettings(huge_bytes=1000), 8080) for _ in range(2))
    other = WebPages(WebSettings(huge_bytes=1000, rng=8), 8080)
    places = one.places
    assert places == two.places != other.places
    for place in places:
        assert one.content(place) == two.content(place)
        assert one.body(one.content(place)) == two.body(two.content(place))
    assert other.content("www.site0.example/") != one.content("www.site0.example/")


def test_switching_a_feature_leaves_the_others() -> None:
    full, less = WebPages(WebSettings()).plan, WebPages(WebSettings(dying=0, loops=0)).plan
    assert full.dying
    assert not less.dying
    assert (full.roles, full.changing, full.old) == (less.roles, less.changing, less.old)
    plain = WebPages(WebSettings.plain()).plan
    assert not plain.extra
    assert not plain.roles
    assert {file.style for file in plain.robots.values()} == {"open"}
    with pytest.raises(UsageError, match=r"moved .*got 2"):
        WebSettings(moved=2)
    with pytest.raises(UsageError, match=r"seeds .*got 0"):
        WebPages(WebSettings(seeds=0))


def test_pages_look_like_pages(web: EmbeddedWeb, client: Client) -> None:
    languages, hrefs = set(), ""
    for url in web.seeds + web.urls[100:400:5]:
        status, headers, body = client.get(url)
        if status != 200 or not headers["content-type"].startswith("text/html;"):
            continue
        page = LexborHTMLParser(body)
        root, title = page.css_first("html"), page.css_first("title")
        assert root is not None
        assert title is not None
        assert str(urlsplit(url).hostname) in title.text()
        assert page.css_first("nav")
        assert root.attributes["lang"] == headers["content-language"]
        number = web.plan.page_of.get(web.pages.place(url))
        if number is not None:
            assert vocabulary(int(web.plan.base.topic[number]))[0] in page.text().lower()
        languages.add(headers["content-language"])
        hrefs += " ".join(anchor.attributes["href"] or "" for anchor in page.css("a[href]")) + " "
    assert len(languages) > 2
    assert all(text in hrefs for text in ("../", "./", " //", " /", "HTTP://", "#part", "mailto:", "javascript:"))


def test_spam_links_say_nofollow_and_carry_nothing(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    url = url_of_kind(truth, "boosted")
    page = LexborHTMLParser(client.get(url)[2])
    marked = [anchor for anchor in page.css("a") if anchor.attributes.get("rel") == "nofollow"]
    assert marked
    followed = web.truth(crawler=PerfectCrawler(nofollow=True))
    assert len(followed.links(url)) > len(truth.links(url))
    assert followed.importance.share(url) != truth.importance.share(url)


def test_the_calendar_has_no_end(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    url = url_of_kind(truth, "calendar")
    seen = set()
    for _ in range(50):
        assert url not in seen
        seen.add(url)
        links, _canonical = links_in(client.get(url)[2], url)
        year, month = map(int, url.split("/")[4:6])
        url = next(link for link in links if link.endswith(f"/cal/{year + month // 12}/{month % 12 + 1}"))
    assert client.get(url.replace("/2026/", "/99999/").replace("/2030/", "/99999/"))[0] == 200
    assert client.get(f"http://calendar.trap.example:{web.port}/cal/2026/13")[0] == 404
    assert not truth.exact
    assert 0 <= truth.unseen <= truth.bound == 0.85**61


def test_redirects_chain_and_cross_hosts(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    statuses, crossed, steps = set(), 0, set()
    for page, place in web.plan.old.items():
        url, count = web.pages.url(place), 0
        while place in web.plan.moves and web.plan.role(place.partition("/")[0]) in ("", "slow", "soft"):
            status, headers, _ = client.get(url)
            statuses.add(status)
            crossed += urlsplit(headers["location"]).netloc != urlsplit(url).netloc
            url, count = headers["location"], count + 1
            place = web.pages.place(url)
        steps.add(count)
        if place == web.plan.places[page] and truth.status(web.pages.url(web.plan.old[page])) == "redirected":
            assert truth.target(web.pages.url(web.plan.old[page])) == truth.target(url)
    assert statuses >= {301, 302, 308}
    assert steps >= {1, 2, 3}
    assert crossed
    rows = [truth.graph.links_of(page) for page in range(truth.graph.pages)]
    assert any(np.unique(row).size < row.size for row in rows)  # linked to both addresses: both links stay
    assert any(page in row for page, row in enumerate(rows))  # its own print version


def test_circles_of_redirects_are_blocked(client: Client, truth: Truth) -> None:
    start = url = next(url for url in truth.urls if url.endswith("/loop/0"))
    for _ in range(3):
        status, headers, _body = client.get(url)
        assert status in (301, 302, 308)
        url = headers["location"]
    assert url == start
    alone = start.replace("/loop/0", "/loop/self")
    assert client.get(alone)[1]["location"] == alone
    assert truth.status(start) == truth.status(alone) == "blocked"


def test_print_versions_and_forged_canonicals(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    url = url_of_kind(truth, "print")
    assert links_in(client.get(url)[2], url)[1] == url.removesuffix("?print=1") == truth.target(url)
    assert web.truth(crawler=PerfectCrawler(canonical=False)).status(url) == "fetched"
    forged = web.pages.url(min(web.plan.forged))
    assert links_in(client.get(forged)[2], forged)[1] == web.seeds[0]
    assert web.truth([forged]).status(forged) == "fetched"


def test_dead_pages_and_those_that_die_or_come_back(web: EmbeddedWeb, client: Client) -> None:
    url = web.pages.url
    dead = [place for place, kind in zip(web.plan.places, web.plan.kinds, strict=True) if kind == "dead"]
    dead = [place for place in dead if not web.plan.role(place.partition("/")[0])]
    gone = [url(place) for place in dead if place not in web.plan.returning]
    assert {client.get(place)[0] for place in gone} == {404, 410}
    dying = url(next(place for place in sorted(web.plan.dying) if not web.plan.role(place.partition("/")[0])))
    assert [client.get(dying)[0] for _ in range(3)] == [200, 404, 404]
    back = url(next(place for place in dead if place in web.plan.returning))
    assert [client.get(back)[0] for _ in range(3)] == [404, 200, 200]
    seeds = [*gone, dying, back]
    truth = web.truth(seeds)
    assert [truth.status(page) for page in seeds] == ["gone"] * len(gone) + ["fetched", "fetched"]
    assert web.truth(seeds, PerfectCrawler(confirms=False)).status(back) == "gone"
    for path in ("no-such-page", "archive/all-0.html"):
        assert client.get(url(f"www.site0.example/{path}"))[0] == 404


def test_soft_404(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    url = url_of_kind(truth, "soft-404")
    status, _, body = client.get(url + "x")
    assert status == 200
    assert b"not found" in body
    assert truth.status(url) == "fetched"
    assert web.truth(crawler=PerfectCrawler(soft_404=True)).status(url) == "gone"


def test_slow_flaky_down_and_dropping_hosts(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    home = {role: web.pages.url(host_of_role(web, role) + "/") for role in ("flaky", "down", "reset", "slow")}
    assert client.get(home["down"])[0] in (500, 503)
    assert client.get(home["reset"])[0] == 0
    assert web.log[-1].status == 0
    flaky = [web.pages.url(place) for place in web.plan.places if web.plan.role(place.partition("/")[0]) == "flaky"]
    first, second = [client.get(url)[0] for url in flaky], [client.get(url)[0] for url in flaky]
    assert set(first) >= {200, 500, 503}
    assert not {500, 503} & set(second)
    statuses = web.truth([home["flaky"], home["down"], home["reset"]])
    assert [statuses.status(home[role]) for role in ("flaky", "down", "reset")] == ["fetched", "blocked", "blocked"]
    begin = time.monotonic()
    assert client.get(home["slow"])[0] == 200
    assert time.monotonic() - begin >= 0.001
    assert truth.status(home["slow"]) in ("fetched", "unknown")


def test_a_slow_host_answers_late_and_in_order() -> None:
    with running(WebSettings.plain(slow=0.01, slow_seconds=0.1)) as web, socket.socket() as plain:
        host = host_of_role(web, "slow")
        plain.settimeout(TIMEOUT)
        plain.connect(("127.0.0.1", web.port))
        begin = time.monotonic()
        plain.sendall(f"HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 2 + b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
        text = b""
        while chunk := plain.recv(1 << 16):
            text += chunk
        assert time.monotonic() - begin >= 0.2
    assert [line[9:12] for line in text.split(b"\r\n") if line.startswith(b"HTTP/")] == [b"200", b"200", b"405"]


def test_a_strict_host_wants_to_be_asked_slowly() -> None:
    clock = Clock()
    with running(WebSettings.plain(strict=0.01, pace=2.5), clock=clock) as web, Client(web) as client:
        home = web.pages.url(host_of_role(web, "strict") + "/")
        assert client.get(home)[0] == 200
        status, headers, _ = client.get(home)
        assert (status, headers["retry-after"]) == (429, "3")
        clock.now += 2.4
        assert (client.get(home)[0], client.get(home)[1]["retry-after"]) == (429, "1")
        clock.now += 0.1
        assert [client.get(home)[0] for _ in range(2)] == [200, 429]
        assert [request.status for request in web.log] == [200, 429, 429, 429, 200, 429]
        times = [request.time for request in web.log if request.status == 200]
        assert all(later - earlier >= 2.5 for earlier, later in pairwise(times))
        assert web.log[0][1:] == (urlsplit(home).hostname, "/", 200, AGENT)
        assert web.truth([home]).status(home) == "fetched"


@pytest.mark.parametrize(
    ("style", "status"),
    [("open", 200), ("rules", 200), ("agents", 200), ("delay", 200), ("error", 503), ("missing", 404), ("moved", 302)],
)
def test_robots_files(web: EmbeddedWeb, client: Client, style: str, status: int) -> None:
    host = host_of_style(web, style)
    if style in ("open", "missing"):
        host = next(name for name, file in web.plan.robots.items() if file.style == style and not web.plan.role(name))
    home = web.pages.url(f"{host}/")
    got, headers, body = client.get(f"{home}robots.txt")
    assert got == status
    if style == "moved":
        assert urlsplit(headers["location"]).hostname != host
        got, headers, body = client.get(headers["location"])
        assert got == 200
        assert client.get(web.pages.url(f"{web.plan.host(web.plan.seeds[0])}/rules/other.example.txt"))[0] == 404
    file, parsed = web.plan.robots_of(host), Protego.parse(body.decode() if got == 200 else "")
    if style == "error":
        assert web.truth([home]).reasons[0] == "robots"
        assert file.allows("surveyor", "/robots.txt")  # which may always be read
        return
    for agent in ("surveyor", "friendlybot", "otherbot", "unheard"):
        assert file.delay(agent) == parsed.crawl_delay(agent)
        for path in (
            "",
            "private/1.html",
            "private/open.html",
            "cars/0/page-9.html",
            "cars/0/page-9.html?a",
            "-9.html",
        ):
            assert file.allows(agent, f"/{path}") == parsed.can_fetch(home + path, agent), (agent, path)
    if style == "agents":
        assert web.truth([home], PerfectCrawler(agent="unheard")).status(home) == "blocked"
    if style in ("rules", "agents", "moved"):
        seen = web.truth([home])
        assert [seen.status(f"{home}private/{name}.html") for name in ("1", "open")] == ["blocked", "fetched"]
        assert client.get(f"{home}private/1.html")[0] == 200  # robots.txt is not enforced by the server


def test_wrong_types_huge_and_garbled_pages(web: EmbeddedWeb, client: Client, truth: Truth) -> None:
    document, image = url_of_kind(truth, "document"), url_of_kind(truth, "image")
    _, headers, body = client.get(document)
    assert (headers["content-type"], body[:5], links_in(body, document)[0]) == ("text/html", b"%PDF-", [])
    _, headers, body = client.get(image)
    assert (headers["content-type"], body[:4], image[-5:]) == ("image/png", b"\x89PNG", ".html")
    huge = url_of_kind(truth, "huge")
    body = client.get(huge)[2]
    assert len(body) > 3_000_000
    whole = web.truth(crawler=PerfectCrawler(longest=10_000_000))
    assert sorted(whole.target(link) for link in links_in(body, huge)[0]) == sorted(whole.links(huge))
    assert set(truth.links(huge)) < set(whole.links(huge))
    places = [place for place in sorted(web.plan.garbled) if not web.plan.role(place.partition("/")[0])]
    for place in places:
        with pytest.raises(UnicodeDecodeError):
            client.get(web.pages.url(place))[2].decode()
    assert len(places) > 10


def test_changing_pages_and_conditional_requests(web: EmbeddedWeb, client: Client) -> None:
    free = [place for place in sorted(web.plan.changing) if not web.plan.role(place.partition("/")[0])]
    urls = [web.pages.url(place) for place in free if place not in web.plan.dying]
    before = {url: client.get(url) for url in urls}
    seed = client.get(web.seeds[0])
    for url, (_, headers, _body) in before.items():
        status, again, body = client.get(url, If_None_Match=headers["etag"])
        assert (status, again["etag"], body) == (304, headers["etag"], b"")
    assert client.get(urls[0], If_Modified_Since=before[urls[0]][1]["last-modified"])[0] == 304
    assert client.get(urls[0], If_Modified_Since="yesterday")[0] == 200
    assert client.get(urls[0], If_None_Match='"other"', If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT")[0] == 200
    first = web.truth(urls)
    web.advance()
    second = web.truth(urls)
    assert client.get(web.seeds[0], If_None_Match=seed[1]["etag"])[0] == 304
    changed = 0
    for url, (_, headers, _body) in before.items():
        status, fresh, body = client.get(url, If_None_Match=headers["etag"])
        if first.status(url) == "fetched" and first.links(url) != second.links(url):
            assert (status, fresh["last-modified"]) == (200, "Fri, 02 Jan 2026 00:00:00 GMT")
            assert sorted(map(second.target, links_in(body, url)[0])) == sorted(second.links(url))
            changed += 1
    assert changed > len(urls) // 2
    web.reset()
    assert client.get(urls[0])[2] == before[urls[0]][2]


def test_gzip_only_for_those_who_can(web: EmbeddedWeb, client: Client) -> None:
    host = next(host for host in sorted(web.plan.zipped) if not web.plan.role(host))
    home = web.pages.url(f"{host}/")
    _, headers, body = client.get(home, Accept_Encoding="gzip, deflate")
    _, plain, text = client.get(home, Accept_Encoding="identity")
    assert (headers["content-encoding"], headers["vary"], plain["vary"]) == ("gzip", *["Accept-Encoding"] * 2)
    assert "content-encoding" not in plain
    assert gzip.decompress(body) == text
    assert headers["etag"] == plain["etag"]
    status, head, nothing = client.get(home, "HEAD")
    assert (status, head["content-length"], nothing) == (200, str(len(text)), b"")


def test_no_more_is_kept_than_allowed(web: EmbeddedWeb, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.get(web.seeds[0])
    monkeypatch.setattr("surveyor.testing.web_server.CACHE_BYTES", 1)
    assert client.get(web.urls[0])[0] == 200
    assert client.get(web.seeds[0]) == first


def test_hosts_resolve_and_strangers_are_sent_away(web: EmbeddedWeb, client: Client) -> None:
    assert (
        set(web.resolver)
        == set(web.hosts)
        == {urlsplit(url).hostname for url in web.urls} - {"nowhere.lost.example"} | {"calendar.trap.example"}
    )
    assert asyncio.run(web.resolver.resolve("WWW.Site0.example", 80)) == ["127.0.0.1"]
    with pytest.raises(OSError, match="nowhere"):
        asyncio.run(web.resolver.resolve("nowhere.lost.example", 80))
    assert len(web.resolver) == len(web.hosts)
    assert client.get("http://elsewhere.example/")[0] == 421
    assert web.seeds[0].encode() in client.get(f"http://127.0.0.1:{web.port}/")[2]


def test_odd_requests(web: EmbeddedWeb) -> None:
    for lines, wanted in [
        ("nonsense", b"400"),
        ("GET / HTTP/1.0\r\nHost: www.site0.example", b"200"),
        (f"GET {web.seeds[0]} HTTP/1.1\r\nHost: proxy\r\nConnection: close", b"200"),
        ("GET /" + "x" * 70_000, b""),
    ]:
        with socket.create_connection(("127.0.0.1", web.port), TIMEOUT) as plain:
            plain.sendall(lines.encode() + b"\r\n\r\n"[: 4 if wanted else 0])
            text = b""
            while chunk := plain.recv(1 << 16):
                text += chunk
            assert text[9:12] == wanted


def test_it_stops_cleanly() -> None:
    settings = WebSettings.plain(slow=0.01, slow_seconds=60)

    async def visit() -> int:
        async with EmbeddedWeb(settings) as web:
            _, writer = await asyncio.open_connection("127.0.0.1", web.port)
            writer.write(f"GET / HTTP/1.1\r\nHost: {host_of_role(web, 'slow')}\r\n\r\n".encode())
            while not web.log:
                await asyncio.sleep(0.001)
        writer.close()
        return web.port

    threads = threading.active_count()
    port = asyncio.run(asyncio.wait_for(visit(), TIMEOUT))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), TIMEOUT)
    with running(WebSettings.plain(port=port)) as web:
        assert web.port == port
        with pytest.raises(OSError, match="in use"), running(WebSettings.plain(port=port)):
            pass
    assert threading.active_count() == threads
    served: list[str] = []
    serve(WebSettings.plain(), ready=lambda web: served.extend(web.seeds), seconds=0.01)
    assert len(served) == 3

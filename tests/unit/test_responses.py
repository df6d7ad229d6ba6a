"""The mapping of responses to outcomes in `fetch/responses.py`, row by row."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack import attack
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeadersParser  # type: ignore[import-untyped]

from surveyor.fetch.http import Fetched, HttpSettings, Timings, sent_by
from surveyor.fetch.responses import LEFT, PageResponse, Reader, Verdict, judge
from surveyor.outcome import Kind, Visit
from surveyor.store.warc import Archive
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls, domain

SEED = "https://www.example.org/"
HTML = (b"Content-Type", b"text/html; charset=utf-8")
SENT = sent_by(HttpSettings("test/1.0 (+https://example.org/bot)", sender="me@example.org"))


class World:
    """A reader of one survey, and the names of its pages."""

    def __init__(self, scope: str = "domain", seeds: tuple[str, ...] = (SEED,), **options: Any) -> None:
        self.urls = Urls()
        more = {name: options.pop(name) for name in ("include", "exclude", "depth") if name in options}
        self.scope = Scope(scope, seeds, domain=domain, **more)  # type: ignore[arg-type]
        self.reader = Reader(self.urls, self.scope, self.urls.ids(seeds).tolist(), **options)

    def id(self, url: str) -> int:
        return int(self.urls.ids([url])[0])

    def answer(self, url: str, known: Visit | None = None, **fetched: Any) -> PageResponse:
        body = fetched.get("body", b"")
        got = Fetched(url, **{"status": 200, "headers": (HTML,), "raw": body, **fetched})
        return PageResponse(self.id(url), 0, got, 1e9, judge(got), known)

    def visit(self, url: str, known: Visit | None = None, **fetched: Any) -> Visit:
        return self.visits(self.answer(url, known, **fetched))[0]

    def visits(self, *answers: PageResponse) -> list[Visit]:
        made = self.reader.visits(answers)
        assert [outcome.page for outcome in made] == [answer.page for answer in answers]
        return [outcome for outcome in made if isinstance(outcome, Visit)]

    def names(self, ids: Any) -> list[str]:
        return [self.urls[page] for page in ids.tolist()]


def links(*urls: str, rel: str = "") -> bytes:
    return "".join(f'<a href="{url}"{rel and f" rel={rel}"}>x</a>' for url in urls).encode()


def canonical(url: str) -> bytes:
    return f'<link rel=canonical href="{url}">'.encode()


@pytest.mark.parametrize(
    ("fetched", "kind", "reason", "again"),
    [
        ({"status": 200}, "fetched", "", False),
        ({"status": 206}, "fetched", "", False),
        ({"status": 304, "not_modified": True}, "fetched", "", False),
        ({"status": 304}, "blocked", "http 304", False),  # the request was not conditional
        ({"status": 200, "error": "too-large", "body": b"<p>"}, "fetched", "", False),
        ({"status": 200, "error": "decode", "body": b"<p>"}, "fetched", "", False),
        ({"status": 200, "error": "too-large"}, "blocked", "too-large", False),
        ({"status": 200, "error": "decode"}, "blocked", "decode", False),
        ({"status": 200, "error": "reset", "detail": "it broke off"}, "blocked", "it broke off", True),
        ({"status": 200, "error": "timeout-page"}, "blocked", "timeout-page", True),
        *(({"status": status}, "redirected", "", False) for status in (301, 302, 303, 307, 308)),
        ({"status": 301, "error": "too-large", "target": SEED}, "redirected", "", False),
        ({"status": 301, "error": "protocol", "detail": "to no URL"}, "blocked", "to no URL", False),
        ({"status": 300}, "blocked", "http 300", False),
        *(({"status": status}, "gone", f"http {status}", True) for status in (404, 410)),
        ({"status": 404, "error": "too-large"}, "gone", "http 404", True),
        *(({"status": status}, "blocked", f"http {status}", True) for status in (408, 425, 429, 500, 502, 503, 504)),
        ({"status": 503, "error": "decode"}, "blocked", "http 503", True),
        *(({"status": status}, "blocked", f"http {status}", False) for status in (400, 401, 403, 418, 451, 501, 999)),
        *(({"error": error}, "blocked", error, True) for error in ("dns", "refused", "timeout-connect", "offline")),
        *(({"error": error}, "blocked", error, False) for error in ("tls", "protocol", "forbidden-address")),
        ({}, "blocked", "http 0", False),
    ],
)
def test_the_table(fetched: dict[str, Any], kind: Kind, reason: str, again: bool) -> None:
    assert judge(Fetched(SEED, **fetched)) == Verdict(kind, reason, again)


def test_a_page_is_read_with_its_links() -> None:
    world = World()
    body = b"<html lang=en><title>Hi</title>" + links(
        "/a", "/b#c", "https://other.org/", "/a", SEED, "mailto:x", "/x.zip"
    )
    visit = world.visit(SEED, body=body, etag='"1"', last_modified="then", timings=Timings(total=0.5))
    assert (visit.kind, visit.status, visit.title, visit.language, visit.size) == (
        "fetched",
        200,
        "Hi",
        "en",
        len(body),
    )
    assert (visit.etag, visit.last_modified, visit.seconds, visit.fetched_at) == ('"1"', "then", 0.5, 1e9)
    assert world.names(visit.links) == [f"{SEED}a", f"{SEED}b"]  # each once, without itself
    assert world.names(visit.out_of_scope) == ["https://other.org/", f"{SEED}x.zip"]
    assert visit.nofollow.size == 0
    assert len(visit.hash) == 16
    assert visit.exchange is None  # nothing is kept


@pytest.mark.parametrize("follows", [False, True])
def test_links_that_say_nofollow_are_kept_apart_unless_asked_for(follows: bool) -> None:
    world = World(follow_nofollow=follows)
    body = links("/a", "/b", rel="nofollow") + links("/b", "/c") + links("https://other.org/", rel="ugc")
    visit = world.visit(SEED, body=body)
    plain, marked = [f"{SEED}{name}" for name in "bc"], [f"{SEED}a", "https://other.org/"]
    if follows:
        assert sorted(world.names(visit.links)) == sorted([f"{SEED}a", *plain])
        assert world.names(visit.out_of_scope) == ["https://other.org/"]
        assert visit.nofollow.size == 0
    else:
        assert world.names(visit.links) == plain
        assert world.names(visit.nofollow) == marked
    whole = world.visit(f"{SEED}n", body=b"<meta name=robots content=nofollow>" + links("/a"))
    assert whole.links.size == (1 if follows else 0)


@pytest.mark.parametrize(
    ("fetched", "found"),
    [
        ({"headers": ((b"content-type", b"application/pdf"),), "body": links("/a")}, []),
        ({"headers": ((b"content-type", b"image/png"),), "skipped": "image/png"}, []),
        ({"headers": (), "body": links("/a")}, [f"{SEED}a"]),
        ({"error": "too-large", "body": links("/a") + b"<a href=/b"}, [f"{SEED}a"]),
        ({"error": "decode", "body": links("/a")}, [f"{SEED}a"]),
        ({"body": b"\xff\xfe\x00<a"}, []),
        ({"body": b""}, []),
        ({"body": b"x" * 1000}, []),
    ],
)
def test_whatever_was_sent_is_read_as_far_as_it_goes(fetched: dict[str, Any], found: list[str]) -> None:
    world = World()
    visit = world.visit(SEED, **fetched)
    assert visit.kind == "fetched"
    assert world.names(visit.links) == found


# --- pages that stand for others ---


@attack("canonical links to other domains", area="links and URLs", must_hold="ignored outside the own domain and scope")
@pytest.mark.parametrize(
    ("named", "goal"),
    [
        ("/b", f"{SEED}b"),
        ("https://example.org/", "https://example.org/"),
        ("https://other.org/", None),  # of another domain
        (SEED, None),
        (f"{SEED}#top", None),
        ("http://www.example.org/", None),  # itself, unencrypted: it may well redirect here
        ("/b.zip", None),  # out of scope
        ("mailto:me", None),
        ("", None),
    ],
)
def test_a_canonical_page_is_believed_within_the_domain_and_the_scope(named: str, goal: str | None) -> None:
    world = World()
    visit = world.visit(SEED, body=canonical(named) + links("/a"))
    if goal is None:
        assert visit.kind == "fetched"
        assert f"{SEED}a" in world.names(visit.links)
    else:
        assert (visit.kind, world.urls[visit.target], visit.links.size) == ("redirected", goal, 0)


def test_a_header_can_name_the_canonical_page_of_a_document() -> None:
    headers = ((b"Content-Type", b"application/pdf"), (b"Link", b"</b>; rel=canonical"))
    world = World()
    assert world.urls[world.visit(SEED, headers=headers).target] == f"{SEED}b"


@pytest.mark.parametrize("together", [True, False])
def test_of_two_pages_that_name_each_other_one_is_read(together: bool) -> None:
    world = World()
    one, two = f"{SEED}1", f"{SEED}2"
    answers = [world.answer(one, body=canonical(two)), world.answer(two, body=canonical(one) + links("/a"))]
    first, second = world.visits(*answers) if together else [world.visits(answer)[0] for answer in answers]
    assert (first.kind, first.target) == ("redirected", second.page)
    assert (second.kind, f"{SEED}a" in world.names(second.links)) == ("fetched", True)


@attack(
    "redirects to nowhere, out of scope and to themselves", area="redirects", must_hold="an outcome with its reason"
)
@pytest.mark.parametrize(
    ("target", "kind", "reason"),
    [
        (f"{SEED}b", "redirected", ""),
        (SEED, "blocked", "redirects to itself"),
        (f"{SEED}?utm_source=x#top", "blocked", "redirects to itself"),
        ("https://other.org/", "blocked", LEFT),
        (None, "blocked", "redirects to no page"),
        ("mailto:me", "blocked", "redirects to no page"),
        ("http://" + "a" * 3000, "blocked", "redirects to no page"),
    ],
)
def test_redirects(target: str | None, kind: str, reason: str) -> None:
    world = World()
    visit = world.visit(SEED, status=301, target=target)
    assert (visit.kind, visit.reason, visit.status) == (kind, reason, 301)
    assert (visit.target >= 0) == (kind == "redirected")
    assert world.names(visit.out_of_scope) == (["https://other.org/"] if reason == LEFT else [])


@attack("redirect rings", area="redirects", must_hold="the ring is a dead end, not a loop")
def test_a_chain_of_redirects_is_followed_and_a_ring_is_a_dead_end() -> None:
    for ring in (False, True):
        world = World()
        places = [f"{SEED}{number}" for number in range(21)]
        answers = [world.answer(places[i], status=302, target=places[i + 1]) for i in range(20)]
        if ring:
            answers.append(world.answer(places[20], status=302, target=places[0]))
        *hops, last = world.visits(*answers)
        assert {visit.kind for visit in hops} == {"redirected"}
        assert (last.kind, last.reason) == (("blocked", "redirects in a circle") if ring else ("redirected", ""))
        end = world.urls.canonical(np.array([world.id(places[0])], np.int32))
        assert world.names(end) == [places[20]]


# --- known pages, depth, and other scopes ---


def test_a_page_that_has_not_changed_is_as_it_was() -> None:
    world = World()
    before = world.visit(SEED, body=b"<title>Hi</title>" + links("/a", "https://other.org/"), etag='"1"')
    again = world.visit(SEED, before, status=304, not_modified=True, etag='"1"', timings=Timings(total=0.25))
    assert again == replace(before, status=304, seconds=0.25, size=0, fetched_at=1e9)
    moved = world.visit(
        SEED, before, status=304, not_modified=True, etag='"2"', headers=((b"Cache-Control", b"max-age=60"),)
    )
    assert (moved.etag, moved.expires, moved.hash, moved.title) == ('"2"', 1e9 + 60, before.hash, "Hi")
    narrow = World("host", exclude=("*/a",))
    narrow.urls.ids(world.urls.added(0))
    again = narrow.visit(SEED, before, status=304, not_modified=True)
    assert again.links.size == 0  # as the scope is now
    assert again.out_of_scope.size == 2


def test_pages_too_far_from_the_seeds_stay_out_also_after_a_restart() -> None:
    first = World("any", depth=2)
    visits = [
        first.visit(SEED, body=links("/1", "/old")),
        first.visit(f"{SEED}old", status=301, target=f"{SEED}new"),  # a redirect is no step
        first.visit(f"{SEED}new", body=links("/2")),
        first.visit(f"{SEED}2", body=links("/3", SEED, "/1")),
    ]
    assert first.reader.counts_depth
    assert first.names(visits[2].links) == [f"{SEED}2"]
    assert first.names(visits[3].links) == [SEED]  # a seed is always near enough; /1 is known, yet not from here
    assert first.names(visits[3].out_of_scope) == [f"{SEED}3", f"{SEED}1"]
    for known in range(len(visits)):
        later = World("any", depth=2)
        later.urls.ids(first.urls.added(0))
        for visit in visits[:known]:
            later.reader.recall(visit)
        assert [later.reader.judged(visit) for visit in visits[known : known + 1]] == visits[known : known + 1]
    alone = World("any", depth=0)
    assert alone.visit(SEED, body=links("/1", SEED)).links.size == 0


def test_links_are_judged_anew_when_the_scope_has_changed() -> None:
    wide = World("any")
    body = links("/a", "https://sub.example.org/", "https://other.org/") + links("/n", SEED, rel="nofollow")
    read = wide.visit(SEED, body=body)
    moved = wide.visit(f"{SEED}m", status=301, target="https://other.org/")
    gone, error = wide.visit(f"{SEED}g", status=404), wide.visit(f"{SEED}e", status=500)
    visits = [read, moved, gone, error]

    def under(scope: str, **options: Any) -> tuple[World, list[Visit]]:
        world = World(scope, **options)
        world.urls.ids(wide.urls.added(0))
        return world, [world.reader.judged(visit) for visit in visits]

    assert under("any")[1] == visits
    host, narrow = under("host")
    assert host.names(narrow[0].links) == [f"{SEED}a"]
    assert host.names(narrow[0].out_of_scope) == ["https://sub.example.org/", "https://other.org/"]
    assert (narrow[1].kind, narrow[1].reason, narrow[1].target) == ("blocked", LEFT, -1)
    assert narrow[2:] == visits[2:]
    follows, all_links = under("any", follow_nofollow=True)
    assert sorted(follows.names(all_links[0].links)) == sorted([*wide.names(read.links), f"{SEED}n"])
    visits = narrow
    back = under("any")[1]
    assert sorted(back[0].links.tolist()) == sorted(read.links.tolist())
    assert back[1] == moved


# --- what is kept ---


def stored(folder: Path, visit: Visit) -> tuple[Any, list[Any]]:
    """Write what went over the wire, and read it back with the archive and with warcio."""
    archive = Archive.open(folder)
    assert visit.exchange is not None
    place = archive.write(visit.exchange)
    archive.close()
    data = (folder / place.file).read_bytes()[place.offset : place.offset + place.length]
    records = [(record.http_headers, record.content_stream().read()) for record in ArchiveIterator(io.BytesIO(data))]
    return archive.read(place), records


def test_what_went_over_the_wire_can_be_archived(tmp_path: Path) -> None:
    world = World(sent=SENT)
    packed = random.Random(3).randbytes(1000)  # noqa: S311
    url = "https://www.example.org:8443/a/b?c=d"
    headers = (
        HTML,
        (b"Transfer-Encoding", b"chunked"),
        (b"X-Odd", b"\xe4\xff"),
        (b"Set-Cookie", b"a"),
        (b"Set-Cookie", b"b"),
    )
    visit = world.visit(url, body=b"<p>", raw=packed, headers=headers, reason="Ö kay", version="1.0", ip="10.0.0.1")
    exchange, (response, request) = stored(tmp_path, visit)
    assert exchange == visit.exchange
    assert (exchange.url, exchange.body, exchange.at, exchange.ip, exchange.truncated) == (
        url,
        packed,
        1e9,
        "10.0.0.1",
        "",
    )
    asked = StatusAndHeadersParser([], verify=False).parse(io.BytesIO(exchange.request))
    assert exchange.request.startswith(b"GET /a/b?c=d HTTP/1.1\r\nHost: www.example.org:8443\r\n")
    assert exchange.request.endswith(b"\r\n\r\n")
    assert asked.get_header("User-Agent") == SENT["User-Agent"]
    assert asked.get_header("From") == "me@example.org"
    assert request[1] == b""
    answered = response[0]
    assert answered.statusline.startswith("200 ")
    assert answered.get_header("Content-Length") == "1000"
    assert answered.get_header("Transfer-Encoding") is None
    assert answered.get_header("X-Crawler-Transfer-Encoding") == "chunked"
    assert [value for name, value in answered.headers if name == "Set-Cookie"] == ["a", "b"]
    assert response[1] == packed


@pytest.mark.parametrize(
    ("fetched", "truncated"),
    [
        ({"error": "too-large"}, "length"),
        ({"error": "timeout-page"}, "time"),
        ({"error": "reset"}, "disconnect"),
        ({"status": 404}, ""),
        ({"status": 301, "target": f"{SEED}b"}, ""),
        ({"status": 500, "reason": ""}, ""),
    ],
)
def test_pages_that_were_cut_say_so_and_answers_that_are_no_pages_are_kept(
    tmp_path: Path, fetched: dict[str, Any], truncated: str
) -> None:
    exchange, _ = stored(tmp_path, World(sent=SENT).visit(SEED, body=b"abc", **fetched))
    assert (exchange.truncated, exchange.body) == (truncated, b"abc")


@pytest.mark.parametrize(
    "fetched",
    [
        {"body": b"<meta name=robots content=noarchive>"},
        {"body": b"<p>", "headers": (HTML, (b"X-Robots-Tag", b"noarchive"))},
        *({"status": status, "headers": ((b"X-Robots-Tag", b"noarchive"),)} for status in (301, 404)),
        {"status": 304, "not_modified": True},
        {"status": None, "error": "dns"},
    ],
)
def test_what_is_not_to_be_kept_is_not(fetched: dict[str, Any]) -> None:
    assert World(sent=SENT).visit(SEED, **fetched).exchange is None


@attack("a page with 10,000 links to as many hosts", area="links and URLs", must_hold="all are read as links")
def test_a_page_with_ten_thousand_links_to_as_many_hosts() -> None:
    world = World("any")
    visit = world.visit(SEED, body=links(*(f"http://h{number}.example/" for number in range(10_500))))
    assert len(set(world.names(visit.links))) == 10_500


NOISE = 200  # pages in each scope


@attack(
    "random fragments of HTML and bytes as a page, with headers",
    area="pages",
    must_hold="an outcome, no exception",
    inputs=3 * NOISE,
)
def test_bytes_of_any_kind_make_a_visit() -> None:
    chance = random.Random(5)  # noqa: S311
    parts = [
        b"<a href=",
        b"http://",
        b"[::1]:99/",
        b"<base href=//",
        b"\xff",
        b"<",
        b">",
        b"'",
        b"/..",
        b"%2e",
        b"\x00",
        b"?#",
    ]
    for scope in ("any", "domain", "prefix"):
        world = World(scope, sent=SENT)
        for _ in range(NOISE):
            body = b"".join(chance.choices(parts, k=20))
            visit = world.visit(SEED, body=body, headers=(HTML, (b"Link", body), (b"X-Robots-Tag", body)))
            assert visit.kind in ("fetched", "redirected")


def test_the_main_text_is_hashed_only_where_it_is_needed() -> None:
    world, body = World(main_text=True), b"<p>Some words</p>"
    answer = world.answer(SEED, body=body)
    assert world.reader.needs_text(answer)
    world.reader.hash_text(answer)
    first = world.visits(answer)[0]
    assert len(first.text_hash) == 16
    again = world.answer(SEED, first, body=body)
    assert not world.reader.needs_text(again)
    assert world.visits(again)[0].text_hash == first.text_hash
    assert world.visit(SEED, first, status=304, not_modified=True).text_hash == first.text_hash
    changed = world.answer(SEED, first, body=b"<p>Other words</p>")
    assert world.reader.needs_text(changed)
    assert world.visits(changed)[0].text_hash == b""  # unknown: not that of the other content
    assert not world.reader.needs_text(world.answer(SEED, status=404))
    assert not World().reader.needs_text(world.answer(SEED, body=body))


def test_until_when_a_page_is_fresh() -> None:
    visit = World().visit(
        SEED, body=b"x", headers=(HTML, (b"Cache-Control", b"public"), (b"cache-control", b"max-age=60"))
    )
    assert visit.expires == 1e9 + 60

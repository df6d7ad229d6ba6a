"""Attacks on `surveyor serve`: crawled text, other sites, rebinding, forged forms, guessed tokens, odd requests."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from attack import attack
from selectolax.lexbor import LexborHTMLParser

import surveyor as sv
from loopback import served
from serving import Visitor, serving
from surveyor.serve import security, tables
from surveyor.serve.app import VIEWS, site_of
from surveyor.serve.page import Rows as Table
from surveyor.serve.page import as_csv
from surveyor.serve.security import HEADERS, Identity
from surveyor.serve.view.build import build
from surveyor.store import published

TOKEN = "0123456789-abcdefghij"  # noqa: S105  # of a test
LARGEST = 150_000
PAYLOADS = [
    "<script>alert(1)</script>",
    "</title><script src=//evil.example/x.js></script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "${7*7}<%= 7*7 %>",
    "\u202etxt.exe\u2066\u200f\u061c",
    "bell\x07 escape \x1b[31m delete \x7f next \x85 null-like \ufeff",
    "=HYPERLINK(evil)",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "javascript:alert(1)",
    "word" * 250_000,
    "&lt;script&gt;&#x3c;svg/onload=alert(1)&#x3e;",
    "]]><!--<svg><style>*{x:expression(alert(1))}</style>",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16") * 50,
]
QUERIES = [
    "q=<script>",
    'q="onload="x',
    "q=%E2%80%AE%E2%81%A6",
    "q=javascript:alert(1)",
    "q={{7*7}}",
    "q=%0d%0aSet-Cookie:x=1",
]

TRAVERSALS = [
    "/s/../",
    "/s/..%2f..%2fetc/",
    "/s/%2e%2e/settings",
    "/s/%2e%2e%2f%2e%2e%2fetc%2fpasswd/pages",
    "/s/hostile/../../x",
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/security.py",
    "/static//etc/passwd",
    "/static/style.css%00",
    "/static/page.js/../../app.py",
    "/s/hostile/..%2f..%2fpages",
    "/s/hostile/jobs/..%2f..%2fx.json",
    "/s/C:%5cWindows/",
]


def hostile_site() -> dict[str, str | int]:
    pages: dict[str, str | int] = {}
    links = []
    for number, payload in enumerate(PAYLOADS):
        text = payload.replace("&", "&amp;").replace("<", "&lt;")
        links.append(f'<a href="/{number}">{text}</a>')
        title = text if number % 2 else payload  # also with markup inside of the title
        pages[f"/{number}"] = (
            f"<html><head><title>{title}</title></head><body><p>{text[:2000]}</p><a href='/'>x</a></body></html>"
        )
    links += [f'<a href="/p?{query.replace(chr(34), "&quot;")}">{query.replace("<", "&lt;")}</a>' for query in QUERIES]
    links += ['<a href="javascript:alert(1)">x</a>', '<a href="data:text/html,<script>alert(1)</script>">x</a>']
    pages["/"] = f"<html><head><title>{PAYLOADS[0]}</title></head><body>{''.join(links)}</body></html>"
    for query in QUERIES:
        for spelled in (query, quote(query, safe="=&:/{}*()%")):
            pages[f"/p?{spelled}"] = "<title>query</title><p>words</p>"
    return pages


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    home = tmp_path_factory.mktemp("hostile")
    with served(hostile_site()) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "WATCHED", 0.0)
        options: dict[str, Any] = {"out": home / "hostile.survey", "delay": 0.0, "backoff": 0.02}
        sv.crawl(url, contact="me@example.org", until=sv.Pages(100), **options).close()
        build(home / "hostile.survey")
        with serving(home=home) as found:
            yield found


def check_harmless(html: str) -> None:
    """Fail if a page holds anything of its own that a browser would run, or that hides text."""
    assert len(html.encode()) <= LARGEST
    tree = LexborHTMLParser(html)
    for script in tree.css("script"):
        assert re.fullmatch(r"/static/page\.js\?v=[0-9a-f]{12}", script.attributes.get("src") or ""), script.html
        assert not script.text()
    assert not tree.css("style, iframe, object, embed, base, img, [style]")
    for element in tree.css("*"):
        for name, value in element.attributes.items():
            assert not name.lower().startswith("on"), (element.tag, name)
            if name in ("href", "action", "src", "formaction"):
                assert re.match(r"(/|\?|#|https?://|$)", value or ""), (element.tag, value)
            if name == "href" and (value or "").startswith("http"):
                assert element.attributes.get("rel") == "noreferrer noopener nofollow"
    hidden = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert hidden is None, html[max(0, hidden.start() - 60) : hidden.end() + 20] if hidden else ""


@attack(
    "titles, URLs, anchors, texts: markup, handlers, templates, marks of direction, control characters, 1 MB words",
    area="surveyor serve",
    must_hold="every page shows them as visible text: no script, style, handler or hidden character; at most 150 kB",
    inputs=len(PAYLOADS) + len(QUERIES),
)
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "page"])
def test_crawled_text_stays_text(visitor: Visitor, name: str) -> None:
    query = "?q=select+title,url+from+pages" if name == "sql" else ""
    answer = visitor.get(f"/s/hostile/{name}{query}")
    assert answer.status == 200
    check_harmless(answer.text)


@attack(
    "the same, on the page of each crawled page, with its text",
    area="surveyor serve",
    must_hold="the same",
    inputs=len(PAYLOADS) + len(QUERIES),
)
def test_crawled_text_stays_text_on_every_page_of_a_page(visitor: Visitor) -> None:
    rows = visitor.get("/s/hostile/pages.json?limit=200").json()["rows"]
    assert len(rows) > len(PAYLOADS)
    for place, row in enumerate(rows):
        text = "&text=1" if place < 5 else ""  # each is parsed in a process of its own
        check_harmless(visitor.get(f"/s/hostile/page?id={row['id']}{text}").text)


@attack(
    "the same in the address of a page: filters, queries, names of surveys",
    area="surveyor serve",
    must_hold="the same",
    inputs=9 * 8,
)
def test_text_of_an_address_stays_text(visitor: Visitor) -> None:
    for payload in PAYLOADS[:9]:
        for address in ("pages?text=", "pages?host=", "page?url=", "sql?q=", "map?prefix=", "compare?with="):
            check_harmless(visitor.get(f"/s/hostile/{address}{quote(payload)}").text)
        check_harmless(visitor.get(f"/s/{quote(payload, safe='')}/").text)
        check_harmless(visitor.get(f"/start?url={quote(payload)}").text)
        assert (
            visitor.get(f"/s/{quote(payload, safe='')}/pages.json")
            .headers["content-type"]
            .startswith("application/json")
        )


@contextmanager
def last_state(visitor: Visitor) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folder of the survey and the state that its crawl published, which is restored."""
    folder = visitor.site.surveys.folder("hostile")
    assert folder is not None
    before = published.read(folder)
    assert before is not None
    try:
        yield folder, before
    finally:
        published.write_state(folder, before)


@attack(
    "the same in the published state of a crawl",
    area="surveyor serve",
    must_hold="the same, also in events",
    inputs=9,
)
def test_a_hostile_state_of_a_crawl_stays_text(visitor: Visitor) -> None:
    with last_state(visitor) as (folder, before):
        text = "".join(PAYLOADS[:9])
        page = {"url": f"http://x.example/{text}", "mass": 0.1, "why": text}
        host = {"host": text, "queued": 1, "mass": 0.1, "again_in": 1.0, "delay": 1.0, "why": text}
        recent = {"url": text, "kind": text, "status": 200, "seconds": 0.1, "at": time.time()}
        state = {"next": [page], "recent": [recent], "hosts_waiting": [host], "messages": [text], "goal": text}
        published.write_state(folder, {**before, **state, "blocked": [{"reason": text, "pages": 1, "mass": 0.1}]})
        check_harmless(visitor.get("/s/hostile/").text)
        for html in next(visitor.events("/s/hostile/events")).values():
            check_harmless(html)


@attack(
    "a published state with numbers and texts that cannot be printed",
    area="surveyor serve",
    must_hold="it is ignored: no page fails, and neither does the list of all surveys",
    inputs=5,
)
def test_a_state_that_cannot_be_printed_breaks_no_page(visitor: Visitor) -> None:
    with last_state(visitor) as (folder, before):
        huge: dict[str, Any] = {"coverage": {**before["coverage"], "at_least": 1e308}}
        wrong: list[dict[str, Any]] = [
            {"rate": 10**400},
            {"left": 10**400},
            {"goal": "\ud800"},
            {"messages": ["\ud800"]},
        ]
        for changes in [huge, *wrong]:
            (folder / "live" / "state.json").write_text(json.dumps({**before, **changes}))
            for path in ("/", "/surveys.json", "/s/hostile/", "/s/hostile/overview.json", "/s/hostile/freshness"):
                assert visitor.get(path).status == 200, (changes, path)


@attack(
    "a published state that claims another coverage",
    area="surveyor serve",
    must_hold="once the tables of this user are made, theirs is shown",
    inputs=2,
)
def test_a_forged_coverage_is_not_shown(visitor: Visitor) -> None:
    with last_state(visitor) as (folder, before):
        with sv.open(folder) as survey:
            real = survey.coverage.to_dict()
        forged = {
            "coverage": {**before["coverage"], "at_least": 0.123456},
            "pages": 9,
            "requests": 77,
            "status": "ended",
        }
        for written_at in (before["written_at"], time.time() + 1e6):
            published.write_state(folder, {**before, **forged, "written_at": written_at})
            for found in (
                visitor.get("/s/hostile/overview.json").json(),
                visitor.get("/surveys.json").json()["surveys"][0],
            ):
                assert found["coverage"] | {"sampled": None} == real | {"sampled": None}
                assert found["pages"] != 9
                assert found.get("requests") != 77


@attack(
    "a pipe among the tables of a survey",
    area="surveyor serve",
    must_hold="it is not opened",
)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_pipe_among_the_tables_blocks_no_page(tmp_path: Path) -> None:
    site = site_of(Identity("127.0.0.1", 8700), home=tmp_path)
    (tmp_path / "view").mkdir()
    for name in ("progress.json", "view.json"):
        os.mkfifo(tmp_path / "view" / name)
    thread = threading.Thread(target=lambda: site.tables.progress(tmp_path), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@attack(
    "formulas in cells of CSV",
    area="surveyor serve",
    must_hold="a spreadsheet shows them as text; numbers stay numbers",
    inputs=6,
)
def test_a_table_computes_nothing_in_a_spreadsheet() -> None:
    rows = [{"a": text, "b": -1.5} for text in ("=1+1", "+1", "-1", "@x", "\t=1", "plain")]
    assert as_csv(Table(("=cmd()", "b"), [])) == "'=cmd(),b\r\n"  # the names of columns of a query
    lines = as_csv(Table(("a", "b"), rows)).splitlines()[1:]
    assert [line.partition(",")[0] for line in lines] == ["'=1+1", "'+1", "'-1", "'@x", "\\t=1", "plain"]
    assert lines[0].endswith(",-1.5")  # a number stays one


@pytest.mark.parametrize(
    "path", ["/", "/s/hostile/pages", "/s/hostile/pages.json", "/nothing", "/static/page.js", "/openapi.json"]
)
def test_every_response_has_the_headers(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path).headers
    for name, value in HEADERS.items():
        if name != "Cache-Control":
            assert headers[name.lower()] == value
    assert "cache-control" in headers
    assert "server" not in headers
    assert "unsafe" not in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert headers["referrer-policy"] == "same-origin"  # with no-referrer, browsers send forms with the origin null


@attack(
    "a name of another site for the address of the server (DNS rebinding)",
    area="surveyor serve",
    must_hold="421, and nothing of a survey is sent",
)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1:{port}@evil.example",
        "localhost:{port}/x",
        "[::1",
        "",
        "127.0.0.1:{port}, evil.example",
    ],
)
def test_another_name_is_rejected(visitor: Visitor, host: str) -> None:
    answer = visitor.get("/surveys.json", Host=host.format(port=visitor.port))
    assert answer.status in (400, 421)
    assert b"hostile" not in answer.body


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_own_names_are_accepted(visitor: Visitor, host: str) -> None:
    assert visitor.get("/surveys.json", Host=host.format(port=visitor.port)).status == 200


FORMS = ["/start", "/s/hostile/control", "/s/hostile/jobs/check"]


@attack(
    "a form sent by another site, without Origin, or as another type (CSRF)",
    area="surveyor serve",
    must_hold="refused, nothing is changed",
)
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "", "Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json"},
    ],
)
def test_a_change_from_elsewhere_is_refused(visitor: Visitor, path: str, headers: dict[str, str]) -> None:
    sent = {name: value.format(port=visitor.port) for name, value in headers.items()}
    answer = visitor.post(path, {"action": "stop", "step": "preview", "url": "http://127.0.0.1:9/"}, **sent)
    assert answer.status in (403, 415)


@attack(
    "a form without the secret of the server, of 70 kB, or with 200 fields",
    area="surveyor serve",
    must_hold="refused",
)
@pytest.mark.parametrize("path", FORMS)
def test_a_forged_form_is_refused(visitor: Visitor, path: str) -> None:
    for secret in ("", "x", visitor.site.identity.form_secret[:-1]):
        assert visitor.post(path, {"secret": secret, "action": "stop"}).status == 403
    assert visitor.post(path, {"action": "x" * 70_000}).status == 413
    assert visitor.post(path, {f"f{number}": "1" for number in range(200)}).status == 400


@attack(
    "methods other than POST at the addresses that change something",
    area="surveyor serve",
    must_hold="refused, or nothing is changed",
)
@pytest.mark.parametrize("path", [*FORMS, "/s/hostile/jobs/explain", "/s/hostile/jobs/nothing"])
def test_a_get_changes_nothing(visitor: Visitor, path: str) -> None:
    before = set(visitor.site.jobs._jobs)
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        headers = {"Origin": f"http://127.0.0.1:{visitor.port}"}
        answer = visitor.ask(method, f"{path}?action=stop&step=crawl&url=http://127.0.0.1:9/", headers=headers)
        assert answer.status in (200, 404, 405)
        assert path == "/start" or answer.status != 200
    assert set(visitor.site.jobs._jobs) == before


@attack(
    "dots, slashes and zero bytes, also encoded, in names of surveys and files",
    area="surveyor serve",
    must_hold="not found: names are looked up and never become paths",
)
@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leaves_the_site(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status in (200, 307, 308, 404)
    for inner in (b"root:", b"import ", b"def "):
        assert inner not in answer.body
    if answer.status == 200:  # a job that does not exist
        assert answer.json() == {"schema": 1, "running": False}


@attack(
    "line breaks in paths, queries and forms; two Host headers",
    area="surveyor serve",
    must_hold="no header appears, and no redirect leads elsewhere",
    inputs=5,
)
def test_no_header_is_injected(visitor: Visitor) -> None:
    for path in ("/s/hostile%0d%0aSet-Cookie:x=1", "/s/hostile/pages?text=%0d%0aX:1", "/s/hostile/page?url=%0d%0aX:1"):
        answer = visitor.get(path)
        assert not {"set-cookie", "x"} & set(answer.headers)
    back = visitor.post("/s/hostile/jobs/check", {"action": "stop", "back": "a\r\nSet-Cookie: x=1"})
    assert back.status == 303
    assert back.headers["location"] == "/s/hostile/fix"
    assert "set-cookie" not in back.headers
    with socket.create_connection(("127.0.0.1", visitor.port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(100).split(b" ")[1] in (b"400", b"421")


@attack(
    "addresses of 5,000 and 9,000 bytes",
    area="surveyor serve",
    must_hold="refused",
    inputs=2,
)
def test_a_long_address_is_refused(visitor: Visitor) -> None:
    assert visitor.get("/s/hostile/pages?text=" + "a" * 9000).status == 414
    assert visitor.get("/s/hostile/pages?text=" + "a" * 5000).status == 400


@attack(
    "forged, damaged and linked results of computations in a survey",
    area="surveyor serve",
    must_hold="only what this user computed there is shown",
    inputs=7,
)
def test_a_result_from_elsewhere_is_not_shown(visitor: Visitor, tmp_path: Path) -> None:
    folder = visitor.site.surveys.folder("hostile")
    assert folder is not None
    visitor.post("/s/hostile/jobs/check", {})
    visitor.wait("/s/hostile/jobs/check.json", lambda found: not found["running"])
    place = folder / "view" / "jobs" / "check"
    signature, _, text = place.read_bytes().partition(b"\n")
    check_harmless(visitor.get("/s/hostile/fix").text)
    assert visitor.get("/s/hostile/fix.json").json()["rules"]
    visitor.site.jobs._jobs.clear()
    forged = text.replace(b'"rules": {', b'"rules": {"forged-rule": 1, ')
    assert forged != text
    (tmp_path / "elsewhere").write_bytes(signature + b"\n" + text)
    for content in (forged, signature + b"\n" + forged, b"\n" + text, b"", b"\n[]", b"0" * 64 + b"\n" + text):
        place.write_bytes(content)
        assert visitor.get("/s/hostile/fix.json").json()["rules"] == {}
        assert "Not checked yet" in visitor.get("/s/hostile/fix").text
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")  # signed, but a link
    assert visitor.get("/s/hostile/fix.json").json()["rules"] == {}
    place.unlink()


@attack(
    "requests without the token on an address that other machines reach",
    area="surveyor serve",
    must_hold="401 for every address; the cookie is HttpOnly, SameSite=Strict and does not hold the token",
    inputs=8,
)
def test_a_token_is_needed_on_other_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "FAILURE_DELAY", 0.01)
    with serving(home=tmp_path, host="0.0.0.0", token=TOKEN) as visitor:  # noqa: S104
        for path in ("/", "/surveys.json", "/static/page.js", "/openapi.json", "/events", "/robots.txt"):
            assert visitor.get(path).status == 401
        assert visitor.post("/start", {"step": "preview", "url": "http://127.0.0.1:9/"}).status == 401
        assert visitor.get("/", Cookie="surveyor-1=x").status == 401
        assert visitor.get("/surveys.json", Authorization=f"Bearer {TOKEN}").status == 200
        assert visitor.get("/surveys.json", Authorization=f"Basic {TOKEN}").status == 401
        assert visitor.get("/surveys.json", Host="evil.example").status == 421
        first = visitor.get(f"/surveys.json?token={TOKEN}&a=1")
        assert (first.status, first.headers["location"]) == (303, "/surveys.json?a=1")
        cookie = first.headers["set-cookie"]
        for word in (f"surveyor-{visitor.port}=", "HttpOnly", "SameSite=strict", "Path=/"):
            assert word in cookie
        assert TOKEN not in cookie
        assert visitor.get(f"//evil.example/?token={TOKEN}").headers["location"].startswith("/evil.example")
        name, _, value = cookie.partition(";")[0].partition("=")
        visitor.cookies[name] = value
        assert visitor.get("/surveys.json").status == 200
        assert TOKEN not in visitor.get("/").text
        assert visitor.post("/start", {"step": "preview", "url": "nonsense://x"}).status == 400  # past the guard


@attack(
    "30 guesses of a token",
    area="surveyor serve",
    must_hold="each waits, after ten in a minute none is compared; who is in stays in",
    inputs=30,
)
def test_guessing_a_token_is_slow_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "FAILURE_DELAY", 0.02)
    with serving(home=tmp_path, host="192.0.2.7", token=TOKEN) as visitor:
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        cookie = visitor.get(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
        began = time.monotonic()
        statuses = [visitor.get(f"/?token={TOKEN[:-1]}{number % 10}{number}").status for number in range(30)]
        assert statuses[: security.MOST_FAILURES] == [401] * security.MOST_FAILURES
        assert set(statuses[security.MOST_FAILURES :]) == {429}
        assert time.monotonic() - began >= security.MOST_FAILURES * 0.02
        assert visitor.get("/surveys.json", **allowed).status == 429  # not compared any more, for a minute
        assert visitor.get("/surveys.json", Cookie=cookie).status == 200  # who is in stays in


def test_tokens_are_made_where_they_are_needed() -> None:
    assert security.token_for("127.0.0.1", None) == ""
    assert security.token_for("::1", None) == ""
    assert security.token_for("127.0.0.1", TOKEN) == TOKEN
    assert len(security.token_for("0.0.0.0", None)) >= 32  # noqa: S104
    assert security.token_for("192.0.2.1", None) != security.token_for("192.0.2.1", None)
    shown = repr(Identity("127.0.0.1", 1, TOKEN))
    assert "session" not in shown
    assert "form_secret" not in shown


CROSS = [
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},  # another port
]


@attack(
    "a page that another site embeds, or a query that it links to, to measure how long it takes",
    area="surveyor serve",
    must_hold="refused at once; a link to a page is followed",
    inputs=9,
)
def test_another_site_cannot_time_a_query(visitor: Visitor) -> None:
    query = f"/s/hostile/sql?q={quote('select 1')}"
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    for headers in CROSS:
        assert visitor.get(query, **headers).status == 403
        assert visitor.get("/s/hostile/pages", **headers).status == 403
    assert visitor.get(query, **link).status == 403
    assert visitor.get("/s/hostile/pages", **link).status == 200
    for site in ("none", "same-origin"):
        assert visitor.get(query, **{"Sec-Fetch-Site": site}).status == 200


@attack(
    "queries without end at the same time",
    area="surveyor serve",
    must_hold="2 run and 18 wait, the others are refused, and other pages are answered meanwhile",
    inputs=30,
)
def test_many_queries_leave_the_server_free(visitor: Visitor) -> None:
    endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t"
    found: list[int] = []
    path = f"/s/hostile/sql.json?q={quote(endless)}"
    threads = [threading.Thread(target=lambda: found.append(visitor.get(path).status)) for _ in range(30)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surveyor.serve.views.sql.SECONDS", 0.2)
        for thread in threads:
            thread.start()
        while len(found) < 8:  # those that were refused at once
            time.sleep(0.01)
        assert visitor.get("/s/hostile/pages").status == 200
        assert len(found) < 30  # while the others still wait
        for thread in threads:
            thread.join(60)
    assert sorted(found) == [400] * 20 + [503] * 10


@pytest.mark.parametrize(
    ("kind", "value"), [("pages", "nan"), ("pages", "inf"), ("minutes", "nan"), ("pages", "1e300")]
)
def test_a_goal_that_is_no_number_gets_a_sentence(visitor: Visitor, kind: str, value: str) -> None:
    for path, step in (
        ("/start", {"step": "crawl", "url": "http://127.0.0.1:1/"}),
        ("/s/hostile/control", {"action": "goal"}),
    ):
        answer = visitor.post(path, {**step, "goal_kind": kind, "goal_value": value})
        assert answer.status == 400
        assert "must be a whole number from 1" in answer.text


def test_an_error_in_a_form_gets_a_sentence(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surveyor.serve.views.start.checked", lambda _: 1 / 0)
    answer = visitor.post("/start", {"step": "preview", "url": "http://127.0.0.1:1/"})
    assert answer.status == 500
    assert "This is a bug in surveyor (ZeroDivisionError)." in answer.text
    assert "division" not in answer.text
    assert answer.headers["content-security-policy"]


def test_unknown_parameters_are_not_repeated_in_every_link(visitor: Visitor) -> None:
    text = visitor.get("/s/hostile/pages?sort=url&unknown=1").text
    assert text.count("sort=url") > text.count("unknown=1") <= 2  # in the addresses of the JSON and the CSV

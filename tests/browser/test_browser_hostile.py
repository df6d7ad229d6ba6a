"""Hostile content and hostile visitors: nothing of a crawled site runs, and no other site reads or changes anything."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from attack import attack
from playwright.sync_api import Browser, expect

import surveyor as sv
from browsing import SECONDS, VIEWS, Visitor, built, chromium, serving, until, visiting
from hostile_site import PLACES, TEXTS, pages
from loopback import served
from surveyor.store import published

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("nowhere")]

expect.set_options(timeout=1000 * SECONDS)
NAME = "hostile"
AREA = "surveyor serve"
TOKEN = "a-token-of-a-test-0123456789"  # noqa: S105
GUESSES = 25
CONTROL = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f"
DIRECTION = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069"
HIDDEN = f"[{CONTROL}{DIRECTION}\\u200b\\ufeff\\ufff9-\\ufffb]"
INSPECT = f"""() => {{
    const all = [...document.querySelectorAll('*')];
    const own = location.origin, origin = text => URL.canParse(text) ? new URL(text).origin : "none";
    return {{
        scripts: [...document.scripts].map(one => one.src),
        handlers: all.flatMap(one => [...one.attributes].filter(a => a.name.startsWith('on')).map(a => a.name)),
        styles: all.filter(one => one.hasAttribute('style') || one.localName === 'style').length,
        embedded: document.querySelectorAll('iframe, object, embed, img, base, math, video, audio').length,
        links: all.filter(one => one.localName === 'a' && one.hasAttribute('href')).map(one => one.getAttribute('href'))
            .map(link => URL.canParse(link, location.href) ? new URL(link, location.href).protocol : link),
        loose: [...document.querySelectorAll('a[href^="http"]')].filter(one => origin(one.href) !== own
            && !['noreferrer', 'noopener', 'nofollow'].every(word => one.relList.contains(word))).length,
        forms: [...document.forms].map(one => new URL(one.getAttribute('action') || '', location.href).origin)
            .filter(origin => origin !== own).length,
        hidden: (document.documentElement.outerHTML.match(new RegExp({json.dumps(HIDDEN)}, 'gu')) || []),
        wide: document.documentElement.scrollWidth - innerWidth,
    }};
}}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crawl the hostile site; it is gone afterwards."""
    folder = tmp_path_factory.mktemp("surveys")
    with served(pages()) as url:
        options: dict[str, Any] = {"contact": "me@example.org", "delay": 0, "backoff": 0.02, "allow": ["127.0.0.1"]}
        survey = sv.crawl(url, out=folder / f"{NAME}.survey", until="coverage=0.9999", **options)
        assert survey.pages_fetched >= len(PLACES) * len(TEXTS)
        survey.close()
    return folder


@pytest.fixture(scope="module")
def base(place: Path) -> Iterator[str]:
    with serving(place) as address:
        yield address


def look(visitor: Visitor, path: str) -> None:
    """Open a page and check that it contains only what the server put there."""
    page = visitor.page
    response = page.goto(path)
    assert response is not None
    assert response.status in (200, 400, 404), f"{path}: {response.status}"
    found = page.evaluate(INSPECT)
    assert [urlsplit(source).path for source in found["scripts"]] == ["/static/page.js"], path
    assert found["handlers"] == [], path
    assert {"http:", "https:"} >= set(found["links"]), f"{path}: {set(found['links'])}"
    for kind in ("styles", "embedded", "loose", "forms", "hidden"):
        assert not found[kind], f"{path}: {kind} {found[kind]!r}"
    assert found["wide"] <= 0, f"{path} is {found['wide']} pixels too wide"


def ids(visitor: Visitor) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        response = visitor.context.request.get(f"/s/{NAME}/pages.json", params={"limit": "1000", "after": after})
        found = response.json()
        rows += found["rows"]
        after = found["next"]
        if not after:
            return rows


@attack(
    "scripts, event handlers, addresses, templates, marks of direction, control characters and 1 MB words in titles, "
    "URLs, anchors and texts, on every page in a browser",
    area=AREA,
    must_hold="nothing runs, loads, submits or leads elsewhere; no invisible character is shown; no page is too wide",
    inputs=len(PLACES) * len(TEXTS),
)
def test_nothing_of_a_hostile_site_runs(browser: Browser, base: str) -> None:
    with visiting(browser, base, viewport={"width": 360, "height": 740}) as visitor:
        visitor.record.accepted = ("status of 400", "status of 404")
        built(visitor, NAME)
        rows = ids(visitor)
        assert len(rows) >= len(PLACES) * len(TEXTS)
        for view in VIEWS:
            look(visitor, f"/s/{NAME}/{view}")
        look(visitor, f"/s/{NAME}/blocked?show=frontier")
        visitor.page.goto(f"/s/{NAME}/pages?text=%7B%7B7*7%7D%7D")
        assert "{{7*7}}" in visitor.page.inner_text("#found")
        for start in ("check", "community", "changes"):
            computed(visitor, start)
        look(visitor, f"/s/{NAME}/sql?q=select+url,+title,+reason+from+pages+order+by+id")
        for row in rows:
            look(visitor, f"/s/{NAME}/page?id={row['id']}{'&text=1' if row['status'] == 'fetched' else ''}")


def computed(visitor: Visitor, kind: str) -> None:
    """Run a computation from its page and look at its result."""
    view = {"check": "fix", "changes": "freshness"}.get(kind, kind)
    visitor.page.goto(f"/s/{NAME}/{view}")
    visitor.page.locator(f"form[action$='/jobs/{kind}'] button").first.click()
    expect(visitor.page.locator("[data-poll]")).to_have_count(0)
    look(visitor, f"/s/{NAME}/{view}")


@attack(
    "the same texts as parameters of every page",
    area=AREA,
    must_hold="nothing runs; a wrong value is a sentence; no header is added to a response",
    inputs=len(TEXTS),
)
def test_nothing_of_an_address_runs(browser: Browser, base: str) -> None:
    parameters = {"pages": "text", "hosts": "text", "sql": "q", "page": "url", "map": "prefix", "compare": "with"}
    with visiting(browser, base) as visitor:
        visitor.record.accepted = ("status of 400", "status of 404")
        built(visitor, NAME)
        for text in TEXTS:
            value = json.dumps(text[:1500])
            for view, name in parameters.items():
                path = visitor.page.evaluate(f"'/s/{NAME}/{view}?' + new URLSearchParams([['{name}', {value}]])")
                look(visitor, path)
                response = visitor.context.request.get(path)
                assert "set-cookie" not in response.headers
                assert response.headers["content-security-policy"].startswith("default-src 'none'")


@attack(
    "formulas, control characters and line breaks in tables as CSV, and all texts in JSON",
    area=AREA,
    must_hold="no cell starts as a formula; every file parses, and is sent as a type that no browser runs",
    inputs=len(TEXTS),
)
def test_files_are_harmless(browser: Browser, base: str) -> None:
    with visiting(browser, base) as visitor:
        built(visitor, NAME)
        for view in (*VIEWS, "sql?q=select+url,title,reason+from+pages", "pages?sort=title", "page?id=0"):
            name, _, query = view.partition("?")
            answer = visitor.context.request.get(f"/s/{NAME}/{name}.csv?{query}")
            if answer.status == 200:
                assert answer.headers["content-type"].startswith("text/csv")
                cells = [cell for row in csv.reader(io.StringIO(answer.text(), newline="")) for cell in row]
                assert [cell for cell in cells if re.match(r"[=@\t\r]|[+-](?![\d.]+(e[+-]?\d+)?$)", cell)] == []
                assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", answer.text())
            answer = visitor.context.request.get(f"/s/{NAME}/{name}.json?{query}")
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"
            answer.json()


def asked(base: str, path: str, method: str = "GET", body: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
    """Send a request as it is; return status, headers and body."""
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body else None)
        answer = connection.getresponse()
        return (
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            answer.read().decode("utf-8", "replace"),
        )
    finally:
        connection.close()


TRAVERSALS = [
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/..%5capp.py",
    "/static//etc/passwd",
    "/static/style.css%00.js",
    "/s/../etc/passwd",
    "/s/..%2f..%2fetc/pages",
    "/s/%2e%2e/pages",
    "/s//etc/pages",
    f"/s/{NAME}%2f..%2f{NAME}/pages",
    f"/s/{NAME}/../../survey.toml",
    f"/s/{NAME}/jobs/..%2f..%2fsurvey.json",
    "/jobs/..%2f..%2fx.json",
]


@attack(
    "paths that lead out of a folder", area=AREA, must_hold="404, without a word of any file", inputs=len(TRAVERSALS)
)
def test_no_path_leads_out(base: str) -> None:
    for path in TRAVERSALS:
        status, _, text = asked(base, path)
        assert status == 404 or (status == 200 and json.loads(text) == {"schema": 1, "running": False}), path
        assert "import" not in text, path
        assert "root:" not in text, path


HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.1:1",
    "127.0.0.1",
    "",
    "a@127.0.0.1:{port}",
]
HOSTS += ["127.0.0.1:{port}.evil.example", "[::1]:1", "localhost:{port}/x", "192.0.2.1:{port}"]


@attack("other names in the Host header", area=AREA, must_hold="421 and no data, also for a POST", inputs=len(HOSTS))
def test_other_names_are_refused(base: str) -> None:
    port = urlsplit(base).port
    for host in HOSTS:
        name = host.format(port=port)
        for method in ("GET", "POST"):
            status, _, text = asked(base, f"/s/{NAME}/pages.json", method, Host=name, Origin=f"http://{name}")
            assert status in (400, 421), (name, status)
            assert "rows" not in text, name


@attack(
    "a name of an attacker that resolves to this machine, in a browser (DNS rebinding)",
    area=AREA,
    must_hold="421, no data",
)
def test_rebinding(browser: Browser, base: str) -> None:
    port = urlsplit(base).port
    with visiting(browser, base, also=("rebound.test",)) as visitor:
        visitor.record.accepted = ("status of 421", "Cross-Origin-Opener-Policy")
        response = visitor.page.goto(f"http://rebound.test:{port}/s/{NAME}/pages.json")
        assert response is not None
        assert response.status == 421
        assert "rows" not in response.text()


ORIGINS: list[dict[str, str]] = [
    {},
    {"Origin": "null"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://{host}"},
    {"Origin": "http://{host}.evil.example"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "none"},
    {"Origin": "http://{host}", "Sec_Fetch_Site": "same-site"},
    {"Origin": "http://{host}", "Sec_Fetch_Site": "same-origin"},  # with a wrong secret
]


@attack(
    "changes that another site asks for, as raw requests",
    area=AREA,
    must_hold="403, nothing changes",
    inputs=len(ORIGINS),
)
def test_other_origins_change_nothing(base: str, place: Path) -> None:
    host = urlsplit(base).netloc
    before = sorted(path.name for path in place.iterdir())
    form = "application/x-www-form-urlencoded"
    for origin in ORIGINS:
        headers = {name: value.format(host=host) for name, value in origin.items()}
        for path, body in CHANGES.items():
            status, _, _ = asked(base, path, "POST", body, Content_Type=form, **headers)
            assert status == 403, (origin, path)
    for path in CHANGES:
        assert asked(base, path)[0] in (200, 404, 405)  # and a GET is no change
    assert sorted(path.name for path in place.iterdir()) == before


CHANGES = {
    "/start": "secret=guessed&step=crawl&url=http%3A%2F%2F127.0.0.1%3A9%2F&goal_kind=pages&goal_value=1",
    f"/s/{NAME}/control": "secret=guessed&action=crawl",
    f"/s/{NAME}/jobs/domains": "secret=guessed",
}
ATTACKER = """<!doctype html><title>Another site</title><body><script type=module>
const base = %s, forms = %s;
const said = [];
const attempt = async (name, work) => {
  try { said.push([name, await work()]); } catch (error) { said.push([name, "failed"]); } };
await attempt("read", async () => (await fetch(base + "s/hostile/pages.json")).text());
await attempt("read with cookies", async () => (await fetch(base, {credentials: "include"})).text());
await attempt("opaque", async () => (await (await fetch(base, {mode: "no-cors"})).text()) || "failed");
for (const [path, body] of Object.entries(forms)) {
  const headers = {"Content-Type": "application/x-www-form-urlencoded"}, mode = "no-cors", method = "POST";
  const posted = async () => (await fetch(base.slice(0, -1) + path, {method, mode, body, headers})).text();
  await attempt("post " + path, async () => (await posted()) || "failed");
}
await attempt("script", () => new Promise((yes, no) => { const one = document.createElement("script");
  one.src = base + "s/hostile/pages.json"; one.onload = () => yes("loaded"); one.onerror = no;
  document.head.append(one); }));
await attempt("image", () => new Promise((yes, no) => { const one = new Image(); one.onload = () => yes("loaded");
  one.onerror = no; one.src = base + "static/icon.svg"; }));
await attempt("events", () => new Promise((yes, no) => { const one = new EventSource(base + "s/hostile/events");
  one.addEventListener("parts", () => yes("read")); one.onerror = () => { one.close(); no(); }; }));
await attempt("frame", () => new Promise(yes => { const one = document.createElement("iframe"); one.src = base;
  one.onload = () => { let text = "failed"; try { text = one.contentDocument.body.innerText || "failed"; } catch {}
    yes(text); }; document.body.append(one); }));
window.said = said;
</script></body>"""
POSTING = """<!doctype html><title>Another site</title><form method=post action="%s"><input name=secret value=guessed>
<input name=step value=crawl><input name=url value="http://127.0.0.1:9/"><input name=action value=crawl></form>
<script>document.forms[0].submit()</script>"""


@attack(
    "a page of another port of this machine that reads, posts, frames and includes, in a browser (CSRF)",
    area=AREA,
    must_hold="it reads nothing, and nothing changes",
    inputs=2 * len(CHANGES) + 7,
)
def test_a_page_of_another_origin_reads_and_changes_nothing(browser: Browser, base: str, place: Path) -> None:
    site = {"/": ATTACKER % (json.dumps(base), json.dumps(CHANGES))}
    site |= {f"/{number}": POSTING % f"{base[:-1]}{path}" for number, path in enumerate(CHANGES)}
    before = sorted(path.name for path in place.iterdir())
    with served(site) as other, visiting(browser, other) as visitor:
        visitor.record.accepted = ("",)  # the console of the other page lists what failed
        visitor.page.goto(base)  # as a visitor of the page
        visitor.page.goto(other)
        said = dict(until(lambda: visitor.page.evaluate("window.said"), "the attempts of the page"))
        assert said == dict.fromkeys(said, "failed")
        assert len(said) == 7 + len(CHANGES)
        for number in range(len(CHANGES)):
            visitor.page.goto(f"{other}{number}")
            visitor.page.wait_for_url(f"{base}**")
            assert "nothing was changed" in visitor.page.inner_text("main")
    assert sorted(path.name for path in place.iterdir()) == before
    assert not published.is_running(published.read(place / f"{NAME}.survey"))


@attack(
    "guesses of the token, one after another and at once",
    area=AREA,
    must_hold="ten a minute wait half a second each, more are not compared; a visitor with the cookie stays",
    inputs=GUESSES,
)
def test_the_token_cannot_be_guessed(browser: Browser, place: Path) -> None:
    with serving(place, "--token", TOKEN) as printed, visiting(browser, printed) as visitor:
        base = printed.partition("?")[0]
        visitor.record.accepted = ("status of 401", "MIME type")  # without the token there is no style either
        assert TOKEN in printed
        assert visitor.page.goto(base).status == 401  # type: ignore[union-attr]
        assert visitor.page.goto(printed).status == 200  # type: ignore[union-attr]
        assert TOKEN not in visitor.page.url
        (cookie,) = visitor.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert cookie["value"] not in visitor.page.content()
        began, statuses = time.monotonic(), []
        for number in range(GUESSES):
            guess = f"{TOKEN[:-2]}{number:02d}"
            status, headers, text = asked(base, f"/s/{NAME}/pages.json?token={guess}")
            statuses.append(status)
            assert "rows" not in text
            assert "set-cookie" not in headers
        assert statuses == [401] * 10 + [429] * (GUESSES - 10)
        assert time.monotonic() - began >= 10 * 0.5
        assert asked(base, "/", Authorization=f"Bearer {TOKEN}")[0] == 429
        assert visitor.page.goto(f"{base}s/{NAME}/").status == 200  # type: ignore[union-attr]

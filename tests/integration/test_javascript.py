"""Pages that are empty until a script has run: which are, which only look like it, and what a crawl makes of them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import surveyor as sv
from fake_web import Sites, Time, crawled, page
from surveyor.cli import run
from surveyor.fetch.http import Fetched
from surveyor.web.html import read_page

SHELL = """<!doctype html><html><head><title>App</title><meta charset=utf-8><link rel=icon href=/i.ico>
<script type=module src=/assets/index-1f.js></script></head><body>{}</body></html>"""
NOSCRIPT = "<noscript>You need to enable JavaScript to run this app.</noscript>"
EMPTY = {
    "react": f"{NOSCRIPT}<div id=root></div>",
    "vue": "<div id=app></div><script src=/js/chunk.js></script>",
    "next": "<div id=__next></div>",
    "angular": "<app-root></app-root><script src=main.js></script>",
    "a splash screen": "<div id=root><img src=logo.svg><p>Loading…</p></div>",
    "a noscript alone": "<noscript><p>Please turn on JavaScript.</p></noscript><main></main>",
    "scripts alone": "<script src=/bundle.js></script>",
    "navigation and a banner": f"<nav>{'<a href=/x>Home</a>' * 8}</nav>{'We use cookies. ' * 15}<div id=app></div>",
    "a bundle in the page": f"<div id=root></div><script>{'if(a<b){c()}' * 600}</script>",
    "a checkbox for cookies": "<div id=app></div><form><input type=checkbox></form>",
    "a table to be filled": "<div id=root><table><tr><td></table></div>",
    "a hidden frame": "<iframe src=x style='display: none'></iframe><div id=root></div>",
    "a tag manager": '<noscript><iframe src="https://t.example/ns.html"></iframe></noscript><div id=app></div>',
}
FULL = {
    "text": f"<div id=root><p>{'A page that was rendered by the server. ' * 10}</p></div>",
    "links": "<div id=root><a href=/a>a</a><a href=/b>b</a><a href=/c>c</a></div>",
    "a short page in a root": "<div id=app><h1>Hours</h1><p>Open on weekdays from nine to five, all year.</p></div>",
    "a link in a root": "<div id=app>Moved: <a href=/new>here</a></div>",
    "a widget below an article": f"<p>{'Text that the server rendered. ' * 30}</p><div id=app></div>",
    "a short page in Chinese": "<div id=app><p>这是一篇由服务器渲染的完整短文章内容包含许多信息。</p></div>",
    "an article above a widget": f"<p>{'Real text here. ' * 30}</p><div id=root></div>",
    "a drawing": "<svg><circle/></svg>",
    "a short answer": "<h1>Not found</h1><p>There is no such page.</p>",
    "one word": "Hello",
    "a form": f"{NOSCRIPT}<form><input name=user><input name=password></form>",
    "a gallery": f"{NOSCRIPT}<img src=1><img src=2><img src=3>",
    "a frame": "<iframe src=/inner></iframe>",
    "a redirect": "<p>Moved <a href=/there>there</a>.</p>",
}


@pytest.mark.parametrize("body", EMPTY.values(), ids=list(EMPTY))
def test_empty_applications_are_recognised(body: str) -> None:
    assert read_page(SHELL.format(body).encode(), "https://a.org/", text=False).javascript


@pytest.mark.parametrize("body", FULL.values(), ids=list(FULL))
def test_small_pages_are_not_taken_for_them(body: str) -> None:
    assert not read_page(SHELL.format(body).encode(), "https://a.org/", text=False).javascript


def test_without_a_script_nothing_needs_one() -> None:
    for body in (b"", b"<div id=root></div>", b"<div id=app></div><script type=application/ld+json>{}</script>"):
        assert not read_page(body, "https://a.org/", text=False).javascript


def shell(url: str) -> Fetched:
    body = SHELL.format(EMPTY["react"]).encode()
    return Fetched(url, 200, headers=((b"content-type", b"text/html"),), body=body, raw=body)


def test_a_seed_that_needs_javascript_is_no_goal_reached(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = Sites(Time(), {"http://a.org/": shell("http://a.org/")})
    assert crawled(path, ["http://a.org/"], client, until="coverage=0.9") == "reached"
    with sv.open(path) as survey:
        assert survey.coverage.at_least > 0.9
        assert (survey.needs_javascript, survey.goal_reached) == (True, False)
        assert survey.javascript() == [{"url": "http://a.org/", "share": pytest.approx(1.0)}]
        assert survey.sql("SELECT kind, reason FROM pages").rows == [("fetched", "needs JavaScript")]
    for command in (["status"], ["top"], ["rank"], ["explain"]):
        assert run([*command, str(path), *(["http://a.org/"] if command == ["explain"] else [])]) == 0
        assert "1 page with 100 % of the captured importance need JavaScript" in capsys.readouterr().out, command
    assert run(["report", str(path), "--out", str(path.with_suffix(".html"))]) == 0
    assert "need JavaScript and are empty without it" in path.with_suffix(".html").read_text("utf-8")
    capsys.readouterr()
    assert run(["top", str(path), "--javascript", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["javascript"][0]["url"] == "http://a.org/"


def test_one_of_many_pages_is_listed_and_leaves_the_goal(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, others = "http://a.org/", [f"http://a.org/{number}" for number in range(40)]
    pages = {home: page(home, *others), **{url: page(url, home) for url in others}, others[0]: shell(others[0])}
    client = Sites(Time(), pages)
    for _ in range(2):  # also when it is resumed
        assert crawled(path, [home], client, until="coverage=0.99") == "reached"
        with sv.open(path) as survey:
            assert (survey.needs_javascript, survey.goal_reached) == (False, True)
            assert [row["url"] for row in survey.javascript()] == [others[0]]
            assert 0 < survey.javascript_share < 0.05
    assert run(["top", str(path), "--javascript"]) == 0
    assert others[0] in capsys.readouterr().out


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


class Shell(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = SHELL.format(EMPTY["react"]).encode() if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_the_command_ends_with_code_3_and_gives_the_reason(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shell) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        options = ["--contact", "me@example.org", "--allow", "127.0.0.1", "--delay", "0", "--until", "coverage=0.9"]
        code = run(["crawl", url, "--out", str(path), *options])
        server.shutdown()
    out, err = capsys.readouterr()
    assert code == 3
    assert "Goal not reached" in out
    assert "Scripts are not run" in out
    assert "--javascript" in out + err

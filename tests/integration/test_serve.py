"""`surveyor serve`: every page in three forms, live events, a crawl that is started and steered over HTTP, and jobs."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

import surveyor as sv
from console import CommandResult
from loopback import linked, served
from serving import Visitor, serving
from surveyor.serve import openapi, tables
from surveyor.serve.app import TOP_VIEWS, VIEWS
from surveyor.serve.view.build import build
from surveyor.store import published

LARGEST = 150_000  # bytes of a page
SITE: dict[str, str | int] = {
    "/": linked("/a", "/b", "/docs/", "/private/x", title="Home"),
    "/a": linked("/", "/b", "/gone", title="Page A"),
    "/b": linked("/", "/docs/one", title="Page B"),
    "/docs/": linked("/docs/one", "/docs/two", title="Docs"),
    "/docs/one": linked("/docs/", title="One"),
    "/docs/two": linked("/docs/", title="Two"),
    "/robots.txt": "User-agent: *\nDisallow: /private/\n",
}
PATHS = {  # what a page needs in its address
    "page": "?id=0&text=1",
    "sql": "?q=select+host,+pages+from+hosts",
    "map": "?prefix={site}",
    "compare": "?with=other",
}


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    home = tmp_path_factory.mktemp("home")
    with served(SITE) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "WATCHED", 0.0)  # the tables are built here, not in another process
        for name in ("site", "other"):
            options: dict[str, Any] = {"out": home / f"{name}.survey", "delay": 0.0, "backoff": 0.02}
            sv.crawl(url, contact="me@example.org", until=sv.Pages(100), **options).close()
            build(home / f"{name}.survey")
        with serving(home=home) as found:
            found.site.notes["url"] = url
            yield found


@pytest.mark.parametrize("name", VIEWS)
def test_each_page_is_html_json_and_csv(visitor: Visitor, name: str) -> None:
    query = PATHS.get(name, "").format(site=visitor.site.notes["url"])
    html = visitor.get(f"/s/site/{name}{query}")
    assert html.status == 200, html.text
    assert len(html.body) <= LARGEST
    tree = LexborHTMLParser(html.text)
    title = tree.css_first("title")
    assert title is not None
    assert title.text().endswith("– surveyor")
    for part in ("h1", "main", "header", "footer", "nav.tabs", "a.skip[href='#content']", "main#content"):
        assert len(tree.css(part)) == 1, part
    assert [link.attributes["aria-current"] for link in tree.css(".tabs [aria-current]")] == ["page"]
    for field in tree.css("input:not([type=hidden]), select, textarea"):
        label = field.parent
        assert label is not None
        assert label.tag == "label", field.html
    for drawing in tree.css("svg"):
        attributes = drawing.attributes
        assert "aria-label" in attributes or attributes.get("aria-hidden") == "true", drawing.html
    found = visitor.get(f"/s/site/{name}.json{query}")
    assert found.json()["schema"] == 1
    assert found.headers["content-type"].startswith("application/json")
    table = visitor.get(f"/s/site/{name}.csv{query}")
    assert table.headers["content-type"].startswith("text/csv")
    assert len(next(csv.reader(io.StringIO(table.text)))) >= 2


def test_the_list_of_surveys_and_the_form(visitor: Visitor) -> None:
    html = visitor.get("/").text
    assert 'href="/s/site/"' in html
    rows = {row["name"]: row for row in visitor.get("/surveys.json").json()["surveys"]}
    assert rows["site"]["pages"] == 6
    assert rows["site"]["coverage"]["at_least"] > 0.5
    assert visitor.get("/surveys.csv").text.startswith("name,status,pages")
    assert visitor.get("/s/site").headers["location"] == "/s/site/"
    assert 'action="/start"' in visitor.get("/start").text
    assert "prefilled.example" in visitor.get("/start?url=prefilled.example").text


def test_an_empty_folder_shows_one_field_and_an_example(tmp_path: Path) -> None:
    with serving(home=tmp_path) as visitor:
        tree = LexborHTMLParser(visitor.get("/").text)
        assert [field.attributes["name"] for field in tree.css("input:not([type=hidden])")] == ["url"]
        assert "No survey yet" in tree.css_first("h1").text()  # type: ignore[union-attr]
        assert visitor.get("/surveys.json").json()["surveys"] == []


def test_pages_filters_sorts_and_pages(visitor: Visitor) -> None:
    url = visitor.site.notes["url"]
    fetched = visitor.get("/s/site/pages.json?status=fetched&sort=url&order=up&limit=2").json()
    assert [row["url"] for row in fetched["rows"]] == [url, f"{url}a"]
    assert fetched["total"] == 6
    more = visitor.get(f"/s/site/pages.json?status=fetched&sort=url&order=up&limit=2&after={fetched['next']}").json()
    assert [row["url"] for row in more["rows"]] == [f"{url}b", f"{url}docs/"]
    assert visitor.get("/s/site/pages.json?text=Docs").json()["total"] >= 1
    assert {row["status"] for row in visitor.get("/s/site/pages.json?status=blocked").json()["rows"]} == {"blocked"}
    shown = visitor.get("/s/site/pages?status=fetched").text
    assert "surveyor sql" in shown  # the same as a command


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/s/nothing/", 404, "no survey named"),
        ("/s/site/nothing", 404, "no such page"),
        ("/s/site/pages?sort=color", 400, "sort must be one of"),
        ("/s/site/pages?limit=0", 400, "limit must be a whole number from 1"),
        ("/s/site/pages?status=eaten", 400, "status must be one of"),
        ("/s/site/pages?after=nonsense", 400, "fter is no token"),
        ("/s/site/page", 400, "No page is named"),
        ("/s/site/page?id=99999", 404, "here is no page 99999"),
        ("/s/site/page?url=https://elsewhere.example/", 404, "not a known URL"),
        ("/s/site/map?prefix=https://elsewhere.example/", 400, "not a folder"),
        ("/s/site/sql?q=delete+from+pages", 400, "read-only"),
        ("/s/site/compare?with=nothing", 404, "no survey named"),
        ("/s/site/hosts?level=planets", 400, "level must be one of"),
    ],
)
def test_a_wrong_address_gets_a_sentence_and_a_link(visitor: Visitor, path: str, status: int, words: str) -> None:
    html = visitor.get(path)
    assert html.status == status
    assert words in html.text
    assert 'href="/' in html.text
    base, question, query = path.partition("?")
    if not base.endswith("/"):
        found = visitor.get(f"{base}.json{question}{query}")
        assert found.status == status
        assert words in json.dumps(found.json())


def test_sql_is_read_only_and_limited(visitor: Visitor) -> None:
    found = visitor.get("/s/site/sql.json?q=select+count(*)+n+from+pages").json()
    assert found["rows"][0]["n"] >= 6
    endless = "with+recursive+n(i)+as+(select+1+union+all+select+i%2B1+from+n)+select+count(*)+from+n"
    began = time.monotonic()
    stopped = visitor.get(f"/s/site/sql.json?q={endless}")
    assert stopped.status == 400
    assert stopped.json()["problem"]
    assert time.monotonic() - began < 10
    rows = "with+recursive+n(i)+as+(select+1+union+all+select+i%2B1+from+n+where+i<5000)+select+i+from+n"
    many = visitor.get(f"/s/site/sql.json?q={rows}").json()
    assert (len(many["rows"]), many["truncated"]) == (1000, True)
    for wrong in ("drop+table+pages", "select+1;select+2", "attach+'x'+as+y", "pragma+table_info(pages)", "select"):
        assert visitor.get(f"/s/site/sql.json?q={wrong}").json()["problem"], wrong


def test_the_page_of_a_page_explains_it(visitor: Visitor) -> None:
    url = visitor.site.notes["url"]
    found = visitor.get(f"/s/site/page.json?url={url}docs/").json()
    assert found["page"]["title"] == "Docs"
    assert {row["url"] for row in found["in_links"]["rows"]} == {url, f"{url}docs/one", f"{url}docs/two"}
    assert sum(row["fraction"] for row in found["explanation"]["rows"]) == pytest.approx(1, abs=1e-3)
    assert found["visits"]["rows"][0]["kind"] == "fetched"
    assert "worth reading" in visitor.get(f"/s/site/page?url={url}docs/&text=1").text
    assert visitor.get("/s/site/page.json?random=1").json()["page"]["status"] == "fetched"


def test_events_follow_the_published_state(visitor: Visitor) -> None:
    folder = visitor.site.surveys.folder("other")
    assert folder is not None
    state = published.read(folder)
    assert state is not None
    events = visitor.events("/s/other/events")
    first = next(events)
    assert set(first) >= {"live-bounds", "live-controls", "live-state", "live-next"}
    assert "captured at least" in first["live-bounds"]
    assert "Resume the crawl" in first["live-controls"]
    running = {
        **state,
        "status": "running",
        "written_at": time.time(),
        "pid": os.getpid(),
        "machine": published.machine(),
    }
    published.write_state(folder, running | {"pages": 12_345})
    second = next(events)
    assert "12,345" in second["live-facts"]
    assert "Pause" in second["live-controls"]
    assert "live-bounds" not in second  # only what has changed
    published.write_state(folder, state)
    assert "Resume the crawl" in next(events)["live-controls"]
    events.close()  # type: ignore[attr-defined]
    assert "live-surveys" in next(visitor.events("/events"))


def test_a_job_runs_once_and_its_result_is_kept(visitor: Visitor) -> None:
    started = visitor.post("/s/site/jobs/check", {})
    assert (started.status, started.headers["location"]) == (303, "/s/site/fix")
    again = visitor.post("/s/site/jobs/check", {})
    assert again.status == 409
    assert "already running" in again.text
    ended = visitor.wait("/s/site/jobs/check.json", lambda found: not found["running"])
    assert (ended["code"], ended["problem"]) == (0, "")
    assert ended["command"][:2] == ["surveyor", "check"]
    found = visitor.get("/s/site/fix.json").json()
    assert found["rules"]["broken-link"] == 1
    assert "broken-link" in visitor.get("/s/site/fix?rule=broken-link").text
    assert "broken-link" in visitor.get("/s/site/fix.csv").text
    folder = visitor.site.surveys.folder("site")
    assert folder is not None
    stored = (folder / "view" / "jobs" / "check").read_text().splitlines()
    assert json.loads(stored[1])["result"]["command"] == "check"


def test_a_result_says_when_the_survey_has_changed_since(visitor: Visitor) -> None:
    visitor.post("/s/site/jobs/sample", {"share": "words:b"})
    visitor.wait("/s/site/jobs/sample.json", lambda found: not found["running"])
    text = visitor.get("/s/site/sample").text
    assert "Computed at" in text
    assert "has changed since then" not in text
    result = visitor.get("/s/site/sample.json").json()["result"]
    assert result["exact"]  # the method, not the estimates
    assert "every known page" not in text
    assert "no sampling error" not in text
    folder = visitor.site.surveys.folder("site")
    assert folder is not None
    journal = folder / "journal.sqlite"
    about = journal.stat()
    try:
        os.utime(journal, (about.st_atime, time.time() + 10))
        assert "has changed since then" in visitor.get("/s/site/sample").text
    finally:
        os.utime(journal, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_the_tables_and_the_last_state_of_a_crawl_agree(visitor: Visitor) -> None:
    folder = visitor.site.surveys.folder("site")
    assert folder is not None
    names = ("pages", "known", "queued", "bytes", "strategy", "blocked", "best_possible", "coverage")
    with_state = visitor.get("/s/site/overview.json").json()
    (folder / "live").rename(folder / "aside")
    try:
        without = visitor.get("/s/site/overview.json").json()
    finally:
        (folder / "aside").rename(folder / "live")
    assert {name: with_state[name] for name in names} == {name: without[name] for name in names}
    coverage = without["coverage"]
    assert coverage["blocked"] > 0
    assert without["best_possible"] == 1 - coverage["blocked"] - coverage["lost"] < coverage["at_most"]
    accounts = [coverage[name] for name in ("captured", "moving", "waiting", "blocked", "lost")]
    assert sum(accounts) == pytest.approx(1, abs=1e-12)
    with sv.open(folder) as survey:
        assert coverage == survey.coverage_fields


def test_the_command_of_a_page_gives_its_shares(visitor: Visitor, capsys: pytest.CaptureFixture[str]) -> None:
    shown = LexborHTMLParser(visitor.get("/s/site/pages").text).css_first("#as-command")
    assert shown is not None
    command = shown.text().split()
    assert command[:2] == ["surveyor", "top"]
    assert command[-2:] == ["--tolerance", "1e-09"]  # that of the tables; the default is another one
    found = json.loads(CommandResult(capsys, *command[1:], "--json").out)["pages"]
    rows = {row["url"]: row for row in visitor.get("/s/site/pages.json").json()["rows"]}
    assert found
    for row in found:
        assert row["share"] == rows[row["url"]]["share"]
        assert row["score"] == pytest.approx(rows[row["url"]]["score"], abs=0.051)


def test_the_error_of_a_job_is_a_sentence(visitor: Visitor) -> None:
    wrong = visitor.post("/s/site/jobs/community", {"kind": "host", "value": "nowhere.example"})
    assert wrong.status == 303
    ended = visitor.wait("/s/site/jobs/community.json", lambda found: not found["running"])
    assert ended["problem"]
    assert "Traceback" not in ended["problem"]
    assert ended["problem"][:60] in visitor.get("/s/site/community").text
    for kind, form in (
        ("sample", {"topic": "not:model:/etc/passwd"}),
        ("changes", {"since": "never"}),
        ("nothing", {}),
    ):
        assert visitor.post(f"/s/site/jobs/{kind}", form).status in (400, 404)
    assert visitor.post("/s/site/jobs/community", {"kind": "host", "value": "a\x07b"}).status == 400


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"url": ""}, "not an address of http"),
        ({"url": "file:///etc/passwd"}, "not an address of http"),
        ({"url": "javascript:alert(1)"}, "not an address of http"),
        ({"url": "example.org", "delay": "-1"}, "delay must be from 0"),
        ({"url": "example.org", "scope": "planet"}, "scope must be one of"),
        ({"url": "example.org", "contact": "a\nb"}, "control characters"),
        ({"url": "example.org", "step": "crawl", "goal_kind": "coverage", "goal_value": "100"}, "below 100 %"),
        ({"url": "example.org", "step": "crawl", "goal_kind": "pages", "goal_value": "x"}, "must be a number"),
        ({"url": "example.org", "step": "crawl", "goal_kind": "moons", "goal_value": "3"}, "goal_kind must be"),
        ({"url": "example.org", "step": "dance"}, "step must be"),
    ],
)
def test_a_wrong_form_gets_a_sentence(visitor: Visitor, form: dict[str, str], words: str) -> None:
    answer = visitor.post("/start", form)
    assert answer.status == 400
    assert words in answer.text


@pytest.mark.slow
def test_a_crawl_is_started_and_steered_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages = {f"/{number}": linked(*(f"/{other}" for other in range(number, number + 6))) for number in range(400)}
    with served({"/": linked("/0"), **pages}) as url, serving(home=tmp_path) as visitor:
        form = {"url": url, "contact": "me@example.org", "delay": "0.05"}
        preview = visitor.post("/start", {**form, "step": "preview"}).headers["location"]
        seen = visitor.wait(preview.replace("/start", "/start.json"), lambda found: not found["preview"]["running"])
        assert seen["preview"]["problem"] == ""
        assert "missing, so every page is allowed" in visitor.get(preview).text
        assert "Start the crawl" in visitor.get(preview).text
        goal = {"goal_kind": "pages", "goal_value": "300"}
        started = visitor.post("/start", {**form, **goal, "step": "crawl"})
        assert started.status == 303, started.text
        at = started.headers["location"]
        visitor.wait(f"{at}overview.json", lambda found: found["running"] and found["pages"] >= 3)
        assert visitor.post(f"{at}control", {"action": "pause"}).status == 303
        paused = visitor.get(f"{at}overview.json").json()
        assert paused["status"] == "paused"
        assert "Resume" in visitor.get(at).text
        refused = visitor.post(f"{at}control", {"action": "goal", "goal_kind": "pages", "goal_value": "-5"})
        assert refused.status == 400
        new = {"action": "goal", "goal_kind": "pages", "goal_value": str(paused["pages"] + 10)}
        assert visitor.post(f"{at}control", new).status == 303
        assert visitor.post(f"{at}control", {"action": "resume"}).status == 303
        ended = visitor.wait(f"{at}overview.json", lambda found: found["status"] == "ended")
        assert ended["ending"] == "reached"
        assert paused["pages"] + 10 <= ended["pages"] < 300
        assert visitor.post(f"{at}control", {"action": "pause"}).status == 409  # nothing runs any more
        # It is resumed from the page, and stopped with the server.
        assert (
            visitor.post(f"{at}control", {"action": "crawl", "goal_kind": "pages", "goal_value": "390"}).status == 303
        )
        visitor.wait(f"{at}overview.json", lambda found: found["running"] and found["pages"] > ended["pages"])
    [folder] = tmp_path.glob("*.survey")
    state = published.read(folder)
    assert state is not None
    assert not published.is_running(state)
    assert state["ending"] == "interrupted"


def test_a_crawl_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed, serving(home=tmp_path) as visitor:
        closed.bind(("127.0.0.1", 0))
        form = {"url": f"http://127.0.0.1:{closed.getsockname()[1]}/", "contact": "nonsense", "step": "crawl"}
        answer = visitor.post("/start", {**form, "goal_kind": "pages", "goal_value": "5"})
        assert answer.status == 409
        assert "contact" in answer.text


def test_openapi_names_every_page(visitor: Visitor) -> None:
    paths = visitor.get("/openapi.json").json()["paths"]
    for name in VIEWS:
        assert f"/s/{{name}}/{name}.json" in paths
        assert f"/s/{{name}}/{name}.csv" in paths
    assert set(openapi.PAGES) == set(VIEWS)
    assert {"/surveys.json", "/start", "/s/{name}/control", "/s/{name}/jobs/{kind}"} <= set(paths)
    assert set(TOP_VIEWS) == {"surveys", "start"}


def test_the_command_takes_the_next_port_and_ends_cleanly(tmp_path: Path) -> None:
    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "surveyor", "serve", *words]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first, second = start("--port", "0"), None
    try:
        assert first.stdout is not None
        url = first.stdout.readline().strip()
        port = url.rsplit(":", 1)[1].strip("/")
        second = start("--port", port)
        _, printed = second.communicate(timeout=60)
        assert second.returncode == 2
        assert f"port {port} of 127.0.0.1 is in use" in printed
        first.send_signal(signal.SIGINT)
        _, rest = first.communicate(timeout=30)
        assert first.returncode in (0, 130)
        assert "Traceback" not in rest
    finally:
        for process in (first, second):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def test_wrong_options_get_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    short = CommandResult(capsys, "serve", "--token", "short")
    assert short.code == 2
    assert "--token must have at least 16" in short.err
    missing = CommandResult(capsys, "serve", str(tmp_path / "nothing"))
    assert missing.code == 4
    assert "does not exist" in missing.err
    nowhere = CommandResult(capsys, "serve", "--host", "192.0.2.1", "--port", "0")
    assert nowhere.code == 2
    assert "cannot listen on 192.0.2.1" in nowhere.err


def test_a_missing_extra_gets_the_usual_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surveyor.cli.serve.find_spec", lambda name: None if name == "uvicorn" else object())
    result = CommandResult(capsys, "serve")
    assert result.code == 2
    assert "surveyor serve needs uvicorn" in result.err
    assert "surveyor[serve]" in result.err

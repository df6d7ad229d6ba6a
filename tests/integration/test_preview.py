"""The preview of one page: the politeness and the outcome of a crawl, and nothing is saved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, ROBOTS, site
from fake_web import CONTACT, Alone, Sites, moved, page, rules
from surveyor.config import Settings
from surveyor.crawler.preview import Preview, fetch_preview
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import politeness_policy
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import Hosts
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere")


def preview(url: str, answers: dict[str, Any], **settings: Any) -> tuple[Preview, Sites]:
    given = Settings(contact=CONTACT, **{"delay": 2.0, **settings})
    client = Sites(Alone(), answers)
    hosts = Hosts(given.delay, clock=client.time)
    found = asyncio.run(fetch_preview(url, given, connection=Connection(client, None, hosts, client.time.wait)))
    return found, client


def asked(client: Sites) -> list[str]:
    return [url for url, _ in client.log]


def test_a_page_and_its_links() -> None:
    found, client = preview(HOME, site())
    assert (found.kind, found.fetched, found.again) == ("fetched", True, False)
    assert asked(client) == [f"{HOME}robots.txt", HOME]
    assert found.counts() == {
        "in scope": 5, "out of scope: other host": 1, "out of scope: file type pdf": 1, "nofollow": 1,
    }  # fmt: skip
    assert found.scope == "host: a.example"
    assert found.content_type == "text/html"
    (robots,) = found.robots
    assert (robots.state, robots.permits, robots.rule) == ("rules", True, "")


def test_what_robots_forbid_is_not_asked_for() -> None:
    found, client = preview(f"{HOME}private/x", site())
    assert (found.kind, found.fetched, found.hops) == ("blocked", False, ())
    assert found.robots[0].rule == "line 6, Disallow: /private/"
    assert asked(client) == [f"{HOME}robots.txt"]
    unreachable, client = preview(HOME, {**site(), f"{HOME}robots.txt": Fetched(f"{HOME}robots.txt", 503)})
    assert (unreachable.kind, asked(client)) == ("blocked", [f"{HOME}robots.txt"])
    assert "could not be fetched" in unreachable.reason


def test_an_owner_may_read_all_of_a_site() -> None:
    given = Settings(contact=CONTACT, permission={"a.example": "mine"}, delay=0)
    client = Sites(Alone(), {**site(), f"{HOME}private/x": page(f"{HOME}private/x")})
    hosts = Hosts(clock=client.time, policy=politeness_policy(given))
    found = asyncio.run(
        fetch_preview(f"{HOME}private/x", given, connection=Connection(client, None, hosts, client.time.wait))
    )
    assert (found.kind, found.robots[0].permits) == ("fetched", True)


@pytest.mark.parametrize(("text", "delay", "kept"), [("", 2.0, 2.0), ("Crawl-delay: 7\n", 2.0, 7.0)])
def test_the_delay_is_kept_between_all_requests(text: str, delay: float, kept: float) -> None:
    answers = {
        f"{HOME}a": moved(f"{HOME}a", "/b"), f"{HOME}b": moved(f"{HOME}b", "/c"), f"{HOME}c": page(f"{HOME}c"),
        **rules(HOME.rstrip("/"), ROBOTS + text),
    }  # fmt: skip
    found, client = preview(f"{HOME}a", answers, delay=delay)
    assert [hop.url for hop in found.hops] == [f"{HOME}a", f"{HOME}b", f"{HOME}c"]
    assert found.final == f"{HOME}c"
    times = [at for _, at in client.log]
    pauses = [round(later - earlier - client.seconds, 6) for earlier, later in pairwise(times)]
    assert len(pauses) == 3
    assert min(pauses) >= kept
    assert found.robots[0].delay == kept


def test_each_origin_is_asked_for_its_own_rules() -> None:
    other = "https://b.example/"
    answers = {
        **site(),
        f"{HOME}go": moved(f"{HOME}go", f"{other}x"),
        **rules(other.rstrip("/"), "User-agent: *\nDisallow: /\n"),
    }
    found, client = preview(f"{HOME}go", answers, scope="any")
    assert asked(client) == [f"{HOME}robots.txt", f"{HOME}go", f"{other}robots.txt"]
    assert [robots.permits for robots in found.robots] == [True, False]
    left, client = preview(f"{HOME}go", answers, scope="host")  # a crawl would not go there either
    assert (left.kind, left.reason) == ("blocked", "redirects out of the scope")
    assert asked(client) == [f"{HOME}robots.txt", f"{HOME}go"]


@pytest.mark.parametrize(
    ("answer", "kind", "reason", "again"),
    [
        (Fetched(f"{HOME}p", 404), "gone", "http 404", True),
        (Fetched(f"{HOME}p", 503), "blocked", "http 503", True),
        (Fetched(f"{HOME}p", 403), "blocked", "http 403", False),
        (moved(f"{HOME}p", "/p"), "blocked", "redirects to itself", False),
        (Fetched(f"{HOME}p", error="tls", detail="no certificate"), "blocked", "no certificate", False),
        (page(f"{HOME}p", extra=f"<link rel=canonical href={HOME}q>"), "redirected", f"canonical page {HOME}q", False),
    ],
)
def test_what_a_crawl_would_make_of_it(answer: Fetched, kind: str, reason: str, again: bool) -> None:
    found, client = preview(f"{HOME}p", {**site(), f"{HOME}p": answer})
    assert (found.kind, found.reason, found.again) == (kind, reason, again)
    assert found.fetched == (kind == "redirected")
    assert asked(client).count(f"{HOME}p") == 1  # no second try


def test_redirects_without_end() -> None:
    answers = {f"{HOME}{n}": moved(f"{HOME}{n}", f"/{n + 1}") for n in range(50)}
    found, client = preview(f"{HOME}0", {**site(), **answers}, delay=0)
    assert found.reason == "more than 20 redirects"
    assert len(client.log) == 22


def test_directives_and_words_of_a_page() -> None:
    extra = '<html lang="de"><title>T</title><meta name=robots content="noindex, noarchive">'
    found, _ = preview(f"{HOME}docs/a", {**site(), f"{HOME}docs/a": page(f"{HOME}docs/a", "b", "/c", extra=extra)})
    assert (found.title, found.language, found.directives) == ("T", "de", ("noindex", "noarchive"))
    assert found.scope == "prefix: a.example/docs/ and below"
    assert [(link.where, link.why) for link in found.links] == [
        ("in scope", ""), ("out of scope", "outside the folders of the seeds"),
    ]  # fmt: skip


# Over a wire


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings.plain(robots_rules=0.3)) as made:
        yield made


def test_command(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    polite = ["--proxy", f"http://127.0.0.1:{web.port}", "--contact", CONTACT, "--delay", "0.01"]
    done = CommandResult(capsys, "try", web.seeds[0], *polite, "-n", "1")
    assert done.code == 0, done.err
    assert "A crawl would fetch it." in done.out
    assert "in scope:" in done.out
    assert f"surveyor crawl {web.seeds[0]}" in done.err
    result = CommandResult(capsys, "try", web.seeds[0], *polite, "--json").json()
    assert (result["kind"], result["fetched"], result["hops"][0]["status"]) == ("fetched", True, 200)
    assert sum(result["link_counts"].values()) == len(result["links"]) > 0
    gone = CommandResult(capsys, "try", f"{web.seeds[0]}nothing", *polite)
    assert gone.code == 5
    assert "record it as gone: http 404" in gone.out
    host = next(host for host in web.hosts if web.plan.robots_of(host).style == "rules")
    before = len(web.log)
    forbidden = CommandResult(capsys, "try", f"http://{host}:{web.port}/private/1.html", *polite)
    assert forbidden.code == 5
    assert "disallows it (line " in forbidden.out
    assert "ask its owner" in forbidden.err
    assert [web.log[at].path for at in range(before, len(web.log))] == ["/robots.txt"]
    assert not [path for path in tmp_path.iterdir() if path.name != "config"]  # nothing is saved


def test_private_addresses_and_no_contact(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    url, before = f"http://127.0.0.1:{web.port}/", len(web.log)
    done = CommandResult(capsys, "try", "http://169.254.169.254/", "--contact", CONTACT)
    assert done.code == 5
    assert "169.254.169.254 is a cloud agent address" in done.out
    assert "--allow" in done.err
    anonymous = CommandResult(capsys, "try", url)
    assert (anonymous.code, "contact is not set" in anonymous.err) == (2, True)
    assert len(web.log) == before
    assert CommandResult(capsys, "try", "ftp://a.example/", "--contact", CONTACT).code == 2
    assert CommandResult(capsys, "try", url, "--contact", CONTACT, "--delay", "0").code in (
        0,
        5,
    )  # allowed by being named
    assert len(web.log) > before


def test_from_python(web: EmbeddedWeb) -> None:
    found = sv.preview(web.seeds[0], contact=CONTACT, allow=web.hosts, delay=0, resolver=web.resolver)
    assert found.fetched
    assert found.to_dict()["fetched"]

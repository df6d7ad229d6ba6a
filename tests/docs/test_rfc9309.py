"""RFC 9309, clause by clause; docs/reference/robots.md lists every test next to its clause."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from fake_web import Answers, Sites, Time, crawled, moved, page, rules
from surveyor.fetch.http import Fetched
from surveyor.fetch.politeness.hosts import DAY
from surveyor.store.directory import SurveyFolder
from surveyor.web.robots import LARGEST, Robots

SITE = "https://example.org"
A, B = "http://a.example", "http://b.example"
HOME, ROBOTS = f"{A}/", f"{A}/robots.txt"


def permits(text: str, path: str = "/a") -> bool:
    return Robots.from_text(text.encode()).permits(SITE + path)


def statuses(folder: Path) -> dict[str, str]:
    with SurveyFolder.open(folder, write=False) as opened:
        return {url: visit.kind for _, url, visit in opened.pages() if visit}


def crawl(folder: Path, answers: dict[str, Answers], time: Time | None = None, **options: Any) -> Sites:
    client = Sites(time or Time(), {HOME: page(HOME, "/x"), f"{A}/x": page(f"{A}/x"), **answers})
    crawled(folder, [HOME], client, **options)
    return client


# --- 2.1, 2.2: the file ---


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_2_2_lines_end_in_lf_crlf_or_cr(end: str) -> None:
    assert not permits(end.join(["User-agent: *", "Disallow: /a", ""]))
    assert permits("User-agent: *\nDisallow: /b\x0cDisallow: /a\x85Disallow: /a\u2028Disallow: /a")


def test_2_2_field_names_are_case_insensitive_and_stripped() -> None:
    assert not permits("  uSER-aGENT \t:\t *  \n\t dISALLOW  :   /a  ")


def test_2_2_comments_are_ignored() -> None:
    assert not permits("# User-agent: x\nUser-agent: * # all\n#Allow: /\nDisallow: /a#b\nAllow: # /a")


def test_2_2_rules_before_the_first_user_agent_line_are_ignored() -> None:
    assert permits("Disallow: /\nUser-agent: x\nDisallow: /")


@pytest.mark.parametrize("name", ["surveyor", "Surveyor", "SURVEYOR", "surveyor/1.0", "surveyor 2"])
def test_2_2_1_product_token_is_case_insensitive(name: str) -> None:
    assert not permits(f"User-agent: {name}\nDisallow: /a\n\nUser-agent: *\nAllow: /")


@pytest.mark.parametrize(
    "name", ["survey", "sur", "s", "surveyors", "surveyor-images", "my-surveyor", "x surveyor", ""]
)
def test_2_2_1_other_tokens_do_not_match(name: str) -> None:
    assert permits(f"User-agent: {name}\nDisallow: /a")
    assert not permits(f"User-agent: {name}\nDisallow: /b\n\nUser-agent: *\nDisallow: /a")


def test_2_2_1_groups_of_one_agent_are_merged() -> None:
    text = "User-agent: surveyor\nDisallow: /a\n\nUser-agent: x\nDisallow: /x\n\nUser-agent: surveyor\nDisallow: /b"
    assert [permits(text, path) for path in ("/a", "/b", "/x")] == [False, False, True]
    assert not permits("User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b")


def test_2_2_1_one_group_may_name_several_agents() -> None:
    assert not permits("User-agent: x\nUser-agent: surveyor\n\n# and\nUser-agent: y\nDisallow: /a")


def test_2_2_1_wildcard_group_applies_only_without_a_specific_group() -> None:
    assert permits("User-agent: *\nDisallow: /\n\nUser-agent: surveyor\nDisallow: /b")
    assert permits("User-agent: *\nDisallow: /\n\nUser-agent: surveyor\nDisallow:")
    assert permits("User-agent: *\nDisallow: /\n\nUser-agent: surveyor")


def test_2_2_1_without_a_matching_group_everything_is_allowed() -> None:
    assert permits("User-agent: x\nDisallow: /")
    assert permits("")


def test_2_2_2_paths_are_compared_from_the_first_octet_case_sensitively() -> None:
    text = "User-agent: *\nDisallow: /a"
    assert [permits(text, path) for path in ("/a", "/ab", "/a/b", "/A", "/b/a")] == [False, False, False, True, True]


def test_2_2_2_the_longest_match_wins() -> None:
    text = "User-agent: *\nAllow: /a/b\nDisallow: /a\nDisallow: /a/b/c"
    assert [permits(text, path) for path in ("/a/x", "/a/b/x", "/a/b/c/x")] == [False, True, False]


def test_2_2_2_allow_wins_ties() -> None:
    assert permits("User-agent: *\nDisallow: /a\nAllow: /a")
    assert permits("User-agent: *\nAllow: /a\nDisallow: /a")


def test_2_2_2_urls_without_a_match_and_robots_txt_are_allowed() -> None:
    assert permits("User-agent: *\nDisallow: /b")
    assert permits("User-agent: *\nDisallow: /", "/robots.txt")
    assert not permits("User-agent: *\nDisallow: /", "/sub/robots.txt")
    assert permits("User-agent: *\nDisallow:")


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    ],
)
def test_2_2_2_percent_encoded_octets_are_compared_as_in_the_table(rule: str, path: str) -> None:
    assert not permits(f"User-agent: *\nDisallow: {rule}", path)
    assert permits(f"User-agent: *\nDisallow: {rule}", "/foo/other")


def test_2_2_2_reserved_octets_are_not_decoded() -> None:
    assert permits("User-agent: *\nDisallow: /a/b", "/a%2Fb")


@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        ("/*.php", ["/x.php", "/a/b.php?c", "/.php"], ["/x.html"]),
        ("/*.php$", ["/x.php"], ["/x.php?a", "/x.php5"]),
        ("/a*z/q", ["/az/q", "/abcz/q/r"], ["/a/q"]),
        ("*/x", ["/x", "/a/x"], ["/a"]),
        ("/a$", ["/a"], ["/ab", "/a/"]),
        ("/a*$", ["/a", "/abc"], ["/b"]),
        ("/a*b*$", ["/ab", "/axbx"], ["/a"]),
        ("/*a*a$", ["/aa", "/baxa"], ["/a", "/aab"]),
    ],
)
def test_2_2_3_star_and_dollar(rule: str, yes: list[str], no: list[str]) -> None:
    text = f"User-agent: *\nDisallow: {rule}"
    assert not any(permits(text, path) for path in yes)
    assert all(permits(text, path) for path in no)


def test_2_2_3_percent_encoded_special_characters_are_literal() -> None:
    assert not permits("User-agent: *\nDisallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html")
    assert permits("User-agent: *\nDisallow: /path/file-with-a-%2A.html", "/path/file-with-a-b.html")
    assert not permits("User-agent: *\nDisallow: /path/foo-%24", "/path/foo-$")
    assert permits("User-agent: *\nDisallow: /path/foo-%24", "/path/foo-")
    assert not permits("User-agent: *\nDisallow: /a$b", "/a$b")


@pytest.mark.parametrize("line", ["Sitemap: https://example.org/map.xml", "foo: bar", "nonsense", "Crawl-delay: 1", ""])
def test_2_2_4_other_records_do_not_interfere(line: str) -> None:
    assert not permits(f"User-agent: surveyor\n{line}\nUser-agent: x\n{line}\nDisallow: /a\n{line}\nDisallow: /b", "/a")
    assert not permits(f"User-agent: x\nDisallow: /x\nUser-agent: surveyor\n{line}\nDisallow: /b", "/b")
    assert permits(f"User-agent: x\n{line}\nDisallow: /a\n{line}\nUser-agent: surveyor\nDisallow: /b", "/a")


# --- 2.3: the way to it ---


def test_2_3_one_file_per_scheme_host_and_port(tmp_path: Path) -> None:
    secure = "https://a.example"
    answers: dict[str, Answers] = {
        **rules(A, "User-agent: *\nDisallow: /x"),
        **rules(f"{A}:81", "User-agent: *\nDisallow: /y"),
        HOME: page(HOME, "/x", f"{A}:81/x", f"{A}:81/y", f"{secure}/x"),
        f"{A}:81/x": page(f"{A}:81/x"),
        f"{secure}/x": page(f"{secure}/x"),
    }
    crawl(tmp_path / "s", answers, scope="any")
    kinds = {f"{A}/x": "blocked", f"{A}:81/x": "fetched", f"{A}:81/y": "blocked", f"{secure}/x": "fetched"}
    assert statuses(tmp_path / "s") == {HOME: "fetched", **kinds}


def test_2_3_the_file_is_requested_before_any_page(tmp_path: Path) -> None:
    client = crawl(tmp_path / "s", {})
    assert [url for url, _ in client.log] == [ROBOTS, HOME, f"{A}/x"]


def test_2_3_1_1_rules_of_a_fetched_file_are_obeyed(tmp_path: Path) -> None:
    client = crawl(tmp_path / "s", dict(rules(A, "User-agent: *\nDisallow: /x")))
    assert f"{A}/x" not in [url for url, _ in client.log]
    assert statuses(tmp_path / "s")[f"{A}/x"] == "blocked"


@pytest.mark.parametrize("hops", [1, 5])
def test_2_3_1_2_five_redirects_are_followed_for_the_first_host(tmp_path: Path, hops: int) -> None:
    chain = [ROBOTS, *(f"http://h{number}.example/rules" for number in range(hops))]
    answers: dict[str, Answers] = {here: moved(here, there) for here, there in pairwise(chain)}
    answers[chain[-1]] = Fetched(chain[-1], 200, body=b"User-agent: *\nDisallow: /x")
    client = crawl(tmp_path / "s", answers)
    assert statuses(tmp_path / "s") == {HOME: "fetched", f"{A}/x": "blocked"}
    assert [url for url, _ in client.log][: hops + 1] == chain


@attack("robots.txt redirects in a chain or a circle", area="robots.txt", must_hold="at most five are followed")
@pytest.mark.parametrize("circle", [False, True])
def test_2_3_1_2_more_than_five_redirects_are_unavailable(tmp_path: Path, circle: bool) -> None:
    chain = [ROBOTS, *(f"http://h{number}.example/rules" for number in range(1 if circle else 6))]
    answers: dict[str, Answers] = {here: moved(here, there) for here, there in pairwise([*chain, ROBOTS])}
    client = crawl(tmp_path / "s", answers)
    assert statuses(tmp_path / "s") == {HOME: "fetched", f"{A}/x": "fetched"}
    assert len([url for url, _ in client.log if url in chain]) == (2 if circle else 6)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_2_3_1_3_an_unavailable_file_allows_everything(tmp_path: Path, status: int) -> None:
    crawl(tmp_path / "s", {ROBOTS: Fetched(ROBOTS, status, body=b"User-agent: *\nDisallow: /")})
    assert statuses(tmp_path / "s") == {HOME: "fetched", f"{A}/x": "fetched"}


UNREACHABLE = [500, 502, 503, 504, 599, 429, "dns", "refused", "timeout-connect", "reset", "tls", "decode"]


@attack(
    "robots.txt that fails: server errors, resets, timeouts",
    area="robots.txt",
    must_hold="no page of the host is requested",
)
@pytest.mark.parametrize("how", UNREACHABLE)
def test_2_3_1_4_an_unreachable_file_disallows_everything(tmp_path: Path, how: int | str) -> None:
    down = Fetched(ROBOTS, how) if isinstance(how, int) else Fetched(ROBOTS, error=how)  # type: ignore[arg-type]
    client = crawl(tmp_path / "s", {ROBOTS: down})
    assert {url for url, _ in client.log} == {ROBOTS}
    assert statuses(tmp_path / "s") == {HOME: "blocked"}


def test_2_3_1_4_a_file_that_becomes_reachable_applies(tmp_path: Path) -> None:
    good = Fetched(ROBOTS, 200, body=b"User-agent: *\nDisallow: /x")
    crawl(tmp_path / "s", {ROBOTS: [Fetched(ROBOTS, 503), good]})
    assert statuses(tmp_path / "s") == {HOME: "fetched", f"{A}/x": "blocked"}


def test_2_3_1_5_lines_that_cannot_be_parsed_are_skipped() -> None:
    text = b"\xff\xfe\x00\nUser-agent: *\n\xffDisallow: /b\n:\n::\nDisallow: /a\n\x00"
    assert not Robots.from_text(text).permits(f"{SITE}/a")
    assert Robots.from_text(b"<html><p>User-agent: *<p>Disallow: /</html>").permits(f"{SITE}/a")
    assert not Robots.from_text(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a").permits(f"{SITE}/a")


def test_2_4_a_file_is_cached_for_a_day_across_restarts(tmp_path: Path) -> None:
    time = Time()
    names = [f"{A}/{number}" for number in range(4)]
    answers: dict[str, Answers] = {HOME: page(HOME, *names), **{name: page(name) for name in names}}
    for pages, since in ((1, 0.0), (2, DAY - 100), (3, 200.0), (4, 0.0)):
        time.now += since
        client = crawl(tmp_path / "s", answers, time, until=f"pages={pages}")
        assert len(client.times(ROBOTS)) == (1 if pages in (1, 3) else 0)


def test_2_4_rules_that_expire_during_a_crawl_are_fetched_again(tmp_path: Path) -> None:
    names = [f"{A}/{number}" for number in range(30)]
    answers: dict[str, Answers] = {
        HOME: page(HOME, *names),
        **{name: page(name) for name in names},
        ROBOTS: [Fetched(ROBOTS, 200, body=text) for text in (b"", b"User-agent: *\nDisallow: /")],
    }
    crawl(tmp_path / "s", answers, delay=4000.0, max_delay=5000.0)
    kinds = list(statuses(tmp_path / "s").values())
    assert (kinds.count("fetched"), kinds.count("blocked")) == (21, 10)


def test_2_5_500_kib_are_parsed_and_no_more() -> None:
    head, filler = b"User-agent: *\n", b"# " + b"x" * 98 + b"\n"
    room = LARGEST - len(head) - len(b"Disallow: /a\n")
    inside = head + (filler * (room // len(filler) + 1))[: room - 1] + b"\n"
    file = Robots.from_text(inside + b"Disallow: /a\nDisallow: /b\n")
    assert LARGEST >= 500 * 1024
    assert (file.permits(f"{SITE}/a"), file.permits(f"{SITE}/b")) == (False, True)
    assert Robots.from_text(inside + b"xDisallow: /a\n").permits(f"{SITE}/a")  # a truncated line is ignored


# --- not in the RFC ---


def test_not_in_the_rfc_crawl_delay_and_request_rate() -> None:
    delays = {
        "Crawl-delay: 2": 2.0, "Crawl-delay: .5": 0.5, "Crawl-delay: 10s": 10.0, "Crawl-delay: soon": None,
        "Crawl-delay: -1": None, "Crawl-delay: 1e9": None, "Request-rate: 1/10": 10.0,
        "Request-rate: 2/1m 0900-1700": 30.0, "Request-rate: 0/10": None,
        "Crawl-delay: 3\nCrawl-delay: 2": 3.0, "Crawl-delay: 0": 0.0,
    }  # fmt: skip
    assert {text: Robots.from_text(f"User-agent: *\n{text}".encode()).crawl_delay for text in delays} == delays
    other = b"User-agent: x\nCrawl-delay: 9\nUser-agent: *\nDisallow: /a"
    assert Robots.from_text(other).crawl_delay is None


def test_not_in_the_rfc_common_mistakes_are_accepted() -> None:
    for line in ("Disallow /a", "Dissallow: /a", "disallow: a", "Disallow: https://example.org/a", "Disallow:/a"):
        assert not permits(f"User-agent: *\n{line}"), line
    assert Robots.from_text(b"sitemap: https://example.org/1.xml\nSitemap:\nSITEMAP: /2.xml").sitemaps == [
        "https://example.org/1.xml", "/2.xml",
    ]  # fmt: skip


PIECES = st.sampled_from(["/", "a", "b", "ab", "*", "$", "?", "=", "%41", "é", ".php", "//"])


@attack(
    "random rules with wildcards and escapes",
    area="robots.txt",
    must_hold="the verdict equals that of an independent parser",
)
@settings(max_examples=400)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(PIECES, min_size=1, max_size=5)), max_size=5),
    st.lists(st.sampled_from(["/", "a", "b", "ab", "?", "=", ".php", "A", "%C3%A9"]), max_size=6),
)
def test_an_independent_parser_gives_the_same_verdicts(lines: list[tuple[bool, list[str]]], path: list[str]) -> None:
    """Compare with Protego, except where it differs on purpose.

    A $ it takes for the end and for itself as well; delimiters in a query, escaped or not, are not the same to it.
    """
    result = [f"{'Allow' if allows else 'Disallow'}: /{''.join(rule)}" for allows, rule in lines if "$" not in rule]
    url, text = f"{SITE}/{''.join(path)}", "\n".join(["User-agent: *", *result])
    assert Robots.from_text(text.encode()).permits(url) == Protego.parse(text).can_fetch(url, "surveyor")


def test_every_clause_of_the_table_has_its_tests_and_every_test_its_clause() -> None:
    table = (Path(__file__).parents[2] / "docs" / "reference" / "robots.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", table))
    here = {name for name in globals() if name.startswith(("test_2", "test_not_in", "test_an_independent"))}
    assert named == here

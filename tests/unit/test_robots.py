"""robots.txt by RFC 9309."""

from __future__ import annotations

import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor.web.robots import LARGEST, Robots

SITE = "https://example.org"


def permits(text: str, path: str) -> bool:
    return Robots.from_text(text.encode()).permits(SITE + path)


@pytest.mark.parametrize(
    ("text", "path", "may"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: other\nDisallow: /", "/a", True),
        ("User-agent: SURVEYOR\nDisallow: /a\n\nUser-agent: *\nDisallow: /", "/b", True),  # our own group counts
        ("User-agent: surveyor\nDisallow: /a\n\nUser-agent: surveyor\nDisallow: /b", "/b", False),  # merged
        ("User-agent: x\nUser-agent: surveyor\nDisallow: /a", "/a", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),  # the longest match
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),  # allow wins ties
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
        ("User-agent: *\nDisallow: /a*c", "/abbbc", False),
        ("User-agent: *\nDisallow: /%7Ejoe", "/~joe/", False),
        ("\ufeffUser-agent: *\nDisallow: /", "/a", False),
        ("nonsense\nUser-agent: *\nfoo: bar\nDisallow: /a", "/a", False),
        ("User-agent: * # all\nDisallow: /a # this", "/a", False),
        ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
    ],
)
def test_rules(text: str, path: str, may: bool) -> None:
    assert permits(text, path) is may


@pytest.mark.parametrize(
    ("status", "may"),
    [(200, False), (204, True), (301, True), (401, True), (403, True), (404, True), (410, True), (429, False),
     (500, False), (503, False), (None, False)],
)  # fmt: skip
def test_answers_that_are_no_rules(status: int | None, may: bool) -> None:
    body = b"User-agent: *\nDisallow: /" if status == 200 else b"<html>not found</html>" if status != 204 else b""
    assert Robots.from_answer(status, body).permits(SITE + "/a") is may


def test_reasons_delay_and_sitemaps() -> None:
    rules = Robots.from_text(b"Sitemap: https://example.org/map.xml\nUser-agent: *\nCrawl-delay: 1.5\nDisallow: /a")
    assert rules.crawl_delay == 1.5
    assert rules.sitemaps == ["https://example.org/map.xml"]
    assert rules.why(SITE + "/a") == "robots.txt disallows it (Disallow: /a)"
    assert rules.why(SITE + "/b") == ""
    down = Robots.from_answer(None, b"")
    assert "could not be fetched" in down.why(SITE + "/b")
    assert down.crawl_delay is None
    assert down.sitemaps == []
    assert Robots.from_text(b"User-agent: *\nCrawl-delay: soon").crawl_delay is None


@attack("a robots.txt larger than the limit", area="robots.txt", must_hold="lines beyond it are not read")
def test_what_is_beyond_the_limit_does_not_count() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    filler = b"# " + b"x" * 98 + b"\n"
    long = head + filler * ((LARGEST - len(head)) // len(filler) + 1) + b"Disallow: /b\n"
    rules = Robots.from_text(long)
    assert not rules.permits(SITE + "/a")
    assert rules.permits(SITE + "/b")


@attack("random bytes as robots.txt", area="robots.txt", must_hold="no exception; a verdict for every path")
@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=400), st.text(max_size=40))
def test_nothing_that_a_server_sends_raises(body: bytes, path: str) -> None:
    rules = Robots.from_text(body)
    assert rules.permits(f"{SITE}/{path}") in (True, False)
    assert rules.crawl_delay is None or rules.crawl_delay >= 0
    assert isinstance(rules.sitemaps, list)


@pytest.mark.parametrize(
    ("text", "path", "result"),
    [
        ("User-agent: *\nDisallow: /a", "/a/b", "2 Disallow: /a"),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b", "3 Allow: /a/b"),
        ("User-agent: *\nDisallow: /\n\nUser-agent: surveyor\nAllow: /", "/a", "5 Allow: /"),
        ("User-agent: x\r\nUser-agent: *\r\nDisallow: /*.pdf$  # no papers", "/a.pdf", "3 Disallow: /*.pdf$"),
        ("User-agent: *\nDisallow: /a", "/b", ""),
        ("User-agent: x\nDisallow: /", "/b", ""),
        ("User-agent: *\nDisallow:", "/b", ""),
    ],
)
def test_the_line_that_decides(text: str, path: str, result: str) -> None:
    rule = Robots.from_text(text.encode()).rule_for(SITE + path)
    assert ("" if rule is None else f"{rule.line} {rule}") == result
    assert Robots("absent").rule_for(SITE) is Robots("unreachable").rule_for(SITE) is None


# --- one rule at a time, as the oracle of the index ---


def matches(pattern: str, target: str) -> bool:
    """Compare character by character; a wildcard may stand for any text."""
    body, ends = pattern.removesuffix("$"), pattern.endswith("$")
    reached = {0}  # how much of the target may have been used
    for character in body:
        if character == "*":
            reached = set(range(min(reached, default=len(target) + 1), len(target) + 1))
        else:
            reached = {at + 1 for at in reached if target[at : at + 1] == character}
    return len(target) in reached if ends else bool(reached)


def oracle(rules: list[tuple[bool, str]], target: str) -> str:
    """The line that decides: the longest, then one that allows, then the first."""
    found = [
        (len(pattern), allows, -line) for line, (allows, pattern) in enumerate(rules, 2) if matches(pattern, target)
    ]
    return f"{-max(found)[2]}" if found else ""


RULE = st.lists(
    st.sampled_from(["/", "a", "b", "ab", "abc", "abcabd", "*", "**", ".html", "?", "="]), min_size=1, max_size=7
)


@pytest.mark.slow
@settings(deadline=None, max_examples=1_000)
@given(
    st.lists(st.tuples(st.booleans(), RULE.map("".join), st.sampled_from(["", "", "$"])), max_size=40),
    st.lists(
        st.lists(st.sampled_from(["/", "a", "b", "ab", "abc", "abd", ".html", "?", "="]), max_size=9).map("".join),
        min_size=1,
        max_size=5,
    ),
)
def test_the_index_finds_the_rule_that_comparing_all_finds(
    lines: list[tuple[bool, str, str]], paths: list[str]
) -> None:
    rules = [(allows, f"/{pattern}{end}") for allows, pattern, end in lines]
    text = "\n".join(["User-agent: *", *(f"{'Allow' if allows else 'Disallow'}: {rule}" for allows, rule in rules)])
    robots = Robots.from_text(text.encode())
    for path in paths:
        rule = robots.rule_for(f"{SITE}/{path}")
        spelt = {f"/{path}", f"/{path.partition('?')[0]}{path.partition('?')[1]}{escaped(path.partition('?')[2])}"}
        expected = max((oracle(rules, target) for target in spelt), key=lambda line: weigh(rules, line))
        assert ("" if rule is None else f"{rule.line}") == expected


def escaped(query: str) -> str:
    """Delimiters in a query are the same, escaped or not."""
    return query.replace("/", "%2F").replace("?", "%3F")


def weigh(rules: list[tuple[bool, str]], line: str) -> tuple[int, bool, int]:
    return (len(rules[int(line) - 2][1]), rules[int(line) - 2][0], -int(line)) if line else (0, False, 0)


@pytest.mark.parametrize(
    ("text", "path", "result"),
    [
        ("Disallow: /a*\nAllow: /a", "/a", "Disallow: /a*"),  # a wildcard counts as an octet
        ("Disallow: /a****\nAllow: /abc", "/abcd", "Disallow: /a****"),
        ("Allow: /a*$\nDisallow: /ab", "/abc", "Allow: /a*$"),
        ("Disallow: /*ab\nDisallow: /a*b", "/ab", "Disallow: /*ab"),  # of equals, the first
        ("Disallow: /a*b\nAllow: /a**b", "/ab", "Allow: /a**b"),
        ("Disallow: *", "/a", "Disallow: *"),
        ("Disallow: *$\nAllow: /", "/a", "Disallow: *$"),
        ("Disallow: /ab*ba$", "/aba", ""),
        ("Disallow: /ab*ba$", "/abba", "Disallow: /ab*ba$"),
        ("Disallow: /%7Ea\nAllow: /~a\nDisallow: /~a", "/~ab", "Allow: /~a"),
    ],
)
def test_which_rule_counts_most(text: str, path: str, result: str) -> None:
    assert str(Robots.from_text(f"User-agent: *\n{text}".encode()).rule_for(SITE + path) or "") == result


SPELT = ("Disallow:/a", "Disallow : /a", " \tDisallow\t:\t/a", "Disallow /a", "Disallow\t /a", "DISALLOW: /a#b")


@pytest.mark.parametrize("line", [*SPELT, "Disallow:   /a "])
def test_spellings_of_a_line(line: str) -> None:
    assert not permits(f"User-agent: *\n{line}", "/a")


@pytest.mark.parametrize(
    "line", ["Disallowed: /a", "Disallow\t/a", "x Disallow: /a", "Disallow:# /a", "Di\u017fallow: /a"]
)
def test_lines_that_are_no_rules(line: str) -> None:
    assert permits(f"User-agent: *\n{line}", "/a")

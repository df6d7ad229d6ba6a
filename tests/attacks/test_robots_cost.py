"""A robots.txt made to be costly: the work for a verdict is bounded, and what is not matched is not permitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from attack import attack

from surveyor.fetch.politeness.hosts import Hosts
from surveyor.web import robots as robot_rules
from surveyor.web.robots import LARGEST, STEPS, WILDCARDS, Robots

SITE = "http://a.example"
LONGEST = "".join(f"{number:x}ab" for number in range(500))[:1_990]
URLS = [
    "/", "/a/b.html?x=1:2", f"/{'a' * 1_990}", f"/{'ab' * 990}", f"/{LONGEST}", f"/?{'*:' * 990}", f"/?{LONGEST}:*",
    f"/?{':%2F*a' * 300}", f"/{'%41' * 660}",
]  # fmt: skip
Line = Callable[[int], str]
FILES: dict[str, Line] = {
    "short wildcard rules": lambda n: f"Disallow:/*{n:x}",
    "wildcard rules that share their text": lambda n: f"Allow:/*aaa*{n:x}",
    "wildcard rules of two letters": lambda n: f"Allow:*{n:b}".translate({48: "a", 49: "b"}),
    "wildcards between single letters": lambda n: "Allow:" + "".join(f"*{'ab'[int(bit)]}" for bit in f"{n:b}"),
    "repeated wildcards": lambda n: f"Disallow:/*a*a*a*a*{n:x}*b",
    "rules for the end": lambda n: f"Disallow: /*{n:x}$",
    "text that searches find almost everywhere": lambda n: f"Allow:/*{'a' * 45}b{'a' * 45}*{n:x}",
    "long text that searches find almost everywhere": lambda n: f"Allow:/*{'a' * 400}b{'a' * 400}*{n:x}",
    "prefixes of prefixes": lambda n: f"Disallow:/{'a' * n}",
    "two thousand wildcards in a prefix": lambda n: f"Disallow:/{'*a' * 2_000}{n}",
    "half a megabyte of wildcards in one line": lambda n: f"Disallow:/{'*a' * (n == 0) * 249_000}",
}


def file(line: Line, most: int = 10**9) -> bytes:
    """As many lines as are read of a file."""

    def lines() -> Iterator[bytes]:
        size = len(text := b"User-agent: *\n")
        for number in range(most):
            yield text
            text = f"{line(number)}\n".encode()
            if (size := size + len(text)) > LARGEST:
                return

    return b"".join(lines())


class Matching:
    """Counts what is compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.comparisons = 0
        self._match = robot_rules.match
        monkeypatch.setattr(robot_rules, "match", self)

    def __call__(self, pattern: str, target: str, most: int = STEPS) -> tuple[bool, int]:
        self.comparisons += 1
        return self._match(pattern, target, most)


@attack(
    "robots.txt files of 500 KiB made to be costly: thousands of wildcard rules, searches that almost succeed",
    area="robots.txt",
    must_hold="few rules are compared for a verdict; beyond the limit nothing is permitted, with the reason",
    inputs=len(URLS),
)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("most", [WILDCARDS, 3_000, 10**9])
def test_the_work_for_a_verdict_is_bounded(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    robots, matching = Robots.from_text(file(FILES[name], most)), Matching(monkeypatch)
    for url in URLS:
        matching.comparisons = 0
        verdict = robots.verdict(SITE + url)
        assert matching.comparisons < 2_500  # of up to 10,000 rules, with up to three spellings of the URL
        assert (verdict.steps > STEPS) <= bool(verdict.limit)
        if verdict.limit:
            assert verdict.rule is None
            assert robots.why(SITE + url) == f"{verdict.limit}, so it may not be fetched"


@attack(
    "9,999 wildcard rules that differ in their middle",
    area="robots.txt",
    must_hold="only those that may match a URL are compared",
)
def test_only_rules_that_may_match_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    matching = Matching(monkeypatch)
    robots = Robots.from_text(file(lambda n: f"Disallow: /*/item-{n:05}.html$", 9_999))
    assert not robots.permits(f"{SITE}/shop/item-01234.html")
    assert robots.permits(f"{SITE}/shop/item-99999.html")
    assert robots.permits(f"{SITE}/shop/other.html?item=01234")
    assert 1 <= matching.comparisons < 300


def test_a_search_that_would_take_too_many_steps_is_not_begun() -> None:
    pattern, target = f"/*{'a' * 50}b{'a' * 50}", f"/{'a' * 1_990}"
    assert robot_rules.match(pattern, target) == (False, robot_rules.PER_MATCH + robot_rules.PER_PIECE + 1_890 * 101)
    assert robot_rules.match(pattern, f"{target}b{'a' * 50}")[0]
    is_match, steps = robot_rules.match(pattern, f"{target}b{'a' * 50}", 1_000)
    assert (is_match, steps > 1_000) == (False, True)


@attack(
    "more wildcard rules than are matched",
    area="robots.txt",
    must_hold="nothing of that host is permitted, and the reason is reported",
)
def test_more_wildcard_rules_than_are_matched_permit_nothing_and_say_so() -> None:
    hosts = Hosts(0.0)
    number = hosts.number("a.example")
    for count, limit in ((WILDCARDS, ""), (WILDCARDS + 1, "robots.txt has more than 10,000 rules with wildcards")):
        robots = Robots.from_text(file(lambda n: f"Disallow:/*{n:x}-", count + 1))
        assert robots.limit == limit
        assert robots.why(f"{SITE}/page") == (f"{limit}, so it may not be fetched" if limit else "")
        assert robots.permits(f"{SITE}/robots.txt")
        hosts.set_robots(number, SITE, robots, math.inf)
        assert hosts.refusal(number, SITE, f"{SITE}/page") == robots.why(f"{SITE}/page")
        assert hosts.messages == ([f"{SITE}: {limit}, so none of its pages is fetched"] if limit else [])


@attack(
    "30,000 ways to write the same wildcard rule",
    area="robots.txt",
    must_hold="they are merged; the one that counts most decides",
)
def test_rules_that_match_the_same_count_once() -> None:
    same = [f"Disallow: /*a{'*' * (n % 50)}b{'*' * (n % 7)}{'$' * (n % 7 > 0)}" for n in range(1, 30_000)]
    robots = Robots.from_text("\n".join(["User-agent: *", *same]).encode())
    assert robots.limit == ""
    assert len(robots._ours[0]) == 2  # with something between a and b, or nothing
    rule = robots.rule_for(f"{SITE}/a.b")
    assert rule is not None
    assert rule.weight == max((len(line) - len("Disallow: "), False) for line in same if "ab" not in line)

from __future__ import annotations

import fnmatch
import time
from typing import Any

import pytest
from attack import attack
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import UsageError
from surveyor.web.scope import Scope

SEEDS = ("https://docs.example.org/guide/start.html", "http://example.com:8080/")


def last_two(host: str) -> str:
    return ".".join(host.split(".")[-2:])


@pytest.mark.parametrize(
    ("kind", "url", "reason"),
    [
        ("host", "http://docs.example.org/other?x=1", None),
        ("host", "http://example.com:8080/a", None),
        ("host", "http://example.com/", "other host"),
        ("host", "https://www.example.org/", "other host"),
        ("domain", "https://www.example.org/", None),
        ("domain", "http://example.com:9090/a", None),
        ("domain", "https://example.net/", "other domain"),
        ("domain", "https://[::1]:80/", "other domain"),
        ("prefix", "http://docs.example.org/guide/deep/er?x=a/b", None),
        ("prefix", "https://docs.example.org/guide/", None),
        ("prefix", "https://docs.example.org/guidebook", "outside the folders of the seeds"),
        ("prefix", "https://docs.example.org/", "outside the folders of the seeds"),
        ("prefix", "http://example.com:8080/anything", None),
        ("any", "https://elsewhere.example/", None),
        ("any", "mailto:joe@example.org", "not http"),
        ("any", "ftp://example.org/", "not http"),
        ("host", "https://docs.example.org", None),
    ],
)
def test_kinds(kind: Any, url: str, reason: str | None) -> None:
    scope = Scope(kind, SEEDS, domain=last_two)
    assert scope.why_not(url) == reason
    assert scope.admits(url) == (reason is None)


def test_patterns_narrow() -> None:
    scope = Scope("any", (), include=("example.org/*", r"re:^[a-z]+\.com/"), exclude=("*/print*", "re:[?&]page=\\d{3}"))
    assert scope.admits("https://example.org/a")
    assert scope.admits("http://example.com/")
    assert scope.why_not("https://www.example.com/") == "not included"
    assert scope.why_not("https://example.org/a/print/1") == "excluded by */print*"
    assert scope.why_not("https://example.org/?page=123") == "excluded by re:[?&]page=\\d{3}"
    assert scope.admits("https://example.org/?page=12")


def test_question_marks_mean_themselves() -> None:
    scope = Scope("any", (), exclude=("https://example.org/a?b=*", "example.org/exactly"))
    assert not scope.admits("http://example.org/a?b=1")
    assert scope.admits("http://example.org/axb=1")
    assert not scope.admits("http://example.org/exactly")
    assert scope.admits("http://example.org/exactly/not")


@given(st.text("ab*/", min_size=1, max_size=8), st.text("ab/", max_size=10))
@settings(max_examples=300, deadline=None)
def test_globs_match_as_those_of_files(glob: str, rest: str) -> None:
    matches = not Scope("any", (), exclude=(glob,)).admits("http://" + rest)
    assert matches == fnmatch.fnmatchcase(rest, glob)


@attack("patterns of many wildcards", area="links and URLs", must_hold="matched without backtracking")
def test_many_stars_take_no_time() -> None:
    scope = Scope("any", (), exclude=("*a" * 50 + "b",))
    start = time.process_time()
    assert scope.admits("https://example.org/" + "a" * 2_000)
    assert time.process_time() - start < 1


def test_file_types_and_depth() -> None:
    scope = Scope("any", (), depth=5, types=frozenset({".ZIP", "pdf"}))
    assert scope.why_not("https://example.org/a.b/c.Zip?x=1.html") == "file type zip"
    assert scope.admits("https://example.org/zip")
    assert scope.admits("https://example.zip/")
    assert scope.admits("https://example.org/a.png")
    assert scope.admits("https://example.org/?file=a.pdf", depth=5)
    assert scope.why_not("https://example.org/", 7) == "depth 7 > 5"
    assert Scope("any", ()).why_not("https://example.org/a.png") == "file type png"


def test_seeds_always_belong() -> None:
    seed = "https://example.org/a.zip"
    scope = Scope("host", (seed,), include=("*.html",), exclude=("*",), depth=0)
    assert scope.admits(seed, depth=3)
    assert not scope.admits("https://example.org/b.zip")


def test_seeds_suggest_a_scope() -> None:
    assert Scope.of_seeds(SEEDS).kind == "host"
    scope = Scope.of_seeds(SEEDS[:1], depth=2)
    assert (scope.kind, scope.depth) == ("prefix", 2)
    assert Scope.of_seeds(["https://example.org/index.html?a=/b/"]).kind == "host"


def test_a_preview_counts_reasons() -> None:
    scope = Scope("host", SEEDS)
    links = ["https://docs.example.org/1", "https://a.example/", "https://b.example/", "mailto:x"]
    assert list(scope.preview(links).items()) == [("other host", 2), ("in scope", 1), ("not http", 1)]
    assert scope.preview([]) == {}


def test_scopes_are_values() -> None:
    scope = Scope("host", SEEDS, include=("*",), domain=last_two)
    assert scope == Scope("host", SEEDS, include=("*",))
    assert hash(scope) == hash(Scope("host", SEEDS, include=("*",)))
    assert Scope("host", ["https://example.org/"], exclude="*.x").exclude == ("*.x",)  # type: ignore[arg-type]
    assert repr(Scope("any", (), types=frozenset())).startswith("Scope(kind='any', seeds=(), include=()")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "planet"}, "'planet'"),
        ({"kind": "domain"}, "registrable domain"),
        ({"depth": -1}, "-1"),
        ({"seeds": ()}, "needs a seed"),
        ({"seeds": ("example.org",)}, "not a normalised"),
        ({"seeds": ("https://example.org?a/b",)}, "not a normalised"),
        ({"exclude": ("re:(",)}, "regular expression"),
        ({"include": ("https://",)}, "matches nothing"),
    ],
)
def test_what_makes_no_scope_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Scope(**{"kind": "host", "seeds": SEEDS, **wrong})
    assert caught.value.hint


@pytest.mark.parametrize("kind", ["host", "prefix", "any", "domain"])
@given(
    st.sampled_from(["http", "https", "ftp"]),
    st.sampled_from(["example.org", "www.example.org", "example.org:8080", "exampleXorg", "example.com"]),
    st.text("ab/.?z\n", max_size=8),
    st.integers(0, 3),
)
def test_the_quick_way_and_the_slow_one_agree(kind: Any, scheme: str, host: str, path: str, depth: int) -> None:
    seeds = ("https://example.org/a/b", "http://example.org:8080/b.z/")
    scope = Scope(kind, seeds, depth=2, domain=lambda name: name.removeprefix("www."))
    url = f"{scheme}://{host}/{path}"
    assert scope.admits(url, depth) == (scope.why_not(url, depth) is None)
    plain = Scope(kind, seeds, types=frozenset({"z"}), domain=scope.domain)
    assert plain.admits(url) == (plain.why_not(url) is None)

"""Which pages are local, by all the ways to say so, and what is said where none are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.community.local import Rule, local_pages
from surveyor.graph.names import Names

URLS = [
    "https://example.org/",
    "https://example.org/docs",
    "http://example.org/docs/a",
    "https://example.org/docs-old/",
    "https://example.org/docs?page=2",
    "https://www.example.org/docs/",
    "https://example.org:8080/docs/",
    "https://b.example.co.uk/",
    "https://a.example.co.uk/x",
    "https://a.example.co.uk/%7Ejoe/",
    "just a name",
]
NAMES = Names.of(URLS)


def chosen(given: Any, names: Names | None = NAMES, **options: Any) -> list[int]:
    count = len(URLS) if names is None else len(names)
    return [int(page) for page in local_pages(given, names, count, **options).places]


def problem(given: Any, names: Names | None = NAMES, **options: Any) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        chosen(given, names, **options)
    return caught.value.problem, caught.value.hint


@pytest.mark.parametrize(
    ("rule", "pages"),
    [
        ("host:example.org", [0, 1, 2, 3, 4, 6]),
        ("host:Example.ORG", [0, 1, 2, 3, 4, 6]),
        ("example.org", [0, 1, 2, 3, 4, 6]),
        ("https://example.org/", [0, 1, 2, 3, 4, 6]),
        ("https://example.org", [0, 1, 2, 3, 4, 6]),
        ("host:example.org:8080", [6]),
        ("example.org:8080", [6]),
        ("domain:example.org", [0, 1, 2, 3, 4, 5, 6]),
        ("domain:b.example.co.uk", [7, 8, 9]),
        ("prefix:https://example.org/docs", [1, 2, 4]),
        ("http://example.org/docs", [1, 2, 4]),
        ("example.org/docs", [1, 2, 4]),
        ("https://Example.org/docs/", [2]),
        ("https://example.org/docs*", [1, 2, 3, 4]),
        ("prefix:https://a.example.co.uk/~joe", []),  # names are as they are written
        ("prefix:https://a.example.co.uk/%7Ejoe", [9]),
        ("prefix:just*", [10]),
        ("ids:0-2,7", [0, 1, 2, 7]),
        ("3-4", [3, 4]),
        ("5", [5]),
    ],
)
def test_rules(rule: str, pages: list[int]) -> None:
    if pages:
        assert chosen(rule) == pages
    else:
        assert problem(rule)[0] == f"no page of this graph is local by {rule}"


def test_lists(tmp_path: Path) -> None:
    file = tmp_path / "pages.txt"
    file.write_text("\ufeff# ours\n\nHTTPS://example.org:443/docs#top\njust a name\nhttps://nobody.example/\n", "utf-8")
    found = local_pages(f"file:{file}", NAMES, len(NAMES))
    assert (found.places.tolist(), found.missing, found.rule) == ([1, 10], 1, f"file:{file}")
    assert chosen(str(file)) == [1, 10]
    named = local_pages(["just a name", "https://example.org/"], NAMES, len(NAMES))
    assert (named.places.tolist(), named.rule) == ([0, 10], "2 pages by name")
    file.write_text("7\n3\n", "utf-8")
    assert chosen(str(file), None) == [3, 7]


def test_pages_by_number() -> None:
    assert chosen(np.array([4, 2, 4])) == chosen([2, 4]) == [2, 4]
    assert chosen(np.arange(len(URLS)) < 3) == [0, 1, 2]
    found = local_pages("ids:20-39", None, 3, numbers=np.array([10, 20, 30]))  # as a journal calls them
    assert (found.places.tolist(), found.missing) == ([1, 2], 18)
    assert not found.places.flags.writeable


def test_all_pages() -> None:
    assert chosen("all", may_be_all=True) == list(range(len(URLS)))
    told, hint = problem("all", what="the graph web")
    assert told == "all 11 pages of the graph web are local by all: there is nothing outside to learn from"
    assert hint.startswith("the largest hosts are example.org (6), a.example.co.uk (2), ")
    same = Names.of(["https://a.example/x", "https://a.example/y"])
    assert problem("a.example", same)[1] == "all are of a.example: try a prefix"


@pytest.mark.parametrize(
    ("given", "told", "hint"),
    [
        ("host:c.example", "no page of this graph is local by host:c.example", "the largest hosts are example.org (6)"),
        ("host:example.co.uk", "no page of this graph is local by", "did you mean domain:example.co.uk? the largest"),
        ("ids:90-99", "no page of this graph is local by ids:90-99", "the largest hosts are"),
        ("ids:9-3", "'9-3' in 'ids:9-3' is no run of pages", "such as ids:0-1999"),
        ("ids:x", "'ids:x' does not say which pages", "such as ids:0-1999"),
        ("hosts:a.example", "'hosts:a.example' is neither a rule", "did you mean host:a.example?"),
        ("docs", "'docs' is neither a rule for local pages, nor a file, nor a host", "there are host:, domain:"),
        ("host:", "the rule 'host:' names no pages", "there are host:"),
        ("all:", "the rule 'all:' names no pages", "there are host:"),
        ("  ", "no rule was given", "there are host:"),
        ("file:/no/such/file", "the local pages in /no/such/file cannot be read: No such file", "one page a line"),
        (["nobody"], "no page of this graph is local by 1 pages by name", "the largest hosts are"),
        ([], "no page of this graph is local by 0 pages by number", "the largest hosts are"),
        ([0.5], "float64s are no local pages", "give a rule, names, ids, or one truth value a page"),
    ],
)
def test_wrong_rules(given: Any, told: str, hint: str) -> None:
    found = problem(given)
    assert found[0].startswith(told)
    assert found[1].startswith(hint)


def test_files_that_hold_no_pages(tmp_path: Path) -> None:
    file = tmp_path / "pages.txt"
    file.write_bytes(b"\xff\xfe\x00")
    assert problem(f"file:{file}")[0] == f"the local pages in {file} cannot be read: it is not UTF-8 text"
    file.write_text("# none yet\n", "utf-8")
    assert problem(str(file))[0] == f"{file} names no pages"
    assert problem(f"file:{tmp_path}")[0].startswith(f"the local pages in {tmp_path} cannot be read")


def test_graphs_without_names() -> None:
    assert chosen("ids:0-3", None) == [0, 1, 2, 3]
    assert problem("host:a.example", None) == (
        "the pages of this graph have no names", "say which are local by number: ids:0-1999",
    )  # fmt: skip
    assert problem("ids:50", None)[1] == "pages have numbers from 0 to 10"
    assert problem("ids:50", Names.of(["a", "b"]))[1] == "the largest hosts are a (1), b (1)"
    assert problem("all", Names.of([]), what="nothing")[1] == "there are no pages at all"


def test_host_graphs() -> None:
    """Names may be hosts themselves."""
    names = Names.of(["a.example.org", "b.example.org", "example.net"])
    assert chosen("domain:example.org", names) == [0, 1]
    assert chosen("host:b.example.org", names) == [1]


def test_domains_below_no_public_suffix() -> None:
    names = Names.of(
        ["http://a.site.intern/", "http://site.intern/x", "http://mysite.intern/", "http://b.other.intern/"]
    )
    assert chosen("domain:site.intern", names) == [0, 1]


@given(
    st.lists(
        st.sampled_from(["http://a.x/", "https://a.x/b", "http://a.x/b/", "https://a.xb/", "b/a", "b"]), max_size=9
    ),
    st.sampled_from(["a.x", "a.x/", "a.x/b", "a.x/b/", "b", "b/", "a.*", "b*"]),
)
def test_prefixes_are_what_they_seem(urls: list[str], prefix: str) -> None:
    urls = ["nothing of it", *urls]
    rests = [url.partition("://")[2] or url for url in urls]
    text = prefix.rstrip("*")
    expected = [
        rest.startswith(text)
        and (text != prefix or text.endswith("/") or rest == text or rest[len(text)] in "/?#")
        for rest in rests
    ]  # fmt: skip
    pages = [page for page, inside in enumerate(expected) if inside]
    if pages:
        assert chosen(f"prefix:{prefix}", Names.of(urls)) == pages
    else:
        assert problem(f"prefix:{prefix}", Names.of(urls))[0].startswith("no page")


def test_guesses_are_spelt_out() -> None:
    words = ["all", "a.example", "A.example/", "a.example/x", "[::1]:80", "localhost", "1,3-4", "host: a.example"]
    assert [str(Rule.parse(word)) for word in words] == [
        "all", "host:a.example", "host:a.example", "prefix:a.example/x", "host:[::1]:80", "host:localhost", "ids:1,3-4",
        "host:a.example",
    ]  # fmt: skip

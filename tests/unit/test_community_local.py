"""Rules for local pages, and errors where no page matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.errors import UsageError
from surveyor.estimate.community.community_options import LocalRule, local_pages
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


def chosen(local: Any, names: Names | None = NAMES, **options: Any) -> list[int]:
    count = len(URLS) if names is None else len(names)
    return [int(page) for page in local_pages(local, names, count, **options).indices]


def problem(local: Any, names: Names | None = NAMES, **options: Any) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        chosen(local, names, **options)
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
        ("prefix:https://a.example.co.uk/~joe", []),  # names are compared as written
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
        assert problem(rule)[0] == f"no page of this graph matches local {rule}"


def test_lists(tmp_path: Path) -> None:
    file = tmp_path / "pages.txt"
    file.write_text("\ufeff# ours\n\nHTTPS://example.org:443/docs#top\njust a name\nhttps://no.example/\n", "utf-8")
    found = local_pages(f"file:{file}", NAMES, len(NAMES))
    assert (found.indices.tolist(), found.missing, found.rule) == ([1, 10], 1, f"file:{file}")
    assert chosen(str(file)) == [1, 10]
    named = local_pages(["just a name", "https://example.org/"], NAMES, len(NAMES))
    assert (named.indices.tolist(), named.rule) == ([0, 10], "2 pages by name")
    file.write_text("7\n3\n", "utf-8")
    assert chosen(str(file), None) == [3, 7]


def test_pages_by_id() -> None:
    assert chosen(np.array([4, 2, 4])) == chosen([2, 4]) == [2, 4]
    assert chosen(np.arange(len(URLS)) < 3) == [0, 1, 2]
    found = local_pages("ids:20-39", None, 3, ids=np.array([10, 20, 30]))  # ids of a journal
    assert (found.indices.tolist(), found.missing) == ([1, 2], 18)
    assert not found.indices.flags.writeable


def test_all_pages() -> None:
    assert chosen("all", allow_all=True) == list(range(len(URLS)))
    message, hint = problem("all", what="the graph web")
    assert message == "all 11 pages of the graph web match local all, and no page is left outside"
    assert hint.startswith("the largest hosts are example.org (6), a.example.co.uk (2), ")
    same = Names.of(["https://a.example/x", "https://a.example/y"])
    assert problem("a.example", same)[1] == "all pages are on a.example: try prefix:"


@pytest.mark.parametrize(
    ("local", "message", "hint"),
    [
        ("host:c.example", "no page of this graph matches local host:c.example", "the largest hosts are example.org"),
        ("host:example.co.uk", "no page of this graph matches local", "did you mean domain:example.co.uk? the largest"),
        ("ids:90-99", "no page of this graph matches local ids:90-99", "the largest hosts are"),
        ("ids:9-3", "'9-3' in 'ids:9-3' is not a range of ids", "for example ids:0-1999"),
        ("ids:x", "'ids:x' is not a list of ids", "for example ids:0-1999"),
        ("hosts:a.example", "'hosts:a.example' is not a rule", "did you mean host:a.example?"),
        ("docs", "'docs' is not a rule for local pages, a file or a host", "rules are host:HOST"),
        ("host:", "the rule 'host:' has no value", "rules are host:HOST"),
        ("all:", "the rule 'all:' has no value", "rules are host:HOST"),
        ("  ", "the rule for local pages is empty", "rules are host:HOST"),
        ("file:/no/such/file", "the local pages in /no/such/file cannot be read: No such file", "one page per line"),
        (["missing"], "no page of this graph matches local 1 pages by name", "the largest hosts are"),
        ([], "no page of this graph matches local 0 pages by id", "the largest hosts are"),
        ([0.5], "local must be a list of ids, got float64", "give a rule, a list of names or ids"),
    ],
)
def test_invalid_rules(local: Any, message: str, hint: str) -> None:
    found = problem(local)
    assert found[0].startswith(message)
    assert found[1].startswith(hint)


def test_files_without_pages(tmp_path: Path) -> None:
    file = tmp_path / "pages.txt"
    file.write_bytes(b"\xff\xfe\x00")
    assert problem(f"file:{file}")[0] == f"the local pages in {file} cannot be read: it is not UTF-8 text"
    file.write_text("# none yet\n", "utf-8")
    assert problem(str(file))[0] == f"{file} contains no pages"
    assert problem(f"file:{tmp_path}")[0].startswith(f"the local pages in {tmp_path} cannot be read")


def test_graphs_without_names() -> None:
    assert chosen("ids:0-3", None) == [0, 1, 2, 3]
    no_names = problem("host:a.example", None)
    assert no_names == ("the pages of this graph have no names", "select them by id: ids:0-1999")
    assert problem("ids:50", None)[1] == "page ids range from 0 to 10"
    assert problem("ids:50", Names.of(["a", "b"]))[1] == "the largest hosts are a (1), b (1)"
    assert problem("all", Names.of([]), what="nothing")[1] == "there are no pages"


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
def test_prefixes_match_a_plain_implementation(urls: list[str], prefix: str) -> None:
    urls = ["nothing of it", *urls]
    rests = [url.partition("://")[2] or url for url in urls]
    text = prefix.rstrip("*")
    expected = [
        rest.startswith(text) and (text != prefix or text.endswith("/") or rest == text or rest[len(text)] in "/?#")
        for rest in rests
    ]
    pages = [page for page, inside in enumerate(expected) if inside]
    if pages:
        assert chosen(f"prefix:{prefix}", Names.of(urls)) == pages
    else:
        assert problem(f"prefix:{prefix}", Names.of(urls))[0].startswith("no page")


def test_inferred_rules() -> None:
    words = ["all", "a.example", "A.example/", "a.example/x", "[::1]:80", "localhost", "1,3-4", "host: a.example"]
    assert [str(LocalRule.parse(word)) for word in words] == [
        "all",
        "host:a.example",
        "host:a.example",
        "prefix:a.example/x",
        "host:[::1]:80",
        "host:localhost",
        "ids:1,3-4",
        "host:a.example",
    ]

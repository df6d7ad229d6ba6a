from __future__ import annotations

import numpy as np
import pytest
from ada_url import normalize_url
from attack import attack
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surveyor import UsageError
from surveyor.web.urls import LONGEST, Urls, _tidy, domain, host, normalise, normalise_all, origin

BASE = "https://example.org/dir/page.html?q=1#top"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("other", "https://example.org/dir/other"),
        ("", "https://example.org/dir/page.html?q=1"),
        ("?x=2", "https://example.org/dir/page.html?x=2"),
        ("#part", "https://example.org/dir/page.html?q=1"),
        ("/root", "https://example.org/root"),
        ("//other.example/x", "https://other.example/x"),
        ("../../../up", "https://example.org/up"),
        ("a/./b/../c", "https://example.org/dir/a/c"),
        ("%2e%2E/up", "https://example.org/up"),
        ("\\back\\slash", "https://example.org/back/slash"),
        ("http:\\\\h.example\\x", "http://h.example/x"),
        ("  /trim \n", "https://example.org/trim"),
        ("/in\tner\nbre\rak", "https://example.org/innerbreak"),
        ("/with space?and space", "https://example.org/with%20space?and%20space"),
        ("HTTPS://EXAMPLE.ORG", "https://example.org/"),
        ("https://example.org:443/", "https://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("http://example.org:080/", "http://example.org/"),
        ("http://bücher.example/ä?ö", "http://xn--bcher-kva.example/%C3%A4?%C3%B6"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://joe:secret@example.org/@x", "http://example.org/@x"),
        ("/%7ejoe/%c3%a4%2F%41", "https://example.org/~joe/%C3%A4%2FA"),
        ("/100%", "https://example.org/100%"),
        ("/?", "https://example.org/"),
        ("/?b=2&a=1&b=1", "https://example.org/?b=2&a=1&b=1"),
        ("/\x01\x7f", "https://example.org/%01%7F"),
    ],
)
def test_urls_are_spelt_as_browsers_do(url: str, expected: str) -> None:
    assert normalise(url, BASE) == expected
    assert normalise(expected) == expected


@attack(
    "strings that are not http(s) URLs, too long, or without a host",
    area="links and URLs",
    must_hold="rejected, no exception",
)
@pytest.mark.parametrize(
    "url",
    [
        "javascript:void(0)",
        "JavaScript:alert(1)",
        "mailto:joe@example.org",
        "data:text/html,<a href=x>",
        "ftp://example.org/",
        "http://",
        "http://exa mple.org/",
        "http://a\x00b/",
        "http://[::1/",
        "http://example.org:99999/",
        "http://1.2.3.256/",
        "/\ud800",
        "/" + LONGEST * "x",
        "/" + LONGEST * "ä",
        20_001 * "x",
    ],
)
def test_what_cannot_be_fetched_is_none(url: str) -> None:
    assert normalise(url, BASE) is None


def test_a_url_may_need_a_base() -> None:
    assert normalise("relative") is None
    assert normalise("relative", "mailto:joe@example.org") is None
    assert normalise("https://example.org/" + (LONGEST - 20) * "x") is not None
    assert normalise("https://example.org/" + (LONGEST - 19) * "x") is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/?utm_source=a&UTM_Medium=b&id=1&fbclid=x", "/?id=1"),
        ("/?gclid=1", "/"),
        ("/?%75tm_source=a", "/"),
        ("/?PHPSESSID=1&a&phpsessid", "/?a"),
        ("/a;jsessionid=12AB?x=1", "/a?x=1"),
        ("/a;JSESSIONID=12AB;v=1/b", "/a;v=1/b"),
        ("/a/..;jsessionid=1", "/"),
        ("/?sid=0123456789abcdef0123456789abcdef&x", "/?x"),
        ("/?sid=12", "/?sid=12"),
        ("/?notutm_source=a&gclidx=2", "/?notutm_source=a&gclidx=2"),
    ],
)
def test_tracking_and_sessions_are_dropped_on_demand(url: str, expected: str) -> None:
    start = "https://example.org"
    assert normalise(start + url) == start + expected
    assert normalise("https://example.org/?utm_source=a", drop_tracking=False) == "https://example.org/?utm_source=a"


PIECES = st.sampled_from([
    "/", ".", "..", "%2e", "%", "%4", "%41", "%65", "2", "e", "a", "ä", ";jsessionid=", "?", "&", "=", "sid=", "#", "@",
    ":", "\\", "\t", " ", "utm_x=", "xn--", "http://", "https://h.example", "//", "[::1]", "0" * 16, "A", "-", "~",
])  # fmt: skip


@attack("random URLs", area="links and URLs", must_hold="normalisation is idempotent")
@given(
    st.one_of(
        st.text(), st.lists(PIECES).map("".join), st.lists(PIECES).map(lambda x: "http://a.example/" + "".join(x))
    )
)
@example("http://a.example/%2%65%2%65/b")
@example("http://a.example/b/..;jsessionid=1")
@settings(max_examples=500, deadline=None)
def test_normalising_twice_is_the_same_as_once(url: str) -> None:
    once = normalise(url, BASE)
    if once is not None:
        assert normalise(once) == normalise(once, BASE) == once
        assert once.isascii()
        assert origin(once) + "/" == normalise("/", once)
        assert host(once) in origin(once)


@given(st.from_regex(r"https?://[a-zA-Z0-9.-]{1,12}\.[a-z0-9]{1,4}/[A-Za-z0-9_.~/-]{0,12}", fullmatch=True))
@settings(max_examples=300, deadline=None)
def test_plain_urls_are_as_the_parser_writes_them(url: str) -> None:
    try:
        expected: str | None = _tidy(normalize_url(url), drop_tracking=True)
    except ValueError:
        expected = None
    assert normalise(url) == expected


def test_many_are_normalised_at_once() -> None:
    urls = ["a", "mailto:x", "a", "/b?utm_source=1"]
    assert normalise_all(urls, BASE) == [normalise(url, BASE) for url in urls]
    assert normalise_all(urls[3:], BASE, drop_tracking=False) == ["https://example.org/b?utm_source=1"]
    assert normalise_all([]) == []


def test_hosts_and_origins() -> None:
    assert host("http://example.org:8080/a:b") == "example.org"
    assert host("http://[::1]:8080/") == host("http://[::1]/") == "[::1]"
    assert origin("http://[::1]:8080/a?b") == "http://[::1]:8080"
    for wrong in ("example.org", "http://example.org", "ftp://example.org/", "mailto:a/b/c/d"):
        with pytest.raises(UsageError, match="normalised"):
            host(wrong)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("www.example.org", "example.org"),
        ("example.org", "example.org"),
        ("example.org.", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("joe.github.io", "github.io"),
        ("x.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.kobe.jp", "a.b.kobe.jp"),
        ("www.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("localhost", "localhost"),
        ("web.host.unknown-suffix", "web.host.unknown-suffix"),
    ],
)
def test_domains_are_registrable_ones(name: str, expected: str) -> None:
    assert domain(name) == expected


@given(st.lists(st.lists(st.text("abc/", max_size=6), max_size=20), max_size=10))
@settings(max_examples=100, deadline=None)
def test_interning_is_a_dictionary(batches: list[list[str]]) -> None:
    urls, expected = Urls(expected=1), dict[str, int]()
    for batch in batches:
        since = len(urls)
        assert urls.ids(batch).tolist() == [expected.setdefault(url, len(expected)) for url in batch]
        assert urls.added(since) == list(expected)[since:]
    assert len(urls) == len(expected)
    assert [urls[page] for page in range(len(urls))] == list(expected)
    assert [urls.find(url) for url in expected] == list(expected.values())
    assert urls.find("none of these") is None


def test_the_table_grows() -> None:
    texts = [f"https://example.org/{'x' * (number % 90)}/{number}" for number in range(5_000)]
    urls = Urls(expected=1)
    assert urls.ids(texts).tolist() == list(range(5_000))
    assert urls.ids(texts[::-1]).tolist() == list(range(5_000))[::-1]
    assert urls.added(0) == texts
    assert urls.added(5_000) == []
    assert urls.find(texts[4_999]) == 4_999
    assert repr(urls) == "Urls(5,000)"


def test_edges_are_refused() -> None:
    urls = Urls()
    urls.ids(["https://example.org/"])
    for page in (1, -1):
        with pytest.raises(IndexError):
            urls[page]
        with pytest.raises(UsageError):
            urls.alias(0, page)
    for since in (-1, 2):
        with pytest.raises(UsageError):
            urls.added(since)
    with pytest.raises(UsageError, match="ä"):
        urls.ids(["https://example.org/", "https://example.org/ä"])
    assert len(urls) == 1
    assert urls.find("https://example.org/ä") is None


def test_ids_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surveyor.web.urls.MAX_PAGES", 2)
    urls = numbered(2)
    with pytest.raises(UsageError, match="more than 2 URLs"):
        urls.ids(["https://example.org/new"])


def numbered(count: int) -> Urls:
    urls = Urls()
    urls.ids([f"https://example.org/{number}" for number in range(count)])
    return urls


def test_aliases_lead_to_the_last_page() -> None:
    urls, pages = numbered(6), np.arange(6, dtype=np.int32)
    assert urls.canonical(pages).tolist() == [0, 1, 2, 3, 4, 5]
    assert urls.alias(0, 1)
    assert urls.alias(1, 2)
    assert urls.alias(3, 0)
    assert urls.canonical(pages).tolist() == [2, 2, 2, 2, 4, 5]
    assert not urls.alias(2, 3)  # a circle
    assert not urls.alias(4, 4)
    assert not urls.alias(0, 5)  # stands for 2 already
    assert urls.alias(0, 3)  # the same page
    assert urls.canonical(pages).tolist() == [2, 2, 2, 2, 4, 5]
    assert pages.tolist() == [0, 1, 2, 3, 4, 5]
    assert urls.ids([f"https://example.org/{number}" for number in range(20)]).tolist() == list(range(20))
    assert urls.canonical(np.array([19, 3], np.int32)).tolist() == [19, 2]


def test_long_chains_of_aliases() -> None:
    urls = numbered(1_000)
    assert all(urls.alias(page, page + 1) for page in range(999))
    assert set(urls.canonical(np.arange(1_000, dtype=np.int32)).tolist()) == {999}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
@settings(max_examples=100, deadline=None)
def test_aliases_against_following_each_step(pairs: list[tuple[int, int]]) -> None:
    urls, follow = numbered(10), dict[int, int]()

    def last(page: int) -> int:
        while page in follow:
            page = follow[page]
        return page

    for page, target in pairs:
        taken = page not in follow and last(target) != page
        assert urls.alias(page, target) == (taken or (page in follow and last(page) == last(target)))
        if taken:
            follow[page] = target
    assert urls.canonical(np.arange(10, dtype=np.int32)).tolist() == [last(page) for page in range(10)]


def test_pages_of_one_host_have_one_key() -> None:
    names = [
        "a.example",
        "a.example:8080",
        "b.example",
        "a.exampl",
        "[::1]",
        "[::1]:80",
        "[::2]",
        "1.2.3.4:9",
        "1.2.3.4",
    ]
    spelt = [f"{scheme}://{name}/{path}" for name in names for scheme in ("http", "https") for path in ("", "x:y/]:1/")]
    urls = Urls(4)
    keys = urls.host_ids(urls.ids(spelt)).tolist()
    for one, key in zip(spelt, keys, strict=True):
        for other, its in zip(spelt, keys, strict=True):
            assert (key == its) == (host(one) == host(other)), (one, other)
    with pytest.raises(UsageError, match="no URL"):
        urls.host_ids(np.array([len(spelt)], np.int32))


@pytest.mark.parametrize("port", ["", ":80", ":443", ":8080", ":08", ":1", ":59999", ":65535", ":65536"])
@pytest.mark.parametrize("name", ["127.0.0.1", "127.0.0.01", "localhost", "a.example", "127.1"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_ports_and_addresses_pass_by_the_pattern_as_by_the_parser(scheme: str, name: str, port: str) -> None:
    url = f"{scheme}://{name}{port}/a/b.html"
    try:
        expected = _tidy(normalize_url(url), drop_tracking=True)
    except ValueError:
        expected = ""
    assert (normalise(url) or "") == expected


def test_texts_are_those_of_the_pages() -> None:
    urls = Urls()
    every = [f"https://example.org/{'x' * (number % 7)}{number}" for number in range(90)]
    urls.ids(every)
    for pages in (
        [],
        [7],
        [3, 4, 5],
        [6, 5, 4],
        [49, 0],
        [3, 3],
        [*range(9, 80)],
        [*range(80, 9, -1)],
        [*range(40), 3],
    ):
        assert urls.texts(np.array(pages, np.int32)) == [every[page] for page in pages]
    with pytest.raises(UsageError, match="pages that no URL has"):
        urls.texts(np.arange(50, 91, dtype=np.int32))
    with pytest.raises(IndexError):
        urls.texts(np.array([90], np.int32))

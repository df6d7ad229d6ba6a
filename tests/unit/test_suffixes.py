"""Registrable domains: hosts of all kinds, lists of one's own, and lists that are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publicsuffixlist import PSLFILE, PublicSuffixList

from surveyor.errors import InputError
from surveyor.web.suffixes import Suffixes, spelt

ICANN, ALL = Suffixes(), Suffixes(private=True)
LABELS = ["com", "uk", "co", "ck", "www", "jp", "kobe", "city", "tokyo", "kawasaki", "io", "github", "de", "bd", "np"]
LIST = """// VERSION: 2020-02-02_00-00-00_UTC
// ===BEGIN ICANN DOMAINS===
example
*.wide.example
!city.wide.example
näf.example\tsaid after a blank
// ===END ICANN DOMAINS===
// ===BEGIN PRIVATE DOMAINS===
free.example
"""


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("www.example.org", "example.org"),
        ("WWW.Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("example.org:8080", "example.org"),
        ("www.example.org.:8080", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("joe.github.io", "github.io"),
        ("www.bücher.de", "xn--bcher-kva.de"),
        ("WWW.BÜCHER.DE", "xn--bcher-kva.de"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("食狮.公司.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("www.食狮。公司。cn", "xn--85x722f.xn--55qx5d.cn"),
        ("xn--broken--punycode.com:80", "xn--broken--punycode.com"),
        ("com", "com"),
        ("co.uk", "co.uk"),
        ("a.ck", "a.ck"),
        ("b.a.ck", "b.a.ck"),
        ("c.b.a.ck", "b.a.ck"),
        ("www.ck", "www.ck"),
        ("x.www.ck", "www.ck"),
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:81", "192.0.2.1"),
        ("0xC0.0.2.1", "192.0.2.1"),
        ("[2001:DB8:0::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
        ("localhost", "localhost"),
        ("db.intern", "db.intern"),
        ("DB.Intern:5432", "db.intern"),
        ("_dmarc.my_host.example.org", "example.org"),
        ("my_host.org", "my_host.org"),
        ("a..example.org", "a..example.org"),
        (".example.org", ".example.org"),
        ("...", ""),
        ("", ""),
        ("256.0.0.1", "256.0.0.1"),
        ("two words.org", "two words.org"),
        ("x" * 300 + ".www.org", "www.org"),
        ("x" * 300 + ".org", "x" * 300 + ".org"),
    ],
)
def test_each_host_has_one_domain(host: str, expected: str) -> None:
    assert ICANN.domain(host) == expected
    assert ICANN.domain(expected) == expected


ORACLES = {
    ICANN: PublicSuffixList(accept_unknown=False, only_icann=True),
    ALL: PublicSuffixList(accept_unknown=False),
}


@given(st.lists(st.sampled_from([*LABELS, "x", "y-1"]), min_size=1, max_size=6), st.sampled_from([ICANN, ALL]))
@settings(max_examples=500, deadline=None)
def test_another_reader_of_the_list_says_the_same(labels: list[str], ours: Suffixes) -> None:
    name = ".".join(labels)
    assert ours.domain(name) == (ORACLES[ours].privatesuffix(name) or name)
    assert ours.knows(name) == (ORACLES[ours].publicsuffix(name) is not None)


def test_every_rule_of_the_list_says_what_another_reader_says() -> None:
    for line in Path(PSLFILE).read_text("utf-8").splitlines():
        if line and not line.startswith("//"):
            rule = spelt(line.removeprefix("!").removeprefix("*."))
            for name in (rule, f"a.{rule}", f"b.a.{rule}", f"c.b.a.{rule}", rule.partition(".")[2] or rule):
                for ours, oracle in ORACLES.items():
                    assert ours.domain(name) == (oracle.privatesuffix(name) or name)


def test_the_private_section_counts_if_asked_for() -> None:
    assert ALL.domain("a.joe.github.io") == "joe.github.io"
    assert ALL.domain("github.io") == "github.io"
    assert ALL.domain("www.example.co.uk") == "example.co.uk"
    assert repr(ICANN).endswith("ICANN section)")
    assert repr(ALL).endswith("all sections)")


def test_which_suffixes_are_known() -> None:
    names = ["www.example.org", "com", "192.0.2.1", "[::1]", "localhost", "db.intern", "a..example.org"]
    assert ICANN.knows("WWW.Bücher.de:80")
    assert not ICANN.knows("")
    assert [name for name in names if not ICANN.knows(name)] == ["localhost", "db.intern", "a..example.org"]


HOSTS = st.one_of(
    st.text("aB1_-.:[]ü。%@x", max_size=12), st.text(max_size=12), st.from_regex(r"[a-z1]{1,3}(\.[a-z0-9]{1,3}){0,3}")
)


@given(HOSTS)
@settings(max_examples=300, deadline=None)
def test_a_spelling_and_a_domain_are_their_own(host: str) -> None:
    name = spelt(host)
    assert spelt(name) == name
    domain = ICANN.domain(host)
    assert ICANN.domain(domain) == domain
    if name:
        assert name.isascii()
        assert not any(letter.isspace() or letter.isupper() or letter in "/?#@" for letter in name)
        assert domain == ICANN.domain(name) == ICANN.domain_of(name)
        assert name == domain or name.endswith("." + domain)


def test_a_list_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "list.dat"
    file.write_text(LIST, "utf-8")
    own, whole = Suffixes(file=file), Suffixes(file=str(file), private=True)
    hosts = ["a.b.example", "a.b.wide.example", "x.a.b.wide.example", "x.city.wide.example", "a.b.näf.example"]
    domains = ["b.example", "a.b.wide.example", "a.b.wide.example", "city.wide.example", "b.xn--nf-via.example"]
    assert [own.domain(host) for host in hosts] == domains
    assert own.domain("a.b.free.example") == "free.example"
    assert whole.domain("a.b.free.example") == "b.free.example"
    assert own.domain("www.example.org") == "www.example.org"  # the bundled list does not count
    assert repr(own) == f"Suffixes({file} of 2020-02-02, ICANN section)"
    file.write_bytes(b"\xef\xbb\xbfexample\r\nfree.example\r\n")  # no sections: all of it counts
    assert Suffixes(file=file).domain("a.b.free.example") == "b.free.example"
    assert repr(Suffixes(file=file)) == f"Suffixes({file})"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "the list of suffixes {} cannot be read: No such file or directory"),
        (b"\xff\xfe\x00", "{} is no list of suffixes: it is not UTF-8 text"),
        (b"", "{} holds no suffixes"),
        (b"// only\n\n// comments\n", "{} holds no suffixes"),
        (b"com\n<html>\n", "{}:2: '<html>' is no suffix"),
        (b"com\n*.a.*.b\n", "{}:2: '*.a.*.b' is no suffix"),
        (b"com\n!\n", "{}:2: '!' is no suffix"),
        (b"a..b\n", "{}:1: 'a..b' is no suffix"),
        (b"127.0.0.1 localhost\n", "{}:1: '127.0.0.1' is no suffix"),
    ],
)
def test_what_is_no_list_is_refused_in_a_sentence(tmp_path: Path, content: bytes | None, problem: str) -> None:
    file = tmp_path / "list.dat"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Suffixes(file=file)
    assert caught.value.problem.startswith(problem.format(file))
    assert "publicsuffix.org" in caught.value.hint
    assert "\n" not in caught.value.problem


def test_a_folder_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Suffixes(file=tmp_path)

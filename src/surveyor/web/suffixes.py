"""Registrable domains by the Public Suffix List.

    >>> suffixes = Suffixes()
    >>> suffixes.domain("news.bbc.co.uk"), suffixes.domain("joe.github.io"), suffixes.domain("WWW.Bücher.example.")
    ('bbc.co.uk', 'github.io', 'www.xn--bcher-kva.example')
    >>> Suffixes(private=True).domain("joe.github.io")
    'joe.github.io'

**The list** is that of the `publicsuffixlist` library, or a file in the same format (publicsuffix.org). Its ICANN
section has the suffixes of registries; its private section has those of companies that give out names below their own,
such as github.io. By default only the ICANN section is used, so that free names do not become domains. A file without
sections is used as a whole.

**Host names** are normalised to ASCII (punycode) in lower case, as a browser requests them, without port and trailing
dot.

**Own domain.** IP addresses, hosts that are a public suffix themselves, hosts under an unknown suffix (`db.intern`; see
`knows`) and hosts that no browser would request are their own domain.
"""

from __future__ import annotations

import re
from pathlib import Path

from ada_url import normalize_url

from surveyor.errors import InputError

BEGIN, END = "===BEGIN ICANN DOMAINS===", "===END ICANN DOMAINS==="
HERE, BELOW, NOT = 1, 2, 4  # kinds of rules: x, *.x and !x
LONGEST = 253  # characters of a DNS name
NUMERIC = frozenset("0123456789]")
VERSION = re.compile(r"// VERSION: (\d{4}-\d\d-\d\d)")
FETCH = "fetch it from https://publicsuffix.org/list/public_suffix_list.dat"
_PLAIN = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z_-][a-z0-9_-]*")  # unchanged by every parser
_NO_HOST = re.compile(r"[\s/\\?#@]")


def spelt(host: str) -> str:
    """Return the normalised name of a host, given with or without port; empty if no browser would request it.

    >>> spelt("WWW.Example.org.:8080"), spelt("0x7f.1"), spelt("[::0:1]:80"), spelt("two words")
    ('www.example.org', '127.0.0.1', '[::1]', '')
    """
    name = host.rstrip(".").lower() if host.isascii() else host
    if _PLAIN.fullmatch(name):
        return name
    if _NO_HOST.search(host):
        return ""
    try:
        authority = normalize_url(f"http://{host}/")[7:].partition("/")[0]
    except ValueError:
        bare = name.partition(":")[0].rstrip(".")
        return bare if _PLAIN.fullmatch(bare) and name[len(bare) :].strip(".:").isdecimal() else ""
    end = authority.find("]") + 1  # end of an IPv6 address, which contains colons
    return authority[:end] or authority.partition(":")[0].rstrip(".")


class Suffixes:
    """The public suffixes under which domains are registered."""

    def __init__(self, *, private: bool = False, file: Path | str | None = None) -> None:
        """Load the bundled list or a file; with `private`, include its private section."""
        self.private, self.file = private, None if file is None else str(file)
        path = _bundled() if file is None else Path(file)
        text = _read(path)
        version, sections = VERSION.search(text), BEGIN in text
        self.about = self.file or "Public Suffix List"
        self.about += f" of {version[1]}" if version else ""
        self.about += "" if not sections else ", all sections" if private else ", ICANN section"
        self._tree: dict[str, int] = {}  # every rule and all suffixes of rules -> kinds of rules
        counts = private or not sections
        for number, line in enumerate(text.split("\n"), 1):
            counts = counts or BEGIN in line
            counts = counts and (private or END not in line)
            rule = (line.split(maxsplit=1) or [""])[0]
            if counts and rule and not rule.startswith("//"):
                self._add(rule, f"{path}:{number}")
        if not self._tree:
            raise InputError(f"{path} holds no suffixes", hint=FETCH)

    def _add(self, rule: str, place: str) -> None:
        kind = NOT if rule[0] == "!" else BELOW if rule[:2] == "*." else HERE
        name = spelt(rule[{NOT: 1, BELOW: 2, HERE: 0}[kind] :])
        if not 0 < len(name) <= LONGEST or "*" in name or _is_address(name) or _has_gaps(name):
            raise InputError(f"{place}: {rule[:60]!r} is no suffix", hint=FETCH)
        self._tree[name] = self._tree.get(name, 0) | kind
        while (name := name.partition(".")[2]) and name not in self._tree:
            self._tree[name] = 0

    def domain(self, host: str) -> str:
        """Return the registrable domain of a host."""
        name = spelt(host)
        return self.domain_of(name) if name else host.rstrip(".").lower()

    def domain_of(self, name: str) -> str:
        """Return the registrable domain of a normalised host; faster than `domain`."""
        suffix = self._suffix(name)
        return name[name.rfind(".", 0, suffix - 1) + 1 :] if suffix > 0 else name

    def knows(self, host: str) -> bool:
        """Return whether a host is an IP address or under a suffix of the list."""
        name = spelt(host)
        return _is_address(name) or self._suffix(name) >= 0

    def _suffix(self, name: str) -> int:
        """Return the offset of the public suffix of a name; -1 if none is known.

        The longest rule applies. A rule `*.x` makes suffixes of x and of all names directly below it, except those
        with a rule `!`.
        """
        tree, suffix, start, below = self._tree, -1, len(name) + 1, 0
        if _is_address(name) or _has_gaps(name):
            return -1
        while start > 0:
            before, start = start, name.rfind(".", 0, start - 1) + 1
            kind = tree.get(name[start:])
            if kind is None:
                return start if below else suffix
            if kind & NOT:
                return before
            if kind or below:
                suffix = start
            below = kind & BELOW
        return suffix

    def __repr__(self) -> str:
        return f"Suffixes({self.about})"


def _is_address(name: str) -> bool:
    return name[-1:] in NUMERIC and (name.endswith("]") or name.rpartition(".")[2].isdecimal())


def _has_gaps(name: str) -> bool:
    return ".." in name or name[:1] == "."


def _bundled() -> Path:
    from publicsuffixlist import PSLFILE

    return Path(PSLFILE)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no list of suffixes: it is not UTF-8 text", hint=FETCH) from error
    except OSError as error:
        raise InputError(f"the list of suffixes {path} cannot be read: {error.strerror}", hint=FETCH) from error

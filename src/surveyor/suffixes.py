"""Registrable domains by the Public Suffix List: what one owner registered, and all hosts below it.

    >>> suffixes = Suffixes()
    >>> suffixes.domain("news.bbc.co.uk"), suffixes.domain("joe.github.io"), suffixes.domain("WWW.Bücher.example.")
    ('bbc.co.uk', 'github.io', 'www.xn--bcher-kva.example')
    >>> Suffixes(private=True).domain("joe.github.io")
    'joe.github.io'

**The list** is that of the `publicsuffixlist` library, or a file in the same format (publicsuffix.org). Its ICANN
section holds the suffixes of registries; its private section those of companies that let anybody have a name below
theirs, such as github.io. By default only the first counts, so that free names do not become domains. A file without
sections counts as a whole.

**Spelling.** A host has one: ASCII (punycode) in lower case, as a browser would ask for it, without port and without a
dot at the end.

**Their own domain** are addresses, hosts that are a public suffix themselves, hosts under a suffix that the list does
not know (`db.intern`; see `knows`) and hosts that no browser would ask for.
"""

from __future__ import annotations

import re
from pathlib import Path

from ada_url import normalize_url

from surveyor.errors import InputError

SECTION = "===BEGIN ICANN DOMAINS==="
VERSION = re.compile(r"// VERSION: (\d{4}-\d\d-\d\d)")
FETCH = "fetch it from https://publicsuffix.org/list/public_suffix_list.dat"
_PLAIN = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z_-][a-z0-9_-]*")  # no parser changes it
_NO_HOST = re.compile(r"[\s/\\?#@]")
_RULE = re.compile(r"!?(?:\*\.)*[^\s!*<>\"'(){}\[\]=,;:/\\]+|\*")


def spelt(host: str) -> str:
    """Return the one spelling of a host, with or without its port; nothing if no browser would ask for it.

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
    end = authority.find("]") + 1  # of an address of the sixth version, which has colons in it
    return authority[:end] or authority.partition(":")[0].rstrip(".")


class Suffixes:
    """The suffixes under which domains are registered."""

    def __init__(self, *, private: bool = False, file: Path | str | None = None) -> None:
        """Take the bundled list or that in a file; with `private`, its private section too."""
        from publicsuffixlist import PSLFILE, PublicSuffixList  # 60 ms, so only when needed

        text = _read(Path(PSLFILE if file is None else file))
        lines = text.split("\n")
        sections = any(SECTION in line for line in lines)
        version = VERSION.search(text)
        self.private, self.file = private, None if file is None else str(file)
        self.about = self.file or "Public Suffix List"
        self.about += f" of {version[1]}" if version else ""
        self.about += "" if not sections else ", all sections" if private else ", ICANN section"
        try:
            self._list = PublicSuffixList(lines, accept_unknown=False, only_icann=sections and not private)
        except UnicodeError as error:
            raise InputError(f"{file} has a rule that is no host name ({error})", hint=FETCH) from error

    def domain(self, host: str) -> str:
        """Return the registrable domain of a host."""
        name = spelt(host)
        if not name:
            return host.rstrip(".").lower()
        return self.domain_of(name)

    def domain_of(self, name: str) -> str:
        """Return the registrable domain of a host that is spelt in the one way; as `domain`, but faster."""
        return name if _is_address(name) else self._list.privatesuffix(name) or name

    def knows(self, name: str) -> bool:
        """Say whether a host lies under a suffix of the list; addresses need none."""
        return _is_address(name) or self._list.publicsuffix(name) is not None

    def __repr__(self) -> str:
        return f"Suffixes({self.about})"


def _is_address(name: str) -> bool:
    return name.endswith("]") or name.rpartition(".")[2].isdecimal()


def _read(path: Path) -> str:
    """Return the text of a list; refuse what is none."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no list of suffixes: it is not UTF-8 text", hint=FETCH) from error
    except OSError as error:
        raise InputError(f"the list of suffixes {path} cannot be read: {error.strerror}", hint=FETCH) from error
    rules = 0
    for number, line in enumerate(text.split("\n"), 1):
        rule = line.partition(" ")[0].strip()
        if rule and not rule.startswith("//"):
            if not _RULE.fullmatch(rule):
                raise InputError(f"{path}:{number}: {rule[:60]!r} is no suffix", hint=FETCH)
            rules += 1
    if not rules:
        raise InputError(f"{path} holds no suffixes", hint=FETCH)
    return text

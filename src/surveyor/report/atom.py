"""Changes of a survey as an Atom feed (RFC 4287) for feed readers.

An entry is one change of one page. Its id is a `tag:` URI (RFC 4151) of the host, the date and a digest of URL, kind
and time, so it stays the same when the feed is written again. Titles and URLs come from web pages: they are escaped,
and characters that XML cannot represent are replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from surveyor import __version__
from surveyor.survey.changes import KINDS, Changes, PageChange
from surveyor.web.urls import host

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MOST_ENTRIES = 1_000
LONGEST = 300  # characters of a title
LATEST = 253_402_300_799.0  # seconds since 1970: end of the year 9999
NAME = re.compile(r"[a-z0-9.-]{1,253}")  # a host that a tag URI can contain


def atom_feed(changes: Changes, seeds: Sequence[str], *, title: str = "", updated: float | None = None) -> str:
    """Return a feed with the latest changes first, at most 1,000; `seeds` name the survey.

    `updated` is the time of the feed: by default that of its latest change.
    """
    latest = sorted(changes.pages, key=lambda change: (-change.at, change.url))[:MOST_ENTRIES]
    at = updated if updated is not None else max((change.at for change in latest), default=changes.since)
    home = seeds[0] if seeds else ""
    name = title or f"Changes of {home or 'a survey'}"
    digest = hashlib.blake2b("\n".join(sorted(seeds)).encode("utf-8", "replace"), digest_size=8).hexdigest()
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{_tag(home, 0.0, digest)}</id>",
        f"<title>{_text(name)}</title>",
        f"<updated>{_time(at)}</updated>",
        "<author><name>surveyor</name></author>",
        f'<generator version="{_text(__version__)}">surveyor</generator>',
        *([f"<link href={_attribute(home)}/>"] if home else []),
        *(line for change in latest for line in _entry(change)),
        "</feed>",
    ]
    return "\n".join(lines) + "\n"


def _entry(change: PageChange) -> Iterator[str]:
    key = f"{change.url}\n{change.kind}\n{change.at!r}"
    digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).hexdigest()
    about = [f"{change.kind}: {KINDS.get(change.kind, '')}"]
    if change.old_title and change.old_title != change.title:
        about.append(f"title before: {change.old_title[:LONGEST]}")
    if change.importance is not None:
        about.append(f"share of importance: {change.importance:.3g}")
    yield "<entry>"
    yield f"<id>{_tag(change.url, change.at, digest)}</id>"
    yield f"<title>{_text(f'{change.kind}: {(change.title or change.old_title)[:LONGEST] or change.url}')}</title>"
    yield f"<updated>{_time(change.at)}</updated>"
    yield f"<link href={_attribute(change.url)}/>"
    yield f"<category term={_attribute(change.kind)}/>"
    yield f"<summary>{_text('. '.join(about))}</summary>"
    yield "</entry>"


def _tag(url: str, at: float, digest: str) -> str:
    name = host(url) if url else ""
    return f"tag:{name if NAME.fullmatch(name) else 'surveyor.invalid'},{_time(at)[:10]}:surveyor:{digest}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(min(max(at, 0.0), LATEST), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _text(text: str) -> str:
    return escape(NOT_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(NOT_XML.sub("\ufffd", text))

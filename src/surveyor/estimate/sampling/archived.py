"""What the pages of a survey said when they were last read, from its WARC files.

A page that asked not to be archived, or a survey that keeps no answers, leaves title and language alone: they stand in
the journal. Links are all that the page names, nofollow ones too, as the crawler spells them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from surveyor.estimate.sampling.page import Said, SampledPage
from surveyor.fetch.encodings import Unreadable, decoder_of
from surveyor.fetch.responses import joined
from surveyor.web.boundary import Failure, guarded
from surveyor.web.html import read_page
from surveyor.web.references import Addresses
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.outcome import Exchange, Visit
    from surveyor.store.directory import SurveyFolder

ROOM = 20_000_000  # bytes that a body may decode to; what follows is left out


def page_of(folder: SurveyFolder, url: str, visit: Visit) -> SampledPage:
    """Return a page as a visit found it; what it says is read when first asked for, from the archive if need be."""
    named = np.unique(np.concatenate([visit.links, visit.out_of_scope, visit.nofollow]))
    return SampledPage(url, int((named != visit.page).sum()), partial(_said, folder, visit))


def pages_said(folder: SurveyFolder) -> Iterator[SampledPage]:
    """Yield the pages that were read and are neither gone nor moved, by number; each is parsed when first asked."""
    for page, url, latest in folder.pages():
        visit = folder.journal.last_visit(page, "fetched") if latest and latest.kind == "blocked" else latest
        if visit is not None and visit.kind == "fetched":
            yield page_of(folder, url, visit)


def told(exchange: Exchange) -> Said:
    """Read an answer as it went over the wire; of a broken or endless body, what came before counts."""
    lines = [line.partition(b":") for line in exchange.response.split(b"\r\n")[1:] if line]
    headers = joined(tuple((name, value.strip()) for name, _, value in lines))
    body = _decoded(exchange.body, headers.get("content-encoding", ""))
    page = guarded(exchange.url, read_page, body, exchange.url, headers=headers, addresses=Addresses(normalise))
    if isinstance(page, Failure):
        return Said()
    return Said(page.title, page.language, page.text, tuple(link.url for link in page.links))


def _said(folder: SurveyFolder, visit: Visit) -> Said:
    if visit.exchange is not None:  # it was fetched just now
        return told(visit.exchange)
    if visit.warc is None:
        return Said(visit.title, visit.language)
    return told(folder.archive.read(visit.warc))


def _decoded(body: bytes, encoding: str) -> bytes:
    """Undo content encodings a piece at a time, so that what comes before a fault is there."""
    pieces: list[bytes] = []
    room, step = ROOM, 1 << 16
    try:
        decoder = decoder_of(encoding)
        if decoder is None:
            return body
        for start in range(0, len(body), step):
            pieces.append(decoder.feed(body[start : start + step], room))
            room -= len(pieces[-1])
            if room < 0:
                break
    except Unreadable:
        pass
    return b"".join(pieces)

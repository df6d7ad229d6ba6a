"""The main text of an archived page, without opening more of a survey than its journal and its archive."""

from __future__ import annotations

from pathlib import Path

from surveyor.errors import UsageError
from surveyor.fetch.bodies import decoded
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.parser import Parser
from surveyor.store.directory import SurveyFolder
from surveyor.web.boundary import Failure
from surveyor.web.page_text import PageText, require_library

LONGEST = 60_000  # characters


def text_of(folder: Path, page: int) -> str:
    """Return the main text of the latest visit that fetched a page; UsageError if there is none.

    The response is parsed in another process, as in a crawl: it may be hostile.
    """
    require_library()
    with SurveyFolder.open(folder, write=False) as survey:
        visit = survey.journal.last_visit(page, "fetched")
        if visit is None or visit.warc is None:
            raise UsageError("the response of this page is not archived", hint="crawl with the setting archive on")
        url = survey.journal.urls_between(page, page + 1)[0]
        body, headers, _ = decoded(survey.archive.read(visit.warc))

    async def read() -> PageText | Failure | None:
        parser = Parser()
        try:
            return await parser.page_text(url, headers, body, visit.language)
        finally:
            await parser.close()

    found = run_sync(read())
    if isinstance(found, Failure):
        raise UsageError(f"the text of this page cannot be read: {found.reason}", hint="the WARC files have it")
    if found is None or not found.text:
        raise UsageError("this page has no text", hint="its type may be another one than HTML")
    return found.text[:LONGEST]

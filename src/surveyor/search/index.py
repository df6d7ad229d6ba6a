"""Bring the index of a survey up to date: `update(survey)`.

The pages of an index are those whose latest result up to a position of the journal was a page. An update reads the
visits after the last position, extracts the texts of pages that are new or have changed, and removes those that are
gone. A page whose link texts have changed is written again from the texts that the index has. Progress is published
every `PUBLISHED` seconds, so a killed update has not lost more than that.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np

from surveyor.errors import UsageError
from surveyor.fetch.text_workers import TextWorkers
from surveyor.outcome import Visit
from surveyor.search.generation import Generation, clean, current, new_folder, publish, sync, updating
from surveyor.search.segment import Draft, Segment, Texts, merge
from surveyor.search.state import State, Values
from surveyor.search.words import fold, language_code, require_library
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.tabular import contexts_of
from surveyor.survey.survey import Survey
from surveyor.survey.texts import body_of
from surveyor.web.boundary import Failure
from surveyor.web.page_text import PageText
from surveyor.web.page_text import require_library as require_text_library

PATIENCE = 60.0  # seconds to wait for another process that builds the first index
PUBLISHED = 20.0  # seconds between two published states
MOST_TOKENS = 4_000_000  # of a segment that is not merged
MOST_SEGMENTS = 16
LARGEST = 20_000_000  # occurrences of a segment that is merged with others
READ = 256  # pages whose texts are read before they are added
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_MARKUP = re.compile(r"\\(?=\W)|\]\([^)]*\)|[\[*`]")


def terms_of(survey: Survey) -> list[str]:
    """Return what an index depends on beside the visits."""
    return [survey.journal.identity, "archived" if _is_archived(survey) else "not archived"]


def _is_archived(survey: Survey) -> bool:
    try:
        survey.archive  # noqa: B018  # raises if there is none
    except UsageError:
        return False
    return True


def update(survey: Survey, progress: ProgressCallback = silent) -> Generation:
    """Index what has changed in a survey; return the index."""
    require_library()
    survey.journal.refresh()
    terms = terms_of(survey)
    if terms[1] == "archived":
        require_text_library()
    position = survey.journal.position
    found = current(survey.folder, terms)
    if found is not None and found.about["complete"] and found.position == position:
        return found
    survey.refresh()  # its state covers at least this position
    with updating(survey.folder, 0.0 if found else PATIENCE) as place:
        found = current(survey.folder, terms)
        if found is not None and found.about["complete"] and found.position >= position:
            return found
        return _Update(survey, place, terms, found, progress).run()


@dataclass(slots=True)
class _Update:
    survey: Survey
    place: Path
    terms: list[str]
    old: Generation | None
    progress: ProgressCallback
    state: State = field(default_factory=State)
    segments: list[Path] = field(default_factory=list)
    opened: list[Segment] = field(default_factory=list)
    draft: Draft = field(default_factory=Draft)
    drafted: dict[int, tuple[float, int]] = field(default_factory=dict)  # page of the draft -> time, digest
    published: float = field(default_factory=time.monotonic)
    position: int = 0

    def run(self) -> Generation:
        """Index everything up to the present position of the journal."""
        clean(self.place, self.old)
        if self.old is not None:
            self.state = State.read(self.old.state)
            self.segments = self.old.segments
            self.opened = [Segment(path) for path in self.segments]
            self.position = self.old.position
        journal = self.survey.journal
        end, began = journal.position, self.position
        visited: dict[int, None] = {}
        for number, outcome in enumerate(islice(journal.outcomes(began), end - began), 1):
            visited[outcome.page] = None
            if number % 1000 == 0:
                self.progress("reading visits", number, end - began, "visits")
        changed = self._visits(visited, end)
        chosen, relinked = self.state.choose(self._canonical)
        anchors = self.state.texts_of(chosen, {*changed, *relinked.tolist()})
        self._add_new(changed, anchors)
        self._add_again(relinked, anchors)
        self._flush()
        self.state.pair, self.position = chosen, end
        self._merge()
        return self._publish(is_complete=True)

    def _canonical(self, pages: Values) -> Values:
        ids: Values = self.survey.state.urls.canonical(pages.astype(np.int32))
        return ids

    def _visits(self, visited: dict[int, None], end: int) -> dict[int, Visit]:
        """Take notice of the results of visited pages; return those to be read."""
        found, links = dict[int, Visit](), dict[int, list[tuple[int, str]]]()
        for number, page in enumerate(sorted(visited), 1):
            visit = self.survey.journal.last_result(page, before=end + 1)
            self.progress("reading visits", number, len(visited), "pages")
            if visit is None or visit.kind != "fetched":
                links[page] = []
                self.state.entries.pop(page, None)
                continue
            digest, entry = _content(visit), self.state.entries.get(page)
            links[page] = self._links(visit)
            if entry is not None and entry[3] == digest:
                self.state.entries[page] = (entry[0], entry[1], visit.fetched_at, digest)
            else:
                found[page] = visit
        self.state.set_links(links)
        return found

    def _links(self, visit: Visit) -> list[tuple[int, str]]:
        """Return targets and folded texts of the links of a page."""
        if not visit.contexts:
            return []
        contexts = contexts_of(self.survey.journal, visit)
        texts = ((target, " ".join(fold(context.text).split())) for target, context in contexts.items())
        return [(target, text) for target, text in texts if text]

    def _add_new(self, changed: dict[int, Visit], anchors: dict[int, list[str]]) -> None:
        """Add pages whose texts are read from their responses."""
        for number, (visit, text) in enumerate(self._read(changed), 1):
            self.progress("indexing", number, len(changed), "pages")
            page = visit.page
            language = language_code((text.language if text else "") or visit.language)
            url = self.survey.url(page)
            headings = tuple(headings_of(text.markdown)) if text else ()
            texts = Texts(
                *(page, url, language, visit.title, tuple(anchors.get(page, ()))),
                *(headings, text.text if text else "", url_words(url)),
            )
            self._add(texts, visit.fetched_at, _content(visit))

    def _read(self, changed: dict[int, Visit]) -> Iterator[tuple[Visit, PageText | None]]:
        """Yield each visit with its main text, if it has one."""
        if self.terms[1] != "archived" or not changed:
            yield from ((visit, None) for visit in changed.values())
            return
        bodies = ((visit, body_of(self.survey, visit)[0]) for visit in changed.values())
        with TextWorkers(count=None if len(changed) > READ else 1) as workers:
            for visit, answer in workers.map(bodies):
                yield visit, None if isinstance(answer, Failure) else answer

    def _add_again(self, relinked: Values, anchors: dict[int, list[str]]) -> None:
        """Add pages whose link texts have changed, from the texts that the index has."""
        for number, page in enumerate(relinked.tolist(), 1):
            self.progress("indexing link texts", number, len(relinked), "pages")
            entry = self.state.entries.get(page)
            if entry is None or page in self.drafted:
                continue
            segment, doc, fetched_at, digest = entry
            texts = self.opened[segment].texts(doc)
            wanted = tuple(anchors.get(page, ()))
            if texts.anchors != wanted:
                self._add(texts._replace(anchors=wanted), fetched_at, digest)

    def _add(self, texts: Texts, fetched_at: float, digest: int) -> None:
        self.drafted[texts.page] = fetched_at, digest
        self.draft.add(texts)
        is_late = time.monotonic() - self.published > PUBLISHED
        if self.draft.tokens > MOST_TOKENS or is_late:
            self._flush()
        if is_late:
            self._publish(is_complete=False)

    def _flush(self) -> None:
        """Write the draft as a segment."""
        if not self.draft.pages:
            return
        number, folder = len(self.segments), new_folder(self.place, "segment")
        self.draft.write(folder)
        sync(folder)
        self.segments.append(folder)
        self.opened.append(Segment(folder))
        for doc, page in enumerate(self.draft.pages):
            self.state.entries[page] = (number, doc, *self.drafted[page])
        self.draft, self.drafted = Draft(), {}

    def _merge(self) -> None:
        """Join small segments if there are many, and leave out pages that are no longer current."""
        live = self._live()
        kept = [int(one.sum()) for one in live]
        wanted = [n for n, one in enumerate(self.opened) if 2 * kept[n] < one.size]
        if len(self.segments) - len(wanted) > MOST_SEGMENTS or len(wanted) > MOST_SEGMENTS:
            small = [n for n, one in enumerate(self.opened) if one.place.size <= LARGEST]
            small.sort(key=lambda number: self.opened[number].place.size)
            wanted = sorted({*wanted, *small[: len(self.segments) - MOST_SEGMENTS // 2]})
        if not wanted:
            return
        others = [n for n in range(len(self.segments)) if n not in wanted]
        pages = {page: entry for page, entry in self.state.entries.items() if entry[0] in wanted}
        segments = [self.segments[n] for n in others]
        if pages:
            self.progress("merging", 0, 0, "")
            folder = new_folder(self.place, "segment")
            order = merge([(self.opened[n], live[n]) for n in wanted], folder)
            sync(folder)
            segments.append(folder)
            for doc, page in enumerate(order.tolist()):
                self.state.entries[page] = (-1, doc, *pages[page][2:])
        number_of = {old: new for new, old in enumerate(others)} | {-1: len(segments) - 1}
        self.state.entries = {page: (number_of[entry[0]], *entry[1:]) for page, entry in self.state.entries.items()}
        self.segments, self.opened = segments, [Segment(path) for path in segments]

    def _live(self) -> list[Values]:
        """Return for each segment which of its pages are current."""
        found = [np.zeros(one.size, np.bool_) for one in self.opened]
        for segment, doc, *_ in self.state.entries.values():
            found[segment][doc] = True
        return found

    def _publish(self, *, is_complete: bool) -> Generation:
        folder = new_folder(self.place, "state")
        self.state.write(folder, self.opened, groups=is_complete)
        about = {"terms": self.terms, "position": self.position, "complete": is_complete}
        done = publish(self.place, self.segments, folder, about)
        clean(self.place, done)
        self.published = time.monotonic()
        return done


def headings_of(markdown: str) -> list[str]:
    """Return the headings of a Markdown text, without their markup."""
    found, fence = [], ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            found.append(_MARKUP.sub("", heading[1]))
    return found


def url_words(url: str) -> str:
    """Return path and query of a URL as text.

    >>> url_words("https://a.example/guide/open%20tables.html?q=1")
    'guide open tables.html q 1'
    """
    parts = urlsplit(url)
    return " ".join(re.split(r"[/?&=+_-]+", unquote(f"{parts.path}?{parts.query}"))).strip()


def _content(visit: Visit) -> int:
    """Return a digest of what a page is indexed from."""
    fields = (visit.hash, visit.title, visit.language, visit.warc is None, visit.hash or visit.fetched_at)
    return int.from_bytes(hashlib.blake2b(repr(fields).encode("utf-8", "replace"), digest_size=8).digest(), "little")

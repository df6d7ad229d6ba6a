"""Pages with and without labels, from wherever they lie: a survey, files, folders, lists.

A *place* is a folder of HTML and text files, one such file, the URL of a page that a survey has read, or a list of
them, one a line (`#` begins a comment). A text file counts as a list if each line of it is a URL or names a file.

Labels are given by place or rule (`positive`, `negative`), by a rule that tells both, or by a table of two columns,
page and label (`1`, `yes`, `on`, `true` or `0`, `no`, `off`, `false`), separated by commas or tabs, with or without a
head. What is said of a page by its name counts more than any rule.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.errors import InputError, UsageError
from surveyor.estimate.sampling.page import Said, SampledPage
from surveyor.estimate.sampling.sample_pages import MAX_DECODED, archived_pages
from surveyor.estimate.sampling.topics import KINDS, Topic
from surveyor.web.html import MOST_TEXT, read_page
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.store.directory import SurveyFolder

HTML, TEXT = (".html", ".htm", ".xhtml"), (".txt", ".text", ".md")
YES, NO = ("1", "yes", "y", "on", "true", "positive"), ("0", "no", "n", "off", "false", "negative")
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
FETCH = "fetch it first: surveyor crawl --seeds LIST --depth 0 --out examples.survey, and give that survey"
Example = tuple[SampledPage, bool | None]


@dataclass(frozen=True, slots=True)
class Labels:
    """What says which pages are on topic."""

    urls: dict[str, bool]  # of pages of a survey
    files: dict[Path, bool]
    rules: list[tuple[Topic, bool]]  # of other pages; the first that holds counts
    others: bool | None = None  # pages of which nothing is said

    @classmethod
    def of(
        cls, positive: Sequence[str] = (), negative: Sequence[str] = (), label: str = "", *, others: bool | None = None
    ) -> Labels:
        """Gather labels from places and rules, and from a rule or a table that tells both."""
        made = cls({}, {}, [], others)
        for places, on in ((positive, True), (negative, False)):
            for place in places:
                if _is_rule(place):
                    made.rules.append((Topic.parse(place), on))
                    continue
                for found in places_in(place):
                    made._say(found, on=on)
        if label and Path(label).is_file():
            for found, on in _table(Path(label)):
                made._say(found, on=on)
        elif label:
            made.rules.extend([(Topic.parse(label), True), (Topic.parse("everything"), False)])
        return made

    def _say(self, place: str | Path, *, on: bool) -> None:
        known = self.files.setdefault(place, on) if isinstance(place, Path) else self.urls.setdefault(place, on)
        if known != on:
            raise UsageError(f"{place} is said to be on topic and off topic", hint="leave one of both out")

    def label(self, page: SampledPage) -> bool | None:
        """Return the label of a page that lies in a survey or was given without one."""
        said = self.files.get(Path(page.url)) if "://" not in page.url else self.urls.get(page.url)
        return said if said is not None else next((on for rule, on in self.rules if rule(page)), self.others)


def _is_rule(place: str) -> bool:
    """Say whether pages are named by a rule such as words:solar, and not by where they are."""
    kind, colon, rest = place.partition(":")
    return bool(colon) and kind in KINDS and not rest.startswith("//")


def examples(labels: Labels, folder: SurveyFolder | None = None, places: Sequence[str] = ()) -> Iterator[Example]:
    """Yield pages and their labels: those of a survey, those at places, those that labels name as files."""
    if labels.urls and folder is None:
        raise UsageError(f"{min(labels.urls)} is not on this machine", hint=FETCH)
    for path in dict.fromkeys([*_files(places), *labels.files]):
        page = file_page(path)
        yield page, labels.label(page)
    for page in () if folder is None else archived_pages(folder):
        yield page, labels.label(page)


def file_page(path: Path) -> SampledPage:
    """Return a file as a page, which is read when it is first asked; its name is its address."""
    return SampledPage(str(path), read=partial(_file_said, path))


def _file_said(path: Path) -> Said:
    kind = "text/html" if path.suffix.lower() in HTML else "text/plain"
    page = read_page(_content(path), "", content_type=kind)
    return Said(page.title, page.language, page.text[:MOST_TEXT])


def _files(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        for found in places_in(place):
            if not isinstance(found, Path):
                raise UsageError(f"{found} is not on this machine", hint=FETCH)
            yield found


def places_in(place: str, within: Path | None = None) -> Iterator[str | Path]:
    """Yield the files and URLs that a place stands for; names in a list are seen from its folder."""
    if "://" in place:
        url = normalise(place)
        if url is None:
            raise UsageError(f"{place!r} is not a URL that can be read", hint="it looks like https://example.org/")
        yield url
        return
    path = Path(place) if within is None else within / place
    if path.is_dir():
        found = sorted(one for one in path.rglob("*") if one.suffix.lower() in HTML + TEXT and one.is_file())
        if not found:
            raise InputError(f"{path} holds no pages", hint=f"pages are files that end in {', '.join(HTML + TEXT)}")
        yield from found
    elif not path.is_file():
        raise InputError(f"{path} is no file and no folder", hint="give pages as files, folders, lists or URLs")
    elif within is not None or path.suffix.lower() in HTML or not (lines := _list(path)):
        yield path
    else:
        for line in lines:
            yield from places_in(line, path.parent)


def _list(path: Path) -> list[str]:
    """Return the lines of a list; none if it is a text."""
    lines = [line.strip() for line in _text(path).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return lines if all(_URL.fullmatch(line) or _is_there(path.parent / line) for line in lines) else []


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long for a name
        return False


def _table(path: Path) -> Iterator[tuple[str | Path, bool]]:
    text = _text(path)
    separator = "\t" if "\t" in text.partition("\n")[0] else ","
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=separator), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        said = cells[1].lower() if len(cells) > 1 else ""
        if said not in YES + NO:
            if number == 1 and said and "://" not in cells[0]:  # a head
                continue
            hint = f"page and label, which is one of {', '.join(YES + NO)}"
            raise InputError(f"{path}:{number}: {said[:40]!r} is no label", hint=hint)
        for place in places_in(cells[0], path.parent):
            yield place, said in YES


def _text(path: Path) -> str:
    return _content(path).decode("utf-8-sig", "replace")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_DECODED)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", hint="check the file and its rights") from error

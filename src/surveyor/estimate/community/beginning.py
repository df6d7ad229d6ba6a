"""The survey of a community: begun with what another one has read, or gone on with.

The new survey starts with all pages that the other has read, since they cost nothing, the local ones first (`copied`).
Repeating the command goes on with it; a larger `extra` asks for more. The other survey is only read. An event
`community` in the journal keeps what it was begun with, and from what.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from surveyor.config import Settings
from surveyor.crawler.start import KEPT, honoured, notice, shortened
from surveyor.crawler.start import start as start_survey
from surveyor.crawler.strategies.rounds import PART
from surveyor.errors import UsageError
from surveyor.estimate.community.copied import Choice, Copy, Start, choose
from surveyor.estimate.community.local import Rule, digest_of
from surveyor.rank.expansion import SELECTORS, Select
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import damaged
from surveyor.store.layout import is_survey
from surveyor.store.manifest import Manifest

if TYPE_CHECKING:
    from surveyor.estimate.community.local import Given
    from surveyor.store.journal import Journal

EVENT = "community"
EXTRA, SELECT = "2n", "complement"
OWN = ("strategy", "until", "scope", "include", "depth")  # settings that a community has of itself
SPENDING = {"budget": "--budget", "budget_file": "--budget-file"}  # that it has only if asked for: `extra` is one
WORD = re.compile(r"(?P<times>\d+(?:\.\d+)?|\.\d+)?\s*\*?\s*n|(?P<pages>\d{1,3}(?:,\d{3})+|\d[\d_]*)", re.IGNORECASE)


def extra_pages(extra: str | int, local: int) -> int:
    """Return how many pages are meant: a number, or so many times the number of local pages.

    >>> extra_pages("2n", 150), extra_pages("0.5n", 15), extra_pages("1_500", 10), extra_pages(0, 10)
    (300, 8, 1500, 0)
    """
    match = WORD.fullmatch(str(extra).strip())
    if match is None or isinstance(extra, bool):
        raise UsageError(
            f"{str(extra)!r} is no number of extra pages",
            hint="give a number such as 1500, or times the number of local pages such as 2n; 0 estimates without any",
        )
    if match["pages"]:
        return int(re.sub("[_,]", "", match["pages"]))
    return math.ceil(round(float(match["times"] or 1) * local, 6))  # 1.1 times 100 are 110


@dataclass(frozen=True, slots=True)
class Terms:
    """What a community was begun with, as its journal keeps it."""

    base: str  # the name of the survey
    journal: str  # what names its journal
    position: int  # where that ended
    rule: str  # what makes a page local
    digest: str  # of the list of local pages, if it was one
    select: Select
    rounds: int  # in which all extra pages were to be read; 0 for rounds of 4 % of the local pages
    local: int  # pages: those with the first numbers
    start: int  # outcomes that were copied
    read: int  # of these, pages that count as read
    outside: int  # pages not read that they linked to

    def strategy(self, extra: int, batch: int = 0, still: float = 0.0) -> str:
        """Return the strategy that asks for so many pages, so many in a round; by default as many as rounds ask for."""
        batch = batch or max(1, math.ceil(extra / self.rounds if self.rounds else PART * self.local))
        told = f"rounds:select={self.select},local={self.local},start={self.start},batch={batch},extra={extra}"
        return f"{told},still={still!r}" if still else told


def terms_of(folder: SurveyFolder) -> Terms | None:
    """Return what a community was begun with; None if a survey is none."""
    told = next((event.detail for event in folder.journal.events(EVENT)), None)
    if told is None:
        return None
    try:
        return Terms(**{one.name: told[one.name] for one in fields(Terms)})
    except KeyError as error:
        raise damaged(folder.journal.path, f"an event that means nothing: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Community:
    """The survey of a community, open to be gone on with."""

    folder: SurveyFolder
    settings: Settings
    terms: Terms
    extra: int  # pages to be asked for, in all
    is_new: bool
    warnings: tuple[str, ...] = ()

    @property
    def asked(self) -> int:
        """How many extra pages were asked for so far, whatever came of it; those that were refused were not."""
        return int(self.folder.journal.asked(self.terms.start).size)

    def close(self) -> None:
        """Close its files."""
        self.folder.close()

    def __enter__(self) -> Community:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def begin(
    base: Path | str,
    local: Given | None = None,
    *,
    extra: str | int | None = None,
    select: str | None = None,
    rounds: int | None = None,
    still: float = 0.0,
    start: Start = "all",
    out: Path | str | None = None,
    settings: Settings | None = None,
    origins: Mapping[str, str] | None = None,
) -> Community:
    """Go on with the community in `out`, or begin one with what the survey `base` has read.

    Settings that are not given (their origin is "default") are those of the base. What is None is as usual, or as the
    community was begun with. Without `local` pages, `base` is a community itself, to be gone on with. It ends early
    when three rounds in a row move the ranks of the local pages by less than `still`.
    """
    wish = Wish(local, extra, select, rounds, still, start, *_own(settings or Settings(), origins or {}))
    with SurveyFolder.open(Path(base), write=False) as other:
        path = Path(base) if out is None else Path(out)
        if local is None and (out is not None or terms_of(other) is None):
            raise UsageError("nothing says which pages are local", hint="name them with --local, such as host:HOST")
        if local is not None and out is None:
            path = folder_for(Path(base), local)
        return _go_on(path, other, wish) if is_survey(path) else _make(path, other, wish)


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What the user asks for; None is as usual, or as it was before."""

    local: Given | None
    extra: str | int | None
    select: str | None
    rounds: int | None
    still: float
    start: Start
    settings: Settings
    origins: Mapping[str, str]


def folder_for(base: Path, local: Given) -> Path:
    """Return where the community of a survey lies, unless the user says so."""
    given = (local.partition(":")[2] or local) if isinstance(local, str) else digest_of(local)
    words = shortened(re.sub(r"[^\w.-]+", "-", given).strip("-."), given)
    return base.with_name(f"{base.name.removesuffix('.survey')}-community{'-' * bool(words)}{words}.survey")


def _own(settings: Settings, origins: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """Leave out settings that a community has of itself, wherever they come from."""
    mine: dict[str, Any] = {"scope": "any", "include": (), "depth": None}
    for name, flag in SPENDING.items():
        if origins.get(name, "default") not in (flag, "argument"):
            mine[name] = ""
    return replace(settings, **mine), {**origins, **dict.fromkeys([*OWN, *mine], EVENT)}


def _make(path: Path, other: SurveyFolder, wish: Wish) -> Community:
    """Begin a community, at once or not at all."""
    select, rounds, origins, manifest = wish.select or SELECT, wish.rounds, wish.origins, other.manifest
    if select not in SELECTORS:
        raise UsageError(f"no selection {select!r}", hint=f"choose {', '.join(SELECTORS)}")
    if rounds is not None and rounds < 1:
        raise UsageError(f"rounds must be at least 1, not {rounds}", hint="leave them out for rounds of 4 %")
    extra_pages(EXTRA if wish.extra is None else wish.extra, 1)  # refuses what is no number before all is read
    stored, ignored = honoured(manifest, [name for name in KEPT if origins.get(name, "default") != "default"])
    rng = manifest.rng if wish.settings.rng is None else wish.settings.rng
    choice = choose(other, "all" if wish.local is None else wish.local, wish.start)
    pages = extra_pages(EXTRA if wish.extra is None else wish.extra, choice.size)
    terms = _terms(other, choice, "" if wish.local is None else digest_of(wish.local), select, rounds or 0)
    settings = replace(
        wish.settings, **stored, rng=rng, strategy=terms.strategy(pages, still=wish.still), until=_goal(terms, pages)
    )
    told = {one.name: getattr(terms, one.name) for one in fields(Terms)}
    scope = {name: getattr(settings, name) for name in ("scope", "exclude", "follow_nofollow")}
    foreign = manifest.foreign_origins(scope)
    copy = Copy(other, choice, Manifest(seeds=manifest.seeds, rng=0, settings=scope, origins=foreign))

    def fill(journal: Journal) -> None:
        copy.into(journal, told, time.time())

    known = dict.fromkeys(stored, other.folder.name) | manifest.foreign_origins(stored)
    where = {**known, **{k: v for k, v in origins.items() if v != "default"}}
    folder, settings = start_survey(path, manifest.seeds, settings, where, fill=fill)
    found = terms_of(folder)
    missing = choice.local.missing
    warned = (f"{missing:,} of the pages that were to be local were not read in {other.folder.name}",) * bool(missing)
    warned += (notice(other.folder, ignored),) * bool(ignored)
    return Community(folder, settings, found or terms, pages, is_new=True, warnings=warned)


def _terms(other: SurveyFolder, choice: Choice, digest: str, select: str, rounds: int) -> Terms:
    return Terms(
        base=other.folder.name,
        journal=choice.journal,
        position=choice.position,
        rule=choice.local.rule,
        digest=digest,
        select=cast(Select, select),
        rounds=rounds,
        local=choice.size,
        start=int(choice.visits.size),
        read=choice.read,
        outside=0,  # counted when all is copied
    )


def _goal(terms: Terms, extra: int) -> str:
    return f"pages={terms.read + extra}"


def _go_on(path: Path, other: SurveyFolder, wish: Wish) -> Community:
    with SurveyFolder.open(path, write=False) as before:
        terms, now = terms_of(before), str(before.manifest.settings.get("strategy", ""))
        if terms is None:
            raise UsageError(f"{path} is a survey, but no community", hint="choose another folder with --into")
        asked = int(before.journal.asked(terms.start).size)
        _same(path, terms, wish, before.manifest)
    was = {name: int(number) for name, number in re.findall(r"(batch|extra)=(\d+)", now)}
    wanted = was.get("extra", 0) if wish.extra is None else extra_pages(wish.extra, terms.local)
    pages = max(wanted, asked)  # what was asked for cannot be taken back
    strategy = terms.strategy(pages, was.get("batch", 0), wish.still)
    settings = replace(wish.settings, strategy=strategy, until=_goal(terms, pages))
    folder, settings = start_survey(path, (), settings, wish.origins)
    warned = (*folder.notices, *_changes(path, other, terms))
    return Community(folder, settings, terms, pages, is_new=False, warnings=warned)


def _same(path: Path, terms: Terms, wish: Wish, before: Manifest) -> None:
    """Refuse to go on with another community than was begun."""
    rule = str(Rule.parse(wish.local)) if isinstance(wish.local, str) else None
    rounds = f"--rounds {terms.rounds}" if terms.rounds else "rounds of 4 %"
    damping = float(before.settings.get("damping", 0.85))
    for flag, now, then, told in (
        ("--local", rule, terms.rule, f"--local {terms.rule}"),
        ("--select", wish.select, terms.select, f"--select {terms.select}"),
        ("--rounds", wish.rounds, terms.rounds, rounds),
        ("--damping", _given(wish, "damping"), damping, f"--damping {damping:g}"),
    ):
        if now is not None and now != then:
            raise UsageError(f"{path} was begun with {told}", hint=f"leave {flag} out, or begin another with --into")
    if wish.local is not None and digest_of(wish.local) != terms.digest:
        raise UsageError(
            f"{path} was begun with another list of local pages", hint="give that list, or begin another with --into"
        )


def _given(wish: Wish, name: str) -> Any:
    """Return a setting if the user gave it."""
    return getattr(wish.settings, name) if wish.origins.get(name, "default") != "default" else None


def _changes(path: Path, other: SurveyFolder, terms: Terms) -> tuple[str, ...]:
    """Say whether the survey that it began with is no longer what it was."""
    journal = other.journal
    unchanged = (journal.identity, journal.position) == (terms.journal, terms.position)
    if unchanged or other.folder.resolve() == path.resolve():
        return ()
    same = journal.identity == terms.journal and journal.position > terms.position
    what = f"{journal.position - terms.position:,} more visits" if same else "another past"
    return (
        f"{other.folder.name} has {what} since {path.name} was begun, which does not know of it; "
        "begin anew with another --into",
    )

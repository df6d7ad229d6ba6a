"""The page that `surveyor community --explain` names: found among the local ones, before any work is done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.errors import UsageError
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from surveyor.arrays import IdArray
    from surveyor.cli.communities import Wish
    from surveyor.graph.names import Names
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.survey import Survey

ORIGIN = re.compile(r"https?://[^/?#]+")


def local_entry(pages: IdArray, name: Callable[[int], str], names: Names | None, text: str) -> int:
    """Find a local page by its name, by its path alone, or by its id as #3; return which of them it is."""
    from surveyor.cli.graph_source import ID

    found = _spelt(pages, names, text)
    if found is None and (ID.fullmatch(text) or (names is None and text.isdecimal())):
        found = _place(pages, int(text.removeprefix("#")))
    several = set() if found is None else {found}
    if found is None and text.startswith("/"):
        origins = {match[0] for page in pages.tolist() if (match := ORIGIN.match(name(page)))}
        several = {place for origin in origins if (place := _spelt(pages, names, origin + text)) is not None}
    if len(several) > 1:
        raise UsageError(f"{text} is the path of {len(several):,} local pages", hint="give the whole URL of one")
    if not several:
        raise UsageError(f"{text} is no local page", hint="give a name as the list shows it, or an id as #3")
    return several.pop()


def _spelt(pages: IdArray, names: Names | None, text: str) -> int | None:
    """Find a name as it is written, as the crawler spells it, or with the slash at its end that was left out."""
    from surveyor.web.urls import normalise

    for spelling in dict.fromkeys((text, normalise(text), f"{text}/", normalise(f"{text}/"))):
        page = None if names is None or spelling is None else names.find(spelling)
        if page is not None and (place := _place(pages, page)) is not None:
            return place
    return None


def _place(pages: IdArray, page: int) -> int | None:
    found = (pages == page).nonzero()[0]
    return int(found[0]) if found.size else None


def check_replayed(survey: Survey, rule: str, text: str) -> None:
    """Refuse a page that will not be local in a replay."""
    from surveyor.estimate.community.local import local_pages
    from surveyor.estimate.community.replayed import replayed

    told = replayed(survey)
    names, count = told.graph.names, told.graph.pages
    places = local_pages(rule, names, count, what="this survey", may_be_all=True).places
    local_entry(places[told.read[places]], told.graph.name, names, text)


def check_live(path: str, wish: Wish) -> None:
    """Refuse a page that will not be local, before anything is fetched or copied; what else is wrong is told later."""
    import numpy as np

    from surveyor.estimate.community.beginning import folder_for
    from surveyor.graph.names import Names
    from surveyor.store.directory import SurveyFolder

    if wish.explain is None:
        return
    base = Path(path)
    place = Path(wish.into) if wish.into else base if wish.local is None else folder_for(base, wish.local)
    begun = layout.is_survey(place)
    with SurveyFolder.open(place if begun else base, write=False) as folder:
        urls = _begun(folder) if begun else _chosen(folder, wish.local)
    if urls:
        local_entry(np.arange(len(urls), dtype=np.int32), urls.__getitem__, Names.of(urls), wish.explain)


def _begun(folder: SurveyFolder) -> Sequence[str]:
    """Return the local pages of a community: those with the first numbers."""
    from itertools import islice

    from surveyor.estimate.community.beginning import terms_of

    terms = terms_of(folder)
    return [] if terms is None else list(islice(folder.journal.urls(), terms.local))


def _chosen(base: SurveyFolder, rule: str | None) -> Sequence[str]:
    """Return the pages of a survey that will be local."""
    from surveyor.estimate.community.copied import choose

    if rule is None:
        return []
    choice = choose(base, rule, "local")
    return [choice.urls[page] for page in choice.pages[: choice.size].tolist()]

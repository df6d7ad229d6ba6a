"""Pages that `surveyor topic train` learns from and `surveyor topic test` asks about."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from surveyor.cli.output import Output
    from surveyor.estimate.sampling.training import LabelledPage

SHOWN = 3  # pages that a warning names


@dataclass(frozen=True, slots=True)
class Source:
    """Where pages come from, besides those that are named with their labels."""

    survey: str | None
    places: Sequence[str] = ()
    others: bool | None = None  # the label of pages of which nothing is said
    needs_text: bool = True


def gathered(
    output: Output, source: Source, positive: Sequence[str], negative: Sequence[str], label: str
) -> Iterator[LabelledPage]:
    """Yield pages of a survey and of files with their labels; warn of labels for pages that were not read."""
    from surveyor.errors import UsageError
    from surveyor.estimate.sampling.training import Labels, labelled_pages
    from surveyor.store.directory import SurveyFolder

    labels = Labels.of(positive, negative, label, default=None if negative else source.others)
    if labels.rules and source.survey is None and not source.places:
        raise UsageError(f"there are no pages to label by {labels.rules[0][0]}", hint="give a survey, or files")
    unread, pages = set(labels.urls), 0
    with ExitStack() as held:
        folder = None
        if source.survey is not None:
            folder = held.enter_context(SurveyFolder.open(Path(source.survey), write=False))
            if source.needs_text:
                folder.archive  # noqa: B018  # refuses a survey that keeps none
        for page, on in labelled_pages(labels, folder, source.places):
            unread.discard(page.url)
            pages += 1
            yield page, on
    if unread:
        named = ", ".join(sorted(unread)[:SHOWN]) + (", …" if len(unread) > SHOWN else "")
        told = f"{len(unread):,} of {len(labels.urls):,} pages with labels"
        output.warn(f"{told} were not read in {source.survey}: {named}")
    if not pages:
        raise UsageError(f"{source.survey} has read no page yet", hint=f"go on with it: surveyor {source.survey}")


def kept_in(survey: str | None, rule: str) -> str:
    """Return a rule in which a model that a survey keeps by name is named by its file."""
    kind, _, name = rule.partition(":")
    path = Path(survey or "") / layout.TOPICS / f"{name}.json"
    return f"model:{path}" if survey and kind == "model" and not Path(name).exists() and path.is_file() else rule

"""`surveyor topic train`: learn a topic from pages on it and pages off it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.estimate.sampling.classifier import Classifier, Kind

SAID = 12  # words for and against that are listed


@options.command(
    "train",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor topic train solar --survey energy.survey --label 'words:\"solar power\",photovoltaic'\n"
    "surveyor topic train solar.json --positive solar-pages --negative other-pages",
)
@click.argument("name", metavar="NAME|FILE")
@click.option("--survey", type=click.Path(), metavar="SURVEY", help="Learn from the pages that a survey has read.")
@click.option("--positive", multiple=True, metavar="PLACE|RULE",
              help="Pages on topic: a folder, a file, a list of files or URLs, a URL, a rule.")  # fmt: skip
@click.option("--negative", multiple=True, metavar="PLACE|RULE",
              help="Pages off topic.  [of a survey, all others]")  # fmt: skip
@click.option("--label", default="", metavar="RULE|FILE",
              help="What tells all pages apart: a rule, or a table of page and label.")  # fmt: skip
@click.option("--kind", type=click.Choice(("linear", "tree")), default="linear", show_default=True,
              help="Logistic regression, or a decision tree (C4.5-like).")  # fmt: skip
@click.option("--rng", type=options.Whole(0), default=7, show_default=True, metavar="N", help="Seed of chance.")
@click.option("--replace", is_flag=True, help="Write over a topic that exists.")
def command(
    output: Output,
    *,
    name: str,
    survey: str | None,
    positive: tuple[str, ...],
    negative: tuple[str, ...],
    label: str,
    kind: Kind,
    rng: int,
    replace: bool,
) -> None:
    """Train a topic and keep it as FILE, or under NAME in the survey.

    It learns from the words of pages: those of a survey that keeps what servers answered, labelled by a rule, a table
    or a list of URLs, or those in files. How good it is, is found on pages left out in turn (cross-validation).
    """
    from surveyor.cli.topics import Source, gathered
    from surveyor.errors import UsageError
    from surveyor.estimate.sampling.training import TrainingSet, check_installed, train_on

    check_installed()
    path = _place(name, survey, replace=replace)
    if not positive and not label:
        hint = "name pages on topic with --positive, or say by --label RULE which they are"
        raise UsageError("nothing says which pages are on topic", hint=hint)
    with output.progress() as progress:
        training_set = TrainingSet(rng)
        source = Source(survey, others=False if survey else None)
        for page, on in gathered(output, source, positive, negative, label):
            if on is not None:
                training_set.add(page, label=on)
                progress("reading", sum(training_set.distinct.values()), 0, "page")
        model = train_on(training_set, kind=kind, rng=rng, progress=progress)
    model.save(path)
    _show(output, model, path, survey)


def _place(name: str, survey: str | None, *, replace: bool) -> Path:
    from surveyor.errors import UsageError

    path = Path(name)
    if survey is not None and path.name == name and not path.suffix:
        path = Path(survey) / layout.TOPICS / f"{name}.json"
    elif path.suffix != ".json":
        path = path.with_name(f"{path.name}.json")
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already", hint="choose another name, or write over it with --replace")
    return path


def _show(output: Output, model: Classifier, path: Path, survey: str | None) -> None:
    from surveyor.report.numbers import count
    from surveyor.report.topics import counts_line, quality_table

    assert model.quality is not None  # noqa: S101  # it was just trained
    trained, (speaking, against) = model.trained, model.top_terms(SAID)
    output.object("topic train", {
        "topic": str(path), "kind": model.kind, "trained": dict(trained), "terms": len(model.terms),
        "quality": model.quality.to_dict(), "for": speaking, "against": against, "digest": model.digest,
    })  # fmt: skip
    output.table(quality_table(model.quality))
    output.line()
    output.line(counts_line(model.quality))
    output.line()
    output.facts({
        "kept as": str(path),
        "pages": f"{count(trained['positive'])} on topic, {count(trained['negative'])} others",
        "words": count(len(model.terms)),
        "for": ", ".join(speaking) or "none",
        "against": ", ".join(against) or "none",
    })  # fmt: skip
    for note in notes(trained):
        output.say(f"note: {note}")
    output.next_steps({
        "try it": ["surveyor", "topic", "test", f"model:{path}", *([survey] if survey else ["PAGES"])],
        "sample it": ["surveyor", "sample", survey or "URL", "--topic", f"model:{path}"],
    })  # fmt: skip


def notes(told: Mapping[str, Any]) -> list[str]:
    """Say which pages were left out."""
    from surveyor.report.numbers import counted

    found = []
    if told["duplicates"]:
        found.append(f"{counted(told['duplicates'], 'page')} left out that say what another one says")
    if told["empty"]:
        found.append(f"{counted(told['empty'], 'page')} left out that say nothing")
    for side, words in (("positive", "on topic"), ("negative", "others")):
        if told[f"distinct_{side}"] > told[side]:
            found.append(f"{counted(told[side], 'page')} drawn at random from {told[f'distinct_{side}']:,} {words}")
    return found

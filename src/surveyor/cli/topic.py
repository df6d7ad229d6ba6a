"""`surveyor topic train` and `surveyor topic test`: train a topic classifier, and test a topic on labelled pages."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from surveyor.cli.output import Output
    from surveyor.crawler.topics.classifier import Classifier, ConfusionMatrix
    from surveyor.crawler.topics.rules import Topic
    from surveyor.estimate.sampling.training import LabelledPage
    from surveyor.report.tables import Table

Row = dict[str, Any]
TOP_TERMS = 12  # terms listed for and against a topic
NAMED_URLS = 3  # URLs named in a warning
MEASURES = {
    "precision": "share of pages predicted on topic that are on topic",
    "recall": "share of pages on topic that are predicted on topic",
    "f1": "harmonic mean of precision and recall",
    "accuracy": "share of correct predictions",
}
PAGE_KEYS = ("url", "on_topic", "label", "title")
labels = options.stacked(
    options.many(
        "--positive",
        "PLACE|RULE",
        "Pages on topic: a folder, a file, a list of files or URLs, a URL, or a rule. Repeatable.",
    ),
    options.many("--negative", "PLACE|RULE", "Pages off topic. Repeatable."),
    click.option(
        "--label",
        default="",
        show_default=False,
        metavar="RULE|FILE",
        help="Labels of all pages: a rule, or a table of page and label.",
    ),
)


@dataclass(frozen=True, slots=True)
class PageSource:
    """Pages of a survey and of files, and the labels given for them."""

    survey: str | None
    files: Sequence[str]
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    label: str
    default: bool | None = None  # label of pages without one
    needs_text: bool = True

    def pages(self, output: Output) -> Iterator[LabelledPage]:
        """Yield the pages with their labels; warn about labels of pages that the survey has not fetched."""
        from surveyor.errors import UsageError
        from surveyor.estimate.sampling.training import Labels, labelled_pages
        from surveyor.store.directory import SurveyFolder

        all_labels = Labels.of(
            self.positive, self.negative, self.label, default=None if self.negative else self.default
        )
        if all_labels.rules and self.survey is None and not self.files:
            raise UsageError(f"no pages to label by {all_labels.rules[0][0]}", hint="give a survey, or files")
        unknown, count = set(all_labels.urls), 0
        with ExitStack() as stack:
            folder = None
            if self.survey is not None:
                folder = stack.enter_context(SurveyFolder.open(Path(self.survey), write=False))
                if self.needs_text:
                    folder.archive  # noqa: B018  # raises if the survey has no archive
            for page, label in labelled_pages(all_labels, folder, self.files):
                unknown.discard(page.url)
                count += 1
                yield page, label
        if unknown:
            urls = ", ".join(sorted(unknown)[:NAMED_URLS]) + (", …" if len(unknown) > NAMED_URLS else "")
            output.warn(
                f"{len(unknown):,} of {len(all_labels.urls):,} labelled URLs are not fetched in {self.survey}: {urls}"
            )
        if not count:
            raise UsageError(f"{self.survey} has no fetched page", hint=f"resume the crawl: surveyor {self.survey}")


def _names_file(text: str) -> bool:
    """Return whether a topic is the name of a model file, not a rule or a phrase; the file may not exist."""
    from surveyor.crawler.topics.rules import RULES
    from surveyor.errors import UsageError

    if not text.endswith((".json", ".topic")) or "://" in text or text.partition(":")[0].strip().lower() in RULES:
        return False
    if not Path(text).exists():
        raise UsageError(
            f"the topic {text} does not exist",
            hint=f"check its name, or train it with `surveyor topic train`; for the phrase, write word:{text}",
        )
    return True


def resolve_model(survey: str | None, rule: str) -> str:
    """Replace the name of a classifier stored in a survey by its file: `model:NAME` becomes `model:FILE`."""
    kind, _, name = rule.partition(":")
    path = Path(survey or "") / layout.TOPICS / f"{name}.json"
    is_stored = survey and kind == "model" and not Path(name).exists() and path.is_file()
    return f"model:{path}" if is_stored else rule


@options.command(
    "train",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor topic train solar --survey energy.survey --label 'words:\"solar power\",photovoltaic'\n"
    "surveyor topic train solar.json --positive solar-pages --negative other-pages",
)
@click.argument("name", metavar="NAME|FILE")
@options.path("--survey", "SURVEY", "Train on the fetched pages of a survey.")
@labels
@options.choice(
    "--kind",
    ("linear", "tree"),
    "Classifier: linear (logistic regression) or tree (decision tree, C4.5-like).",
    default="linear",
)
@options.whole("--rng", 0, "N", "Random seed.", default=7)
@options.flag("--replace", "Replace an existing topic.")
def train(output: Output, **parameters: Any) -> None:
    """Train a topic classifier, and save it as FILE or under NAME in the survey.

    It learns from the words of labelled pages: those of a survey with an archive, labelled by a rule, a table or a list
    of URLs (without --negative, all other pages are off topic), or those in files. Quality is estimated by
    cross-validation.
    """
    from surveyor.errors import UsageError
    from surveyor.estimate.sampling.training import TrainingSet, check_installed, train_on

    check_installed()
    survey = parameters["survey"]
    path = _model_path(parameters["name"], survey, replace=parameters["replace"])
    if not parameters["positive"] and not parameters["label"]:
        raise UsageError("no page is labelled on topic", hint="use --positive PLACE or --label RULE")
    source = PageSource(
        survey,
        (),
        parameters["positive"],
        parameters["negative"],
        parameters["label"],
        default=False if survey else None,
    )
    with output.progress() as progress:
        training_set = TrainingSet(parameters["rng"])
        for page, label in source.pages(output):
            if label is not None:
                training_set.add(page, label=label)
                progress("reading", sum(training_set.distinct.values()), 0, "page")
        if unreadable := training_set.unreadable:
            names = ", ".join(unreadable[:NAMED_URLS]) + (", …" if len(unreadable) > NAMED_URLS else "")
            output.warn(f"{len(unreadable):,} pages were left out, as they are no text or not archived: {names}")
        model = train_on(training_set, kind=parameters["kind"], rng=parameters["rng"], progress=progress)
    model.save(path)
    _print_model(output, model, path, survey)


def _model_path(name: str, survey: str | None, *, replace: bool) -> Path:
    from surveyor.errors import UsageError

    path = Path(name)
    if survey is not None and path.name == name and not path.suffix:
        path = Path(survey) / layout.TOPICS / f"{name}.json"
    elif path.suffix != ".json":
        path = path.with_name(f"{path.name}.json")
    if path.exists() and not replace:
        raise UsageError(f"{path} already exists", hint="choose another name, or use --replace")
    return path


def _print_model(output: Output, model: Classifier, path: Path, survey: str | None) -> None:
    from surveyor.report.numbers import count

    assert model.quality is not None  # noqa: S101  # it was just trained
    trained, (positive, negative) = model.trained, model.top_terms(TOP_TERMS)
    fields = {
        "topic": str(path),
        "kind": model.kind,
        "trained": dict(trained),
        "terms": len(model.terms),
        "quality": model.quality.to_dict(),
        "positive_terms": positive,
        "negative_terms": negative,
        "digest": model.digest,
    }
    output.object("topic train", fields)
    output.table(quality_table(model.quality))
    output.line()
    output.line(confusion_line(model.quality))
    output.line()
    facts = {
        "saved as": str(path),
        "pages": f"{count(trained['positive'])} on topic, {count(trained['negative'])} off topic",
        "terms": count(len(model.terms)),
        "positive terms": ", ".join(positive) or "none",
        "negative terms": ", ".join(negative) or "none",
    }
    output.facts(facts)
    for note in training_notes(trained):
        output.info(f"note: {note}")
    steps = {
        "test it": ["surveyor", "topic", "test", f"model:{path}", *([survey] if survey else ["PAGES"])],
        "sample it": ["surveyor", "sample", survey or "URL", "--topic", f"model:{path}"],
    }
    output.next_steps(steps)


def training_notes(trained: Mapping[str, Any]) -> list[str]:
    """Return which pages were left out of the training."""
    from surveyor.report.numbers import counted

    notes = []
    if trained["duplicates"]:
        notes.append(f"{counted(trained['duplicates'], 'page')} left out as duplicates")
    if trained["empty"]:
        notes.append(f"{counted(trained['empty'], 'page')} left out without text")
    for side, name in (("positive", "on topic"), ("negative", "off topic")):
        if trained[f"distinct_{side}"] > trained[side]:
            drawn = counted(trained[side], "page")
            notes.append(f"{drawn} drawn at random from {trained[f'distinct_{side}']:,} {name}")
    return notes


@options.command(
    "test",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor topic test '\"solar power\"' energy.survey\n"
    "surveyor topic test solar.json energy.survey --label checked.csv",
)
@click.argument("topic", metavar="MODEL|RULE")
@click.argument("pages", nargs=-1, metavar="[SURVEY|PAGES]...")
@labels
@options.top(5, "Pages on topic and off topic to list.")
def test(output: Output, **parameters: Any) -> None:
    """Count the pages on topic, list some of them, and compare with labels if there are any.

    Pages are the fetched pages of a survey, or HTML and text files, folders and lists of them. Rules are those of
    `surveyor sample --topic`. With --csv, all pages are listed.
    """
    from surveyor.cli.graph_source import is_survey
    from surveyor.crawler.topics.classifier import ConfusionMatrix
    from surveyor.crawler.topics.rules import Topic
    from surveyor.errors import UsageError

    places, name = parameters["pages"], parameters["topic"]
    surveys = [place for place in places if is_survey(place)]
    survey = surveys[0] if surveys else None
    rule = Topic.parse(resolve_model(survey, f"model:{name}" if _names_file(name) else name))
    if len(surveys) > 1:
        raise UsageError(f"at most one survey may be given, got {len(surveys)}", hint="test them one by one")
    if not places and not parameters["positive"] and not parameters["negative"]:
        raise UsageError("no pages were given", hint="name a survey, or HTML and text files, folders or lists of them")
    files = [place for place in places if place not in surveys]
    source = PageSource(
        survey, files, parameters["positive"], parameters["negative"], parameters["label"], needs_text=not rule.url_only
    )
    rows: list[Row] = []
    with output.progress() as progress:
        for page, label in source.pages(output):
            rows.append({"url": page.url, "on_topic": rule(page), "label": label, "title": page.title})
            progress("reading", len(rows), 0, "page")
    known = [row for row in rows if row["label"] is not None]
    quality = ConfusionMatrix.of([row["label"] for row in known], [row["on_topic"] for row in known]) if known else None
    _print_test(output, rule, rows, quality, parameters["top"])
    if any(row["on_topic"] for row in rows):
        output.next_steps({"sample it": ["surveyor", "sample", survey or "URL", "--topic", rule.text]})
    else:
        output.warn("no page is on topic, so a sample would find nothing: use other words, or train a model")


def _print_test(output: Output, rule: Topic, rows: list[Row], quality: ConfusionMatrix | None, top: int) -> None:
    from surveyor.report.numbers import counted, percent

    positive = [row for row in rows if row["on_topic"]]
    shown = [*positive[:top], *[row for row in rows if not row["on_topic"]][:top]]
    fields = {
        "topic": rule.text,
        "pages": len(rows),
        "on_topic": len(positive),
        "quality": None if quality is None else quality.to_dict(),
        "examples": shown,
    }
    output.object("topic test", fields)
    if output.mode == "csv":
        output.table(pages_table(rows))
        return
    share = percent(len(positive) / len(rows))
    output.line(f"{len(positive):,} of {counted(len(rows), 'page')} ({share}) match {rule.text}")
    output.line()
    output.table(pages_table(shown))
    if quality is not None:
        output.line()
        output.table(quality_table(quality))
        output.line()
        output.line(confusion_line(quality))


def quality_table(quality: ConfusionMatrix) -> Table:
    """Return precision, recall, F1 and accuracy with their intervals."""
    from surveyor.report.numbers import share_at_least, share_at_most
    from surveyor.report.tables import Table

    cells, records = [], []
    for name, meaning in MEASURES.items():
        measure = getattr(quality, name)
        value = "unknown" if measure.value is None else f"{100 * measure.value:.1f} %"
        interval = "" if measure.value is None else f"{share_at_least(measure.low)} - {share_at_most(measure.high)}"
        cells.append((value, interval, "F1" if name == "f1" else name, meaning))
        records.append((name, *measure))
    return Table(("share", "95 % interval", "", "meaning"), cells, ("measure", "value", "low", "high"), records, left=2)


def confusion_line(quality: ConfusionMatrix) -> str:
    """Return the confusion matrix as one line."""
    text = (
        f"on topic: {quality.true_positives:,} found, {quality.false_negatives:,} missed; "
        f"off topic: {quality.true_negatives:,} rejected, {quality.false_positives:,} accepted"
    )
    return f"{text} ({quality.folds}-fold cross-validation)" if quality.folds else text


def pages_table(rows: Sequence[Row]) -> Table:
    """Return pages with prediction and label."""
    from surveyor.report.tables import Table

    words = {True: "on", False: "off", None: ""}
    has_labels = any(row["label"] is not None for row in rows)
    cells = [
        (words[row["on_topic"]], *([words[row["label"]]] if has_labels else []), row["url"], row["title"][:60])
        for row in rows
    ]
    titles = ("topic", *(["label"] if has_labels else []), "page", "title")
    return Table(titles, cells, PAGE_KEYS, [[row[key] for key in PAGE_KEYS] for row in rows], left=2)

"""`surveyor topic test`: which pages a topic means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.estimate.sampling.classifier import ConfusionMatrix
    from surveyor.estimate.sampling.topics import Topic

Row = dict[str, Any]


@options.command(
    "test",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor topic test '\"solar power\"' energy.survey\n"
    "surveyor topic test solar.json energy.survey --label checked.csv",
)
@click.argument("topic", metavar="MODEL|RULE")
@click.argument("pages", nargs=-1, metavar="[SURVEY|PAGES]...")
@click.option("--positive", multiple=True, metavar="PLACE|RULE", help="Pages that are on topic, to compare with.")
@click.option("--negative", multiple=True, metavar="PLACE|RULE", help="Pages that are not.")
@click.option("--label", default="", metavar="RULE|FILE",
              help="What says which pages truly are on topic: a rule, or a table of page and label.")  # fmt: skip
@options.top(5, "Pages of each kind to list.")
def command(
    output: Output,
    *,
    topic: str,
    pages: tuple[str, ...],
    positive: tuple[str, ...],
    negative: tuple[str, ...],
    label: str,
    top: int,
) -> None:
    """Say how many pages are on topic, show some, and compare with labels if there are any.

    Pages are those that a survey has read, or HTML and text files, folders of them and lists. Rules are as in
    `surveyor sample --topic`. With --csv, all pages are listed.
    """
    from surveyor.cli.ranked import is_survey
    from surveyor.cli.topics import Source, gathered, kept_in
    from surveyor.errors import UsageError
    from surveyor.estimate.sampling.classifier import ConfusionMatrix
    from surveyor.estimate.sampling.topics import Topic

    surveys = [place for place in pages if is_survey(place)]
    named = f"model:{topic}" if topic.endswith(".json") and Path(topic).exists() else topic
    rule = Topic.parse(kept_in(next(iter(surveys), None), named))
    if len(surveys) > 1:
        raise UsageError("there are two surveys", hint="test one after the other")
    if not pages and not positive and not negative:
        raise UsageError("no pages are given", hint="name a survey, or HTML and text files, folders or lists of them")
    files = [place for place in pages if place not in surveys]
    rows: list[Row] = []
    with output.progress() as progress:
        source = Source(surveys[0] if surveys else None, files, needs_text=not rule.url_only)
        for page, on in gathered(output, source, positive, negative, label):
            rows.append({"url": page.url, "on_topic": rule(page), "label": on, "title": page.title})
            progress("reading", len(rows), 0, "page")
    known = [row for row in rows if row["label"] is not None]
    quality = ConfusionMatrix.of([row["label"] for row in known], [row["on_topic"] for row in known]) if known else None
    _show(output, rule, rows, quality, top, surveys[0] if surveys else None)


def _show(
    output: Output, rule: Topic, rows: list[Row], quality: ConfusionMatrix | None, top: int, survey: str | None
) -> None:
    from surveyor.report.numbers import counted, percent
    from surveyor.report.topics import counts_line, pages_table, quality_table

    found = [row for row in rows if row["on_topic"]]
    shown = [*found[:top], *[row for row in rows if not row["on_topic"]][:top]]
    output.object("topic test", {
        "topic": rule.text, "pages": len(rows), "on_topic": len(found),
        "quality": None if quality is None else quality.to_dict(), "examples": shown,
    })  # fmt: skip
    if output.mode == "csv":
        output.table(pages_table(rows))
        return
    output.line(f"{len(found):,} of {counted(len(rows), 'page')} ({percent(len(found) / len(rows))}) by {rule.text}")
    output.line()
    output.table(pages_table(shown))
    if quality is not None:
        output.line()
        output.table(quality_table(quality))
        output.line()
        output.line(counts_line(quality))
    if not found:
        output.warn("no page is on topic: a sample would find nothing to walk on; try other words, or train a model")
    else:
        output.next_steps({"sample it": ["surveyor", "sample", survey or "URL", "--topic", rule.text]})

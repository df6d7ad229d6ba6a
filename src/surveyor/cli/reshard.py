"""`surveyor cluster reshard`: divide a survey into another number of shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command("reshard")
@click.argument("survey", type=click.Path())
@options.whole("--shards", 0, "K", "New number of shards; 0 joins them into a survey of one process.", required=True)
def command(output: Output, *, survey: str, shards: int) -> int:
    """Divide SURVEY into another number of shards while no crawl is running.

    Every visit is kept and goes to the shard of its page; the mass starts from the seeds again, which takes no request.
    A survey of one process gets shards, and a lost shard is built again from the visits that were copied from it.
    """
    from surveyor.crawler.shards.description import resume_words
    from surveyor.crawler.shards.prepare import reshard
    from surveyor.report.numbers import counted
    from surveyor.store.directory import SurveyFolder

    path = Path(survey)
    with SurveyFolder.open(path) as folder:
        was = reshard(folder, shards)
        output.warn(*folder.notices)
        visits = folder.journal.position
    output.object("reshard", {"survey": survey, "shards": shards, "shards_before": was, "visits": visits})
    now = counted(shards, "shard") if shards else "one survey without shards"
    output.line(f"{survey}: {counted(visits, 'visit')} in {now}, {was} before")
    output.next_steps({"resume": resume_words(survey) if shards else ["surveyor", "crawl", survey]})
    return 0

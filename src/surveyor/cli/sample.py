"""`surveyor sample`: random walks over a topic, and what they tell of its pages, with intervals."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.cli.output import Output
    from surveyor.cli.sample_wish import Wish
    from surveyor.cli.samples import Found, Told

#: Names of what there is to choose from, kept here so that help needs no import; a test compares them.
OURS = ("trial", "mixture", "hard", "nonbacktracking", "webwalker")
PAPER = ("hard-paper", "neighbourhood-paper", "trial-paper")
BY = ("domain", "host", "tld", "language", "out_degree")
NUMBERS = ("out_degree", "log_out_degree", "degree", "log_degree", "topic_link_share")
#: Settings of a crawl that hold where pages are fetched.
FETCHING = (
    "contact", "scope", "include", "exclude", "avoid", "delay", "domain_delay", "max_delay", "max_wait", "backoff",
    "concurrency", "allow", "archive", "follow_nofollow", "timeout", "max_bytes", "budget", "budget_file", "proxy",
    "ca_file",
)  # fmt: skip


@options.command(
    "sample",
    table=True,
    epilog=f"Methods whose law is known: {', '.join(OURS)}; kept as the paper has them: {', '.join(PAPER)}.\n\n"
    "\b\nsurveyor sample web.graph --topic tld:uk --share url:/blog/ --by domain\n"
    'surveyor sample https://solar.example/ --topic "solar power" --until ess=400,fetches=2000',
)
@click.argument("where", nargs=-1, metavar="URL...|SURVEY|GRAPH")
@click.option("--topic", metavar="RULE", required=True,
              help='Which pages: "solar power", words:a,b, all:a,b, model:FILE, host:, domain:, tld:, prefix:, '
              "url:REGEX, not:RULE, or everything.")  # fmt: skip
@click.option("--method", type=click.Choice((*OURS, *PAPER)), metavar="NAME", help="How to walk; see below.  [trial]")
@click.option("--until", multiple=True, metavar="RULE",
              help="End then: ess=400, width=3%, fetches=2000, steps=10000. Repeat: whichever comes first.  "
              "[ess=400; live, also fetches=5000]")  # fmt: skip
@click.option("--walks", type=options.Whole(1), metavar="N", help="Walks side by side.  [8]")
@click.option("--share", multiple=True, metavar="RULE", help="Estimate the share of pages with this; repeat for more.")
@click.option("--mean", multiple=True, type=click.Choice(NUMBERS), metavar="NAME",
              help=f"Estimate a mean: {', '.join(NUMBERS)}; repeat for more.")  # fmt: skip
@click.option("--by", multiple=True, type=click.Choice(BY), metavar="NAME",
              help=f"Estimate shares by {', '.join(BY)}; repeat for more.")  # fmt: skip
@click.option("--of", metavar="RULE", help="What --until is about, a rule or a number.  [each --share and --mean]")
@click.option(
    "--size", is_flag=True, help="Estimate how many pages the topic has, from pages that walks have in common."
)
@click.option("--recall", type=click.Path(), metavar="FILE|SURVEY",
              help="Estimate how much of the topic a list of URLs or a survey holds.")  # fmt: skip
@click.option("--draws", type=options.Whole(1), metavar="K", help="Draw so many pages, each as likely as any other.")
@click.option("--in-links", multiple=True, type=click.Path(), metavar="FILE|GRAPH|SURVEY",
              help="Who links to a page, known from elsewhere; repeat for more. In a graph, which share of the "
              "in-links walks know, such as 30%.")  # fmt: skip
@click.option("--start", multiple=True, metavar="PAGE",
              help="Of a graph or survey, where walks begin; repeat for more.  [pages on topic by chance]")  # fmt: skip
@click.option("--seeds", "lists", multiple=True, metavar="PLACE",
              help="Begin at the pages of a list, too: a file or URL with one URL a line.")  # fmt: skip
@click.option(
    "--reach", type=options.Whole(1), metavar="N", help="Steps off topic, or draws, at most.  [by the method]"
)
@click.option("--window", type=options.Whole(0), metavar="N",
              help="Steps in which no host may have more than half; 0 for any.  [100 live for webwalker or "
              "everything, else 0]")  # fmt: skip
@click.option("--rng", type=options.Whole(0), metavar="N", help="Seed of all chance.  [7]")
@click.option("--out", type=click.Path(), metavar="DIR", help="Folder for pages that are fetched.  [by seed and topic]")
@click.option("--pages", type=click.Path(), metavar="FILE", help="Write sampled pages with weights: .csv, .parquet.")
@click.option("--plots", type=click.Path(), metavar="DIR", help="Draw curves into a folder (SVG).")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write all of it as one HTML file.")
@settings.some_options(*FETCHING)
def command(output: Output, *, where: Sequence[str], pages: str | None, plots: str | None, report: str | None,
            **asked: Any) -> int:  # fmt: skip
    """Sample the pages on a topic by random walks, and estimate what holds for all of them.

    Walks follow links forth and back, and weights make every page of the topic count alike. From URLs pages are
    fetched, politely, into a survey of their own, and the same command goes on with it; in a survey or a graph nothing
    is fetched. The exit code is 3 if the goal was not reached, or something that was asked for cannot be told.
    """
    from surveyor.cli import sample_files, sample_wish, samples
    from surveyor.cli.topics import kept_in
    from surveyor.report.samples import ending

    wish = sample_wish.Wish(tuple(where), **{name: asked.pop(name) for name in sample_wish.ASKED})
    if wish.place == "survey":
        wish = replace(wish, topic=kept_in(wish.where[0], wish.topic))
    given = settings.given(asked)
    sample_wish.check(wish, given)
    sample_files.check(pages=pages, plots=plots, report=report, recall=wish.recall)
    held = samples.held(wish.recall)
    found = samples.found(output, wish, given)
    if isinstance(found, samples.Stopped):
        output.say(f"Stopped. {found.remark}.")
        output.next_steps({"go on": ["surveyor", *(click.get_current_context().obj or ())]})
        return found.code
    told = samples.told(found.sample, wish, held)
    _show(output, found, told)
    for warning in (*found.sample.notes, *told.failed):
        output.warn(warning)
    if not found.sample.reached:
        output.warn(f"the goal, {wish.goal}, was not reached: {ending(found.sample)}")
    sample_files.keep(output, found, told, pages=pages, plots=plots, report=report)
    code = samples.code(found.sample, told)
    output.next_steps(_steps(found, wish, code, pages=pages, report=report))
    return code


def _show(output: Output, found: Found, told: Told) -> None:
    """Print what was walked, what it tells, and how far to trust it."""
    from surveyor.report import samples as words

    sample = found.sample
    output.object("sample", {"source": found.source, **told.fields(sample)})
    if output.mode == "csv":
        numbers = words.long_table(told.statistics, told.breakdowns)
        output.table(numbers if told.draws is None else words.draws_table(told.draws))
        return
    _facts(output, words.facts(sample))
    if told.statistics:
        output.line()
        output.table(words.table(told.statistics))
    for one in told.breakdowns:
        output.line()
        output.table(words.categories_table(one, words.SHOWN))
        if (more := len(one.found.labels) - words.SHOWN) > 0:
            output.line(f"  and {more:,} more; --csv and --json have all of them")
    if told.draws:
        output.line()
        output.table(words.draws_table(told.draws))
    if not told.statistics and not told.breakdowns:
        return
    output.line()
    for line in words.meaning(sample):
        for part in wrap(line, output.width, subsequent_indent="  ") if output.width else [line]:
            output.line(part)


def _facts(output: Output, facts: dict[str, str]) -> None:
    """Print names and values in two columns, values folded to the terminal."""
    wide = max(map(len, facts)) + 2
    room = None if output.width is None else max(output.width - wide, 20)
    for name, value in facts.items():
        first, *more = wrap(value, room) if room else [value]
        output.line(f"{name:<{wide}}{first}")
        for part in more:
            output.line(" " * wide + part)


def _steps(found: Found, wish: Wish, code: int, *, pages: str | None, report: str | None) -> dict[str, list[str]]:
    """Suggest what to ask next."""
    from surveyor.cli.sample_wish import BUDGETS, longer

    words = click.get_current_context().obj or ()
    steps: dict[str, list[str]] = {}
    if code and found.sample.ending in BUDGETS and (more := longer(words, wish)):
        steps["walk on"] = ["surveyor", *more]
    if not wish.share:
        steps["how many are …?"] = ["surveyor", *words, "--share", "url:/blog/"]
    if not pages:
        steps["keep the pages"] = ["surveyor", *words, "--pages", "sample.csv"]
    if not report:
        steps["see the curves"] = ["surveyor", *words, "--report", "sample.html"]
    if found.place:
        steps["what was fetched"] = ["surveyor", found.place]
    return steps

"""Checks of the options of `surveyor sample`, and the files that they name, before anything is fetched or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.cli.sample import SampleCommand
    from surveyor.report.sample import StatisticsRequest

GRAPH_SUFFIXES = (".graph", ".tsv", ".csv", ".txt", ".gz", ".zst", ".parquet", ".npz", ".mtx", ".graphml", ".gexf")


def is_file(name: str) -> bool:
    """Return whether a source is a file or folder, or is named like one."""
    return Path(name).exists() or name.endswith(GRAPH_SUFFIXES)


def check_options(chosen: SampleCommand) -> None:
    """Reject options that cannot work, before any page is fetched."""
    from surveyor.crawler.topics.rules import Topic
    from surveyor.estimate.sampling.properties import NUMERIC
    from surveyor.estimate.sampling.sample_goals import SampleGoal

    if not chosen.where and not chosen.seed_lists:
        raise UsageError("no source to sample was given", hint="name a graph, a survey, or seed URLs")
    source, statistics = chosen.source, chosen.statistics
    _check_source(chosen)
    _check_statistics(statistics)
    rules = [
        Topic.parse(rule) for rule in (chosen.topic, *statistics.share, *statistics.tracked) if rule not in NUMERIC
    ]
    if source == "graph" and (textual := next((rule for rule in rules if not rule.url_only), None)):
        raise UsageError(
            f"{textual.text} needs the text of pages, but a graph has only names",
            hint="use a rule for URLs (host:, domain:, tld:, prefix:, url:), or sample a survey or the web",
        )
    if SampleGoal.parse(chosen.goal).width is not None:
        _check_width(statistics)
    fetching = {**chosen.settings, **({"out": chosen.out} if chosen.out else {})}
    if fetching and source != "web":
        raise UsageError(
            f"--{next(iter(fetching)).replace('_', '-')} applies to live samples only, and a {source} is sampled",
            hint="leave it out, or give seed URLs",
        )
    if chosen.radius is not None and chosen.method != "neighbourhood-paper":
        raise UsageError(
            "--radius applies to the method neighbourhood-paper only",
            hint="add --method neighbourhood-paper, or omit it",
        )
    if chosen.start and source == "web":
        raise UsageError("--start applies to graphs and surveys only", hint="give seed URLs as arguments")
    if "language" in statistics.by and source == "graph":
        raise UsageError("--by language needs the text of pages, but a graph has only names", hint="sample a survey")
    if chosen.in_links and source == "survey":
        raise UsageError("--in-links does not apply to surveys: all links of fetched pages are known", hint="omit it")


def _check_source(chosen: SampleCommand) -> None:
    """Reject missing files, and files among URLs."""
    from surveyor.cli.graph_source import is_survey

    if chosen.source == "graph" and not Path(chosen.where[0]).exists():
        raise UsageError(f"no graph or survey {chosen.where[0]!r}", hint="check the name; URLs start with https://")
    for name in chosen.where if chosen.source == "web" else ():
        if "://" not in name and (is_survey(name) or is_file(name)):
            raise UsageError(
                f"{name} is a file or folder: a sample takes one graph, one survey, or URLs",
                hint="URLs start with https://; pass lists of URLs with --seeds",
            )


def _check_statistics(statistics: StatisticsRequest) -> None:
    """Reject shares of numbers and of categories."""
    from surveyor.estimate.sampling.properties import CATEGORICAL, NUMERIC

    if number := next((name for name in statistics.share if name in NUMERIC), None):
        raise UsageError(f"--share needs a rule, and {number} is a number", hint=f"use --mean {number}")
    if kind := next((name for name in (*statistics.share, *statistics.tracked) if name in CATEGORICAL), None):
        raise UsageError(f"{kind} is a category, not a rule", hint=f"use --by {kind}, or a rule such as tld:uk")


def _check_width(statistics: StatisticsRequest) -> None:
    """Reject a width without a property, or of a number of links, which it would never reach."""
    if not statistics.tracked:
        raise UsageError("--until width needs a property", hint="name one with --share, --mean or --of")
    if number := next((name for name in statistics.tracked if name in ("out_degree", "degree")), None):
        raise UsageError(
            f"--until width applies to shares, and {number} is a number of links",
            hint="name a share with --of, or use --until ess=400",
        )


def check_files(chosen: SampleCommand) -> None:
    """Reject output files that cannot be written."""
    from surveyor.report.column_files import check_distinct, check_file, check_place
    from surveyor.report.sample_plots import check_folder
    from surveyor.report.svg import check_plots

    files = {"save": chosen.save, "plot": chosen.plot, "report": chosen.report}
    for place in chosen.statistics.recall or (None,):
        check_distinct({**files, "recall": place})
    if chosen.save:
        if not chosen.save.lower().endswith((".csv", ".csv.gz", ".parquet")):
            raise UsageError(f"--save: unknown format of {chosen.save}", hint="use .csv, .csv.gz or .parquet")
        check_file(chosen.save)
    for place in filter(None, (chosen.save, chosen.report)):
        check_place(place)
    if chosen.plot:
        check_plots()
        check_folder(Path(chosen.plot))


def read_expected(fit: str) -> dict[str, float]:
    """Return the known distribution that `--fit NAME=FILE` names, by category."""
    from surveyor.estimate.sampling.properties import CATEGORICAL

    name, _, file = fit.partition("=")
    if name not in CATEGORICAL or not file:
        raise UsageError(
            f"--fit needs {', '.join(CATEGORICAL[:-1])} or {CATEGORICAL[-1]} and a file, got {fit}",
            hint="for example --fit tld=shares.csv",
        )
    expected: dict[str, float] = {}
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--fit: {file} cannot be read: {error}", hint="give a text file") from None
    for number, line in enumerate(lines, 1):
        label, separator, share = line.rpartition("\t" if "\t" in line else ",")
        if not line.strip():
            continue
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not separator or not 0 <= value < float("inf"):
            if number == 1:  # a head
                continue
            raise UsageError(
                f"--fit: line {number} of {file} has no category and share: {line[:60]!r}",
                hint="write a category, a tab or comma, and a share or number of pages on each line",
            )
        expected[label.strip().strip('"')] = expected.get(label.strip().strip('"'), 0.0) + value
    if not sum(expected.values()) > 0:
        raise UsageError(f"--fit: {file} has no positive share", hint="write lines such as: org,0.25")
    return expected


def recall_urls_of(place: str) -> set[str]:
    """Return the URLs that a survey has fetched, or that a list names."""
    from surveyor.cli.graph_source import is_survey

    if is_survey(place):
        from surveyor.survey.survey import Survey

        with Survey(place) as survey:
            return {url for _, url, visit in survey.pages() if visit is not None and visit.kind == "fetched"}
    from surveyor.crawler.seeds import read_seeds

    urls = set(read_seeds(place))
    if not urls:
        raise UsageError(f"--recall: {place} has no URLs", hint="write one URL per line")
    return urls

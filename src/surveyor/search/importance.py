"""The importance of the pages of a survey, by page id; nan where it is not known.

    local    the ranking of the survey, as `surveyor top`
    opic     the estimate of OPIC (`survey.importance`)
    global   estimated global ranks of the pages, from a file
    domain   scores of their hosts or registrable domains, from a file
    none     words only

A file is CSV with a header, as surveyor and spreadsheets write it, or a ranks file of Common Crawl. The name is in
`url`, `name`, `host`, `domain`, `node` or `page`, the number in `share`, `score`, `estimate`, `rank_score` or `value`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.ranks import read_ranks
from surveyor.graph.formats.streams import decompressed, reject_pipe
from surveyor.store.tabular import unescape_cell
from surveyor.web.suffixes import Suffixes

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

Rank = Literal["local", "opic", "global", "domain", "none"]
RANKS: tuple[Rank, ...] = ("local", "opic", "global", "domain", "none")
NAMES = ("url", "name", "host", "domain", "node", "page")
NUMBERS = ("share", "score", "estimate", "rank_score", "value")
SMALLEST = 5e-324  # above 0
COMMANDS = {
    "global": "`surveyor community SURVEY --csv --top 1000000 > ranks.csv` estimates them",
    "domain": "`surveyor domains SURVEY --condense --out domains.csv` computes them",
}


def importance_of(survey: Survey, rank: Rank, ranks: Path | None = None) -> FloatArray:
    """Return the importance of the known pages by id."""
    if rank not in RANKS:
        raise UsageError(f"rank must be one of {', '.join(RANKS)}, got {rank!r}", hint="the default is local")
    if ranks is not None and rank not in COMMANDS:
        raise UsageError(f"rank {rank} reads no file of ranks", hint="choose global or domain, or omit the file")
    urls = survey.journal.url_count
    found = np.full(urls, np.nan)
    if rank == "none":
        return found
    if rank in COMMANDS:
        if ranks is None:
            raise UsageError(f"rank {rank} needs a file of ranks (--ranks FILE)", hint=COMMANDS[rank])
        return _from_file(survey, rank, ranks)
    if rank == "local" and survey.keeps_graph:
        pages, shares = survey.as_graph().pages, survey.ranking.scores
    else:
        estimate = survey.own_importance or survey.importance()
        pages, shares = estimate.pages, estimate.shares
    inside = pages < urls
    found[pages[inside]] = shares[inside]
    found[~(found > 0)] = np.nan
    return found


def least_of(importance: FloatArray) -> float:
    """Return what an unknown importance counts as: half of the least known one."""
    known = importance[~np.isnan(importance)]
    return max(float(known.min()) / 2, SMALLEST) if known.size else 1.0


def _from_file(survey: Survey, rank: Rank, path: Path) -> FloatArray:
    values = {name: value for name, value in read_scores(path) if value > 0 and np.isfinite(value)}
    found = np.full(survey.journal.url_count, np.nan)
    suffixes = Suffixes() if rank == "domain" else None
    for page, url in zip(range(found.size), survey.journal.urls(), strict=False):
        if suffixes is None:
            names = [url]
        else:
            host = urlsplit(url).hostname or ""
            names = [host, suffixes.domain(host)]
        value = next((values[name] for name in names if name in values), None)
        if value is not None:
            found[page] = value
    if np.isnan(found).all():
        what = "page" if rank == "global" else "host or domain"
        raise InputError(f"{path} has a number for no {what} of {survey.folder}", hint="it holds a name per line")
    return found


def read_scores(path: Path) -> Iterator[tuple[str, float]]:
    """Yield names and numbers of a file of ranks."""
    reject_pipe(path, "ranks")
    with decompressed(path) as (file, _):
        first = file.readline(1 << 16).decode("utf-8", "replace")
    if first.startswith("#"):
        ranks = read_ranks(path)
        yield from zip(ranks.names, ranks.pagerank.tolist(), strict=True)
        return
    with decompressed(path) as (file, _):
        rows = csv.DictReader(line.decode("utf-8", "replace") for line in file)
        heads = rows.fieldnames or ()
        name = next((one for one in NAMES if one in heads), None)
        number = next((one for one in NUMBERS if one in heads), None)
        if name is None or number is None:
            raise InputError(
                f"{path} is no file of ranks: it has no column of names and of numbers",
                hint=f"CSV with a column {', '.join(NAMES)} and a column {', '.join(NUMBERS)}",
            )
        for line, row in enumerate(rows, 2):
            try:
                yield unescape_cell(row[name]), float(row[number] or "nan")
            except (TypeError, ValueError) as error:
                raise InputError(f"{path}:{line}: {row[number]!r} is no number", hint="see docs/how-to") from error

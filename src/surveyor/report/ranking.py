"""Present a ranking: top list, HTML report with figures, and files of all scores.

The score of a page, from 0 to 100, is for people (`Ranking.log_scores`). It compares pages of one graph, never of two.
The HTML report holds no times: the same ranking gives the same bytes. A file of all scores can be the start of the next
ranking:

    .csv, .csv.gz    page, share, name; best first
    .parquet         the same columns
    .npy             the array of shares, by page id
    .txt, .txt.gz    Common Crawl's ranks file (names are hosts or domains)

A file appears under its name only when it is complete.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.arrays import save
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.ranks import read_ranks, write_ranks
from surveyor.graph.formats.streams import atomic_write, compressed_writer, decompressed, library
from surveyor.report import html_page
from surveyor.report.explanation import link_rows
from surveyor.report.graphs import source
from surveyor.report.html_page import text
from surveyor.report.numbers import at_most, count, counted, percent, tiny
from surveyor.report.svg import ONE, TWO, figure
from surveyor.report.tables import Table
from surveyor.store.tabular import unescape_cell, write_csv_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from surveyor.arrays import FloatArray
    from surveyor.graph.csr import Graph
    from surveyor.rank.explain import Explanation
    from surveyor.rank.pagerank import Ranking

    Write = Callable[[Graph, Ranking, Path], None]

ROWS = 200  # pages in the table of a report
DANGLING_RULES = {"teleport": "surfers jump as from any page", "uniform": "surfers jump to any page"}
POINTS = 400  # of a curve
BATCH = 1 << 16  # rows formatted at a time
BLOCK = 1 << 24  # bytes of names checked at a time
NOT_IN_HOSTS = np.zeros(256, np.bool_)
NOT_IN_HOSTS[[*range(33), *b"/:?#@\\", 127]] = True


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a ranked list."""

    position: int
    id: int
    score: float
    share: float
    in_links: int
    out_links: int
    name: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values; a name that is a URL also as `url`."""
        fields = {field: getattr(self, field) for field in self.__slots__}
        return {**fields, "url": self.name} if "://" in self.name else fields


def top_pages(graph: Graph, ranking: Ranking, count: int) -> list[Page]:
    """Return the best pages, best first."""
    scores, into = ranking.log_scores(), graph.in_links.indptr
    return [
        Page(
            position=position,
            id=page,
            score=round(float(scores[page]), 1),
            share=float(ranking.scores[page]),
            in_links=int(into[page + 1] - into[page]),
            out_links=int(graph.indptr[page + 1] - graph.indptr[page]),
            name=graph.name(page),
        )
        for position, page in enumerate(ranking.top_ids(count).tolist(), 1)
    ]


def near_ties(ranking: Ranking, count: int) -> int:
    """Count the neighbours in the list of the best pages, and at its end, whose order is not certain.

    The errors of all scores sum to at most `error`, so two pages whose scores differ by more are in their true order.
    """
    shares = ranking.scores[ranking.top_ids(count + 1)]
    return int(np.count_nonzero(shares[:-1] - shares[1:] <= ranking.error))


def order_line(ties: int) -> str:
    """Describe how certain the order of a list is."""
    return f"order proven, except for {counted(ties, 'near-tie')}" if ties else "order proven"


def page_table(pages: list[Page]) -> Table:
    """Return the pages as a table."""
    return Table(
        titles=("score", "share", "in-links", "page"),
        cells=[(f"{row.score:.0f}", percent(row.share), count(row.in_links), row.name) for row in pages],
        keys=Page.__slots__,
        records=[tuple(getattr(row, key) for key in Page.__slots__) for row in pages],
    )


@dataclass(frozen=True, slots=True)
class RankingReport:
    """Content of the HTML report of a ranking."""

    title: str
    graph: Graph
    ranking: Ranking
    explanation: Explanation
    command: str  # that reproduces the ranking
    plots: bool = True


def ranking_html(report: RankingReport) -> str:
    """Return the report as HTML."""
    graph, ranking = report.graph, report.ranking
    pages = top_pages(graph, ranking, ROWS)
    facts = {
        "pages": count(graph.pages),
        "links": count(graph.links),
        "proven error": f"≤ {at_most(ranking.error)}",
        "near-ties in the list": count(near_ties(ranking, ROWS)),
        "sweeps": count(ranking.sweeps),
    }
    parts = [
        f'<p class="soft">{counted(graph.pages, "page")} ranked by the links between them.</p>',
        html_page.facts(facts),
        *(_figures(graph, ranking) if report.plots else []),
        *_explanation(report),
        *_pages(pages, graph.pages),
        *_method(report),
    ]
    return html_page.document(report.title, parts)


def _figures(graph: Graph, ranking: Ranking) -> list[str]:
    return [
        '<div class="figures">',
        html_page.figure(
            share_plot(graph, ranking),
            "Share of each page, by position.",
            "Where the two lines diverge, PageRank and the number of links rank pages differently.",
        ),
        html_page.figure(
            error_plot(ranking),
            "Proven error after each sweep.",
            "An upper bound on the sum of the differences to the exact scores over all pages.",
        ),
        "</div>",
    ]


def _explanation(report: RankingReport) -> list[str]:
    explanation, graph = report.explanation, report.graph
    rows = link_rows(explanation)
    largest = max((row.fraction for row in rows), default=0.0) or 1.0
    body = "".join(
        f'<tr><td>{percent(row.fraction)}</td><td class="graph">'
        f'<span class="bar" style="width:{100 * row.fraction / largest:.1f}%"></span></td>'
        f'<td>{text(row.name)} <span class="soft">{text(row.detail)}</span></td></tr>\n'
        for row in rows
    )
    place = "first" if explanation.position == 1 else f"number {count(explanation.position)}"
    return [
        f"<h2>Why {text(explanation.name)} is {place}</h2>",
        f"<p>Share {percent(explanation.share)}, position {count(explanation.position)} of {count(graph.pages)}. "
        "Contributions to its rank:</p>",
        '<div class="scroll"><table><thead><tr><th>fraction</th><th class="graph"></th><th>from</th></tr></thead>',
        f"<tbody>{body}</tbody></table></div>",
    ]


def _pages(pages: Sequence[Page], total: int) -> list[str]:
    body = "".join(
        f"<tr><td>{count(row.position)}</td><td>{row.score:.0f}</td><td>{percent(row.share)}</td>"
        f"<td>{count(row.in_links)}</td><td>{count(row.out_links)}</td><td>{text(row.name)}</td></tr>\n"
        for row in pages
    )
    return [
        "<h2>Top pages</h2>",
        '<div class="scroll"><table>'
        f"<caption>The first {count(len(pages))} of {counted(total, 'page')}. Score: 0 to 100, on a log "
        "scale from the smallest share to the largest; it compares pages of this graph only.</caption>",
        "<thead><tr><th></th><th>score</th><th>share</th><th>in-links</th><th>out-links</th><th>page</th>",
        "</tr></thead>",
        f"<tbody>{body}</tbody></table></div>",
    ]


def _method(report: RankingReport) -> list[str]:
    ranking, provenance = report.ranking, report.graph.provenance
    values = {
        "measure": "PageRank: the share of time that a surfer who follows random links spends on each page",
        "damping": f"{ranking.damping:g} (the probability of following a link instead of jumping)",
        "jumps lead to": "any page, uniformly" if ranking.teleport == "uniform" else "the trusted pages",
        "pages without links": DANGLING_RULES.get(ranking.dangling, ranking.dangling),
        "solver": ranking.solver,
        "proven error": f"at most {at_most(ranking.error)} in total (tolerance: {tiny(ranking.tolerance)})",
        "source": source(provenance),
        "links read": count(provenance["links_read"]) if "links_read" in provenance else "not recorded",
        "self-links dropped": count(provenance.get("self_links_dropped", 0)),
        "duplicates merged": count(provenance.get("repeats_merged", 0)),
        "created with": html_page.GENERATOR,
    }
    return html_page.method(values, report.command)


def share_plot(graph: Graph, ranking: Ranking) -> str:
    """Draw the share of each page against its position, and the share of the links it receives."""
    shares = _descending(ranking.scores)
    links = _descending(np.diff(graph.in_links.indptr) / max(graph.links, 1))
    positions = np.unique(np.geomspace(1, max(shares.size, 1), POINTS).astype(np.int64))

    def draw(axes: Axes) -> None:
        axes.loglog(positions, shares[positions - 1], color=ONE, label="share of the rank")
        received = links[positions - 1]
        axes.loglog(
            positions[received > 0], received[received > 0], color=TWO, dashes=(4, 2), label="share of all links"
        )
        axes.set_xlabel("position of the page")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.12f}".rstrip("0").rstrip(".") + " %")
        axes.legend(loc="lower left")

    return figure(draw, "share of the rank of each page, by position, and share of all links", "share")


def error_plot(ranking: Ranking) -> str:
    """Draw the proven error bound after each sweep, down to the tolerance."""
    bounds = np.asarray(ranking.history, float)
    sweeps = np.arange(1, bounds.size + 1)

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        few = bounds.size <= 40
        axes.semilogy(sweeps, bounds, color=ONE, marker="o" if few else None, markersize=4, label="proven error")
        axes.axhline(ranking.tolerance, color=TWO, dashes=(4, 2), label=f"tolerance: {tiny(ranking.tolerance)}")
        axes.set_xlabel("sweeps")
        axes.yaxis.set_major_formatter(lambda value, _: tiny(value))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper right")

    return figure(draw, f"proven error after each of {bounds.size} sweeps", "error")


def _descending(values: FloatArray) -> FloatArray:
    return np.sort(values)[::-1]


@dataclass(frozen=True, slots=True)
class StartScores:
    """Earlier scores to start from, mapped to the pages of a graph."""

    scores: FloatArray
    ranks: int  # in the file
    known: int  # of them, for pages in the graph


def write_ranks_file(graph: Graph, ranking: Ranking, path: str | Path) -> Path:
    """Write the share of every page in the format of the suffix."""
    path = Path(path)
    write = _writer(path)
    with atomic_write(path) as draft:
        write(graph, ranking, draft)
    return path


def check_suffix(path: str | Path) -> None:
    """Reject a file name without a known suffix, before the work is done."""
    _writer(Path(path))


def check_names(graph: Graph, path: str | Path) -> None:
    """Reject Common Crawl's format, which reverses host names, where names are not hosts."""
    if _writer(Path(path)) is not _write_ranks:
        return
    if graph.names is None:
        raise UsageError(f"{path}: a Common Crawl ranks file needs names", hint="use .csv or .npy, which hold ids")
    blob = graph.names.blob
    for start in range(0, blob.size, BLOCK):
        if NOT_IN_HOSTS[blob[start : start + BLOCK]].any():
            raise UsageError(
                f"{path}: a Common Crawl ranks file holds hosts or domains, and the graph has other names",
                hint="use .csv or .parquet, which hold any name",
            )


def _writer(path: Path) -> Write:
    for suffixes, write in WRITERS.items():
        if path.name.lower().endswith(suffixes):
            return write
    known = ", ".join(suffix for suffixes in WRITERS for suffix in suffixes)
    raise UsageError(f"{path.name} has no known suffix for a file of ranks", hint=f"use one of {known}")


def _write_csv(graph: Graph, ranking: Ranking, path: Path) -> None:
    order = ranking.top_ids(ranking.scores.size)
    with compressed_writer(path) as write:
        write(b"id,share,name\n" if graph.names is not None else b"id,share\n")
        for start in range(0, order.size, BATCH):
            pages = order[start : start + BATCH].tolist()
            columns: list[Any] = [pages, ranking.scores[pages].tolist()]
            if graph.names is not None:
                columns.append([graph.names[page] for page in pages])
            text = io.StringIO()
            write_csv_rows(text, zip(*columns, strict=True))
            write(text.getvalue().encode("utf-8", "surrogateescape"))


def _write_parquet(graph: Graph, ranking: Ranking, path: Path) -> None:
    arrow, parquet = (library(name, "writing Parquet") for name in ("pyarrow", "pyarrow.parquet"))
    order = ranking.top_ids(ranking.scores.size)
    columns: dict[str, Any] = {"id": order, "share": ranking.scores[order]}
    if graph.names is not None:
        names = (graph.names[page].encode("utf-8", "surrogateescape") for page in order.tolist())
        columns["name"] = [name.decode("utf-8", "replace") for name in names]
    parquet.write_table(arrow.table(columns), path)


def _write_npy(_graph: Graph, ranking: Ranking, path: Path) -> None:
    save(path, ranking.scores)


def _write_ranks(graph: Graph, ranking: Ranking, path: Path) -> None:
    check_names(graph, path)
    assert graph.names is not None, "checked"  # noqa: S101
    write_ranks(path, graph.names, pagerank=ranking.scores)


WRITERS: dict[tuple[str, ...], Write] = {
    (".csv", ".csv.gz"): _write_csv,
    (".parquet",): _write_parquet,
    (".npy",): _write_npy,
    (".txt", ".txt.gz"): _write_ranks,
}


def read_start(graph: Graph, path: str | Path) -> StartScores:
    """Read earlier scores to start from: by id (.npy), or by name, where the graph may have changed since."""
    path = Path(path)
    try:
        start = _by_id(graph, path) if path.name.lower().endswith(".npy") else _by_name(graph, path)
    except (OSError, EOFError, ValueError, TypeError, KeyError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read as ranks ({error})",
            hint="use a .csv, .parquet, .npy or .txt file written by `surveyor rank --out`",
        ) from error
    if not start.ranks and graph.pages:
        raise InputError(f"{path} holds no ranks", hint="use a file written by `surveyor rank --out`")
    if not start.known and graph.pages:
        raise InputError(
            f"none of the {start.ranks:,} ranks in {path} is for a page in this graph",
            hint="use ranks of this graph or of an earlier one with the same names",
        )
    return start


def _by_id(graph: Graph, path: Path) -> StartScores:
    scores = np.asarray(np.load(path, allow_pickle=False), np.float64)
    if scores.shape != (graph.pages,):
        raise InputError(
            f"{path} holds {scores.size:,} scores, and the graph has {graph.pages:,} pages",
            hint="for a changed graph use a .csv or .parquet file, which holds names",
        )
    return StartScores(scores, scores.size, scores.size)


def _by_name(graph: Graph, path: Path) -> StartScores:
    """Give each known page its earlier share and each new page an equal share."""
    name = path.name.lower()
    rows = _parquet_rows if name.endswith(".parquet") else _csv_rows if ".csv" in name else _rank_rows
    scores = np.full(graph.pages, 1 / max(graph.pages, 1))
    seen = np.zeros(graph.pages, np.bool_)
    ranks = 0
    for word, share in rows(path):
        ranks += 1
        page = graph.names.find(word) if graph.names is not None else int(word) if word.isdecimal() else None
        if page is not None and page < graph.pages:
            scores[page], seen[page] = share, True
    return StartScores(scores, ranks, int(seen.sum()))


def _csv_rows(path: Path) -> Iterator[tuple[str, float]]:
    with decompressed(path) as (file, _):
        for row in csv.DictReader(line.decode("utf-8", "surrogateescape") for line in file):
            share = float(row["share"])
            yield unescape_cell(row["name"]) if "name" in row else row["id"], share


def _parquet_rows(path: Path) -> Iterator[tuple[str, float]]:
    with library("pyarrow.parquet", "reading Parquet").ParquetFile(path) as file:
        word = "name" if "name" in file.schema_arrow.names else "id"
        for batch in file.iter_batches(BATCH, columns=[word, "share"]):
            yield from zip(map(str, batch[word].to_pylist()), map(float, batch["share"].to_pylist()), strict=True)


def _rank_rows(path: Path) -> Iterator[tuple[str, float]]:
    ranks = read_ranks(path)
    yield from zip(ranks.names, ranks.pagerank.tolist(), strict=True)

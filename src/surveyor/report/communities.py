"""The global rank of local pages as tables, text, JSON fields and files.

No number here is a bound, because links of pages that were not fetched are unknown: the texts say "estimated".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.graph.names import labels
from surveyor.report.column_files import batches, readable, write_columns, write_scores
from surveyor.report.numbers import at_most, count, counted, percent, printable, tiny
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.estimate.community.community_rank import CommunityRank
    from surveyor.estimate.community.movers import Mover

LAST = 3  # rounds whose change is shown
INTEGERS = ("id", "position", "local_position", "change")
RANKINGS = {
    "local": "local: links among local pages only",
    "crawled": "crawled: links among all fetched pages",
    "frontier": "frontier: also links to other pages, whose rank is lost",
    "auto": "auto: also the estimated rank that these pages send back",
}
NO_BOUND = "the error cannot be bounded or estimated: pages that were not fetched may change the ranks"


def local_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the table of local pages."""
    keys = (
        [key for key in rows[0] if key != "url"]
        if rows
        else ["id", "name", "position", "share", "local_position", "local_share", "change"]
    )
    titles = ["", "local", "change", "share"]
    titles += ["true share"] if "true_share" in keys else []
    cells = [_local_cells(row) for row in rows]
    return Table([*titles, "page"], cells, keys, [[row[key] for key in keys] for row in rows])


def _local_cells(row: dict[str, Any]) -> list[str]:
    cells = [count(row["position"]), count(row["local_position"]), arrow(row["change"]), percent(row["share"])]
    if "true_share" in row:
        cells.append(percent(row["true_share"]))
    return [*cells, printable(row["name"])]


def arrow(places: int) -> str:
    """Format the number of positions that a page gained or lost.

    >>> arrow(12), arrow(-3), arrow(0)
    ('▲ 12', '▼ 3', '')
    """
    return f"{'▲' if places > 0 else '▼'} {count(abs(places))}" if places else ""


def movers_table(result: CommunityRank, movers: Sequence[Mover], *, of_one: bool = False) -> Table:
    """Return the table of outside pages by the rank that they send to all local pages or to one."""
    titles = ["sends", "without it" if of_one else "shifts", "outside page"]
    cells = []
    for one in movers:
        sign = "+" if of_one and one.change > 0 else ""
        cells.append([percent(one.flow), sign + percent(one.change), printable(result.name(one.page))])
    keys = ("id", "name", "flow", "change", "error")
    return Table(titles, cells, keys, [[record[key] for key in keys] for record in mover_records(result, movers)])


def mover_records(result: CommunityRank, movers: Sequence[Mover]) -> list[dict[str, Any]]:
    """Return outside pages as JSON records."""
    return [
        {**labels(one.page, result.name(one.page)), "flow": one.flow, "change": one.change, "error": one.error}
        for one in movers
    ]


def movers_line(*, of_one: bool = False) -> str:
    """Return the legend of the table of outside pages."""
    sends = "sends: rank that its links send there directly, as a share of the rank of all fetched pages"
    change = (
        "without it: change of the share of the page without its links"
        if of_one
        else "shifts: share of the local rank that would move to other local pages without its links"
    )
    return f"{sends}; {change}"


def truth_table(result: CommunityRank) -> Table:
    """Return the table of each ranking compared with the true global rank."""
    titles = ["L1", "Kendall", "weighted", "top 10", "top 100", "ranking"]
    keys = ["ranking", "l1", "kendall", "weighted", "overlap_10", "overlap_100"]
    cells, records = [], []
    for name in rankings(result):
        compared = result.compare(name)
        shares = [compared.overlap[10], compared.overlap[100]]
        orders = ["-" if tau is None else f"{tau:.3f}" for tau in (compared.kendall, compared.weighted)]
        label = RANKINGS[name] + ("  (shown)" if name == requested_estimator(result) else "")
        cells.append([f"{compared.l1:.4f}", *orders, *(f"{100 * share:.0f} %" for share in shares), label])
        records.append([name, compared.l1, compared.kendall, compared.weighted, *shares])
    return Table(titles, cells, keys, records)


def impact_table(result: CommunityRank, top: int) -> Table:
    """Return the table of outside pages by impact, fetched or not."""
    rows = result.largest_impacts(top)
    cells = [[percent(row["impact"]), _when(row["round"]), printable(row["name"])] for row in rows]
    keys = ["id", "name", "impact", "round"]
    return Table(["impact", "fetched", "outside page"], cells, keys, [[row[key] for key in keys] for row in rows])


def _when(number: int | None) -> str:
    return "no" if number is None else f"round {number:,}" if number else "before"


def impact_line(result: CommunityRank) -> str:
    """Return the legend of the table of impacts."""
    share = 0.0 if result.impacts is None else result.impacts.fetched
    return (
        "impact: probability that a surfer of the whole web is on the page and follows a link to a local page; pages "
        f"fetched by {result.select} hold {100 * share:.0f} % of the impact of all outside pages"
    )


def rankings(result: CommunityRank) -> list[str]:
    """Return the rankings that can be compared with the true rank, the simplest first."""
    return ["local", *sorted(result.estimates, key=list(RANKINGS).index)]


def requested_estimator(result: CommunityRank) -> str:
    """Return the name of the requested estimator."""
    return next((name for name, one in result.estimates.items() if one is result.estimate), result.estimate.method)


def lines(result: CommunityRank, rule: str) -> list[str]:
    """Return the text below the table: parameters and uncertainty."""
    return [
        f"{counted(result.pages.size, 'local page')} ({rule}); {outside(result)}",
        estimator(result),
        f"L1 distance of the estimate from the local rank: {result.distance:.3f} (0: equal, 2: disjoint)"
        + recent(result),
        f"L1 distance of crawled from frontier, which treat links to pages not fetched differently: "
        f"{result.disagreement:.3f}",
        NO_BOUND,
    ]


def outside(result: CommunityRank) -> str:
    """Describe the number of requested pages, and why no more were requested."""
    if not result.extra.size:
        return "no page outside was requested"
    requested, rounds = int(result.extra.size), len(result.rounds) - 1
    text = (
        f"{counted(requested, 'page')} outside requested in {counted(rounds, 'round')} by {result.select}, "
        f"{'all' if result.fetched == requested else count(result.fetched)} fetched"
    )
    endings = {
        "stable": "; stopped early because the ranks were stable",
        "exhausted": "; stopped early because no page was left to request",
        "interrupted": "; interrupted",
    }
    return text + endings.get(result.ending, "")


def estimator(result: CommunityRank) -> str:
    """Describe the estimator, its explanation and the error of the solver."""
    asked, used = requested_estimator(result), result.estimate
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in used.weights.items())
    taken = f" ({weights})" if weights else f", using {used.method}" if used.method != asked else ""
    why = f": {used.explanation}" if used.explanation else ""
    return f"estimator: {asked}{taken}{why}; solver error {at_most(used.error)}"


def recent(result: CommunityRank) -> str:
    """Describe the change of the ranks in the last rounds; empty if there were none."""
    changes = [one.change for one in result.rounds[1:]][-LAST:]
    if not changes:
        return ""
    which = "the last round" if len(changes) == 1 else f"the last {len(changes)} rounds"
    return f"; {which} changed the ranks by {', '.join(tiny(float(f'{one:.2g}')) for one in changes)}"


@dataclass(frozen=True, slots=True)
class LocalLinks:
    """The local pages that link to a local page."""

    pages: int
    links: int  # of these pages
    leaving: float  # share of the rank sent by local links alone that leaves the domain instead


def local_links(result: CommunityRank, entry: int) -> LocalLinks:
    """Measure the rank that links out of the domain take from a local page, which the local rank ignores."""
    from surveyor.kernels.edge_lists import count_links_into

    known, indices = result.known, np.searchsorted(result.known.pages, result.pages)
    inside = np.zeros(known.pages.size, np.bool_)
    inside[indices] = True
    into = count_links_into(known.indptr, known.indices, known.pages == result.pages[entry])[indices]
    among = count_links_into(known.indptr, known.indices, inside)[indices]
    degrees = (known.degrees + known.leaving)[indices]
    alone = result.local_scores * into / np.maximum(among, 1)
    sent = float((result.local_scores * into / np.maximum(degrees, 1)).sum())
    total = float(alone.sum())
    return LocalLinks(int((into > 0).sum()), int(degrees[into > 0].sum()), 1 - sent / total if total else 0.0)


def explained(result: CommunityRank, entry: int, movers: Sequence[Mover]) -> dict[str, Any]:
    """Return one local page, with the outside pages that send it rank, as JSON fields."""
    links = asdict(local_links(result, entry))
    return {**result.row(entry), "local_links": links, "movers": mover_records(result, movers)}


def explained_lines(result: CommunityRank, entry: int, movers: Sequence[Mover]) -> list[str]:
    """Describe the estimated and the local rank of one page, and the reasons for the difference."""
    row, around = result.row(entry), local_links(result, entry)
    size = count(result.pages.size)
    verb = "links" if around.pages == 1 else "link"
    part = f"; {percent(around.leaving)} of the rank that local links would send leaves the domain instead"
    return [
        printable(row["name"]),
        f"estimated global rank: position {count(row['position'])} of {size}, share {percent(row['share'])}",
        f"local rank: position {count(row['local_position'])}, share {percent(row['local_share'])}",
        *([f"true global rank: share {percent(row['true_share'])}"] if "true_share" in row else []),
        f"{counted(around.pages, 'local page')} {verb} to it" + part * (around.leaving > 0),
        *([] if movers else ["no fetched page outside links to it"]),
    ]


def fields(result: CommunityRank, top: int, movers: Sequence[Mover]) -> dict[str, Any]:
    """Return the JSON fields of a community."""
    requested = {"estimator_requested": requested_estimator(result)}
    return {**result.to_dict(top), **requested, "movers": mover_records(result, movers)}


def write_community(result: CommunityRank, path: str | Path) -> Path:
    """Write all local pages in the format of the suffix, best first; as .npy the shares only, by id."""
    path = Path(path)
    if path.name.lower().endswith(".npy"):
        return write_scores(path, result.scores)
    table = result.columns()
    if "name" in table:
        table["name"] = readable(table["name"])
    kinds = {name: "int64" if name in INTEGERS else "string" if name == "name" else "float64" for name in table}
    return write_columns(path, kinds, batches(table))

"""The global rank of local pages as rows and in words; `community_files.py` writes all of them.

Nothing here is a bound: what pages not read would say, nobody knows. So words and titles say "estimated" and "spread".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.report.numbers import at_most, count, counted, percent, printable, tiny
from surveyor.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surveyor.estimate.community.movers import Mover
    from surveyor.estimate.community.result import CommunityRank

NOISE = 1e-6  # the spread is worked out from estimates that are exact to so much
LAST = 3  # rounds whose movement is told
RANKINGS = {
    "local": "local: links among local pages alone",
    "crawled": "crawled: links among all pages read",
    "frontier": "frontier: these, and links that leave lose what they carry",
    "auto": "auto: these, and rank that leaves comes back as far as was seen",
}
NO_BOUND = (
    "spread: standard deviation of a share when batches of the pages read outside are left out in turn. "
    "It is no bound: pages that were not read may move ranks further"
)


def local_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Lay local pages out, for people and for machines."""
    keys = list(rows[0]) if rows else ["page", "name", "position", "share", "local_position", "local_share", "moved"]
    titles = ["", "local", "moved", "share"]
    titles += [title for key, title in (("true_share", "true share"), ("spread", "spread")) if key in keys]
    cells = [
        [count(row["position"]), count(row["local_position"]), arrow(row["moved"]), percent(row["share"]),
         *([percent(row["true_share"])] if "true_share" in row else []),
         *([plus_minus(row["spread"])] if "spread" in row else []),
         printable(row["name"])]
        for row in rows
    ]  # fmt: skip
    return Table([*titles, "page"], cells, keys, [[row[key] for key in keys] for row in rows])


def arrow(places: int) -> str:
    """Write how many places a page gained or lost.

    >>> arrow(12), arrow(-3), arrow(0)
    ('▲ 12', '▼ 3', '')
    """
    return f"{'▲' if places > 0 else '▼'} {count(abs(places))}" if places else ""


def plus_minus(spread: float) -> str:
    """Write a spread; what the solving leaves open is not told apart from nothing.

    >>> plus_minus(0.00123), plus_minus(4e-8)
    ('± 0.12 %', '± 0 %')
    """
    return f"± {100 * spread:.2g} %" if spread >= NOISE else "± 0 %"


def movers_table(found: CommunityRank, movers: Sequence[Mover], *, of_one: bool = False) -> Table:
    """Lay out pages outside by the rank that they send, to all local pages or to one."""
    titles = ["sends", "without it" if of_one else "moves", "page outside"]
    cells = [
        [percent(one.flow), (f"{'+' if one.moves > 0 else ''}" if of_one else "") + percent(one.moves),
         printable(found.name(one.page))]
        for one in movers
    ]  # fmt: skip
    keys = ("page", "name", "flow", "moves", "error")
    return Table(titles, cells, keys, [[record[key] for key in keys] for record in mover_records(found, movers)])


def mover_records(found: CommunityRank, movers: Sequence[Mover]) -> list[dict[str, Any]]:
    """Return pages outside as JSON shows them."""
    return [
        {"page": one.page, "name": found.name(one.page), "flow": one.flow, "moves": one.moves, "error": one.error}
        for one in movers
    ]


def movers_line(*, of_one: bool = False) -> str:
    """Say what the figures of pages outside mean."""
    sends = "sends: rank that its links bring straight there, of all rank of the pages read"
    moves = (
        "without it: what the share of the page would change by"
        if of_one
        else "moves: share of the local rank that would go to other local pages without its links"
    )
    return f"{sends}; {moves}"


def truth_table(found: CommunityRank) -> Table:
    """Lay out how far each ranking is from the truth."""
    titles = ["L1", "Kendall", "weighted", "top 10", "top 100", "ranking"]
    keys = ["ranking", "l1", "kendall", "weighted", "overlap_10", "overlap_100"]
    cells, records = [], []
    for name in rankings(found):
        told = found.compared(name)
        shares = [told.overlap[10], told.overlap[100]]
        orders = ["-" if tau is None else f"{tau:.3f}" for tau in (told.kendall, told.weighted)]
        mark = "  (this one)" if name == asked_for(found) else ""
        cells.append([f"{told.l1:.4f}", *orders, *(f"{100 * share:.0f} %" for share in shares), RANKINGS[name] + mark])
        records.append([name, told.l1, told.kendall, told.weighted, *shares])
    return Table(titles, cells, keys, records)


def rankings(found: CommunityRank) -> list[str]:
    """Return what can be compared with the truth, the simplest first."""
    return ["local", *sorted(found.estimates, key=list(RANKINGS).index)]


def asked_for(found: CommunityRank) -> str:
    """Return the name of the estimator that was asked for."""
    return next((name for name, one in found.estimates.items() if one is found.estimate), found.estimate.method)


def lines(found: CommunityRank, rule: str) -> list[str]:
    """Say below a list how it came about, and how far to trust it."""
    return [
        f"{counted(found.pages.size, 'local page')} ({rule}); {outside(found)}",
        estimator(found),
        f"the estimate lies {found.moved:.3f} from the rank by local links alone (L1: 0 is the same, 2 nothing in "
        "common)" + recent(found),
        f"crawled and frontier, which differ in links to pages not read, lie {found.disagreement:.3f} apart (L1)",
        *([] if found.spread is None else [f"{NO_BOUND}. In all: {found.unsettled:.3f}"]),
    ]


def outside(found: CommunityRank) -> str:
    """Say how many pages were asked for, and how that ended."""
    if not found.extra.size:
        return "no page outside was asked for"
    asked, rounds = int(found.extra.size), len(found.rounds) - 1
    read = "all of them read" if found.read == asked else f"{count(found.read)} of them read"
    if asked == 1:
        read = "which was read" if found.read else "which was not read"
    told = f"{counted(asked, 'page')} outside asked for in {counted(rounds, 'round')} by {found.select}, {read}"
    endings = {
        "still": "; ended early, as the ranks stood still",
        "exhausted": "; ended early, as no page was left to ask for",
        "interrupted": "; stopped before the end",
    }
    return told + endings.get(found.ending, "")


def estimator(found: CommunityRank) -> str:
    """Say which estimate it is, why, and how exactly it was solved."""
    asked, used = asked_for(found), found.estimate
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in used.weights.items())
    taken = f" ({weights})" if weights else f", which took {used.method}" if used.method != asked else ""
    why = f": {used.why}" if used.why else ""
    return f"estimator: {asked}{taken}{why}; solved to {at_most(used.error)}, which says nothing of the truth"


def recent(found: CommunityRank) -> str:
    """Say how far the last rounds moved ranks; empty if there were none."""
    moved = [one.moved for one in found.rounds[1:]][-LAST:]
    if not moved:
        return ""
    which = "the last round" if len(moved) == 1 else f"the last {len(moved)} rounds"
    return f"; {which} moved the ranks by {', '.join(tiny(float(f'{one:.2g}')) for one in moved)}"


@dataclass(frozen=True, slots=True)
class LocalLinks:
    """What local pages that link to a local page do with their links."""

    pages: int  # that link to it
    links: int  # that they have
    leaving: float  # share of what they would send it, were there no links out of the domain, that goes out by these


def local_links(found: CommunityRank, entry: int) -> LocalLinks:
    """Look at the local pages that link to one: what they send outside, which local rank does not count, it loses."""
    from surveyor.kernels.edge_lists import count_links_into

    known, places = found.known, np.searchsorted(found.known.pages, found.pages)
    inside = np.zeros(known.pages.size, np.bool_)
    inside[places] = True
    into = count_links_into(known.indptr, known.indices, known.pages == found.pages[entry])[places]
    among = count_links_into(known.indptr, known.indices, inside)[places]
    degrees = (known.degrees + known.leaving)[places]
    alone = found.local * into / np.maximum(among, 1)
    sent = float((found.local * into / np.maximum(degrees, 1)).sum())
    total = float(alone.sum())
    return LocalLinks(int((into > 0).sum()), int(degrees[into > 0].sum()), 1 - sent / total if total else 0.0)


def explained(found: CommunityRank, entry: int, movers: Sequence[Mover]) -> dict[str, Any]:
    """Return all about one local page, with the pages outside that send it rank, as JSON shows it."""
    return {
        **found.row(entry), "local_links": asdict(local_links(found, entry)), "movers": mover_records(found, movers),
    }  # fmt: skip


def explained_lines(found: CommunityRank, entry: int, movers: Sequence[Mover]) -> list[str]:
    """Say where one local page stands, where it stood, and why that differs."""
    row, around = found.row(entry), local_links(found, entry)
    spread = f" {plus_minus(row['spread'])}" if "spread" in row else ""
    size = count(found.pages.size)
    verb = "links" if around.pages == 1 else "link"
    part = f"; {percent(around.leaving)} of what local rank takes them to send goes out of the domain instead"
    return [
        printable(row["name"]),
        f"estimated global rank: position {count(row['position'])} of {size}, share {percent(row['share'])}{spread}",
        f"by local links alone: position {count(row['local_position'])}, share {percent(row['local_share'])}",
        *([f"in truth: share {percent(row['true_share'])}"] if "true_share" in row else []),
        f"{counted(around.pages, 'local page')} {verb} to it" + part * (around.leaving > 0),
        *([] if movers else ["no page outside that was read links to it"]),
    ]


def fields(found: CommunityRank, top: int, movers: Sequence[Mover]) -> dict[str, Any]:
    """Return what JSON says about a community."""
    told = found.to_dict(top)
    told["estimator_asked"] = asked_for(found)
    return {**told, "movers": mover_records(found, movers)}

"""What a watch takes for a change of a page."""

from __future__ import annotations

import pytest

from surveyor.crawler.ledger import Ledger
from surveyor.crawler.revisit_plan import RevisitPlan, Seen
from surveyor.crawler.schedule import Schedule
from surveyor.graph.growing import GrowingGraph

AT = 1_750_000_000.0
FIRST, LATER = b"\x01\x02" + bytes(14), b"\x01\x02" + b"x" * 14  # main texts
OTHER = b"\x03\x04" + bytes(14)  # the first, as another version of the library hashes it


@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        ((b"a", b""), (b"a", b""), ""),
        ((b"a", b""), (b"b", b""), "changed"),  # nothing else is known of the page
        ((b"a", FIRST), (b"b", FIRST), ""),
        ((b"a", FIRST), (b"b", LATER), "changed"),
        ((b"a", b""), (b"a", FIRST), ""),
        ((b"a", b""), (b"b", FIRST), ""),  # main texts have been hashed since then: unknown
        ((b"a", FIRST), (b"b", OTHER), ""),
        ((b"a", FIRST), (b"b", b""), ""),
    ],
)
def test_hashes_that_are_not_comparable_are_no_change(
    before: tuple[bytes, bytes], after: tuple[bytes, bytes], finding: str
) -> None:
    plan = RevisitPlan(Schedule(1.0, start=AT), Ledger(GrowingGraph(), [0]))
    assert plan.observe(Seen(0, "fetched", "", 200, AT, before[0], text=before[1])) == "new"
    assert plan.observe(Seen(0, "fetched", "", 200, AT + 60, after[0], text=after[1])) == finding
    assert plan.observe(Seen(0, "fetched", "", 304, AT + 120, after[0], text=after[1])) == ""


@pytest.mark.parametrize(
    ("kinds", "findings"),
    [
        (["fetched", "blocked", "fetched"], ["new", "", ""]),  # as `diff --since`: blocked visits show nothing
        (["fetched", "blocked", "gone", "blocked", "fetched"], ["new", "", "gone", "", "back"]),
        (["fetched", "gone", "gone", "fetched", "gone"], ["new", "gone", "", "back", "gone"]),
        (["gone", "fetched"], ["", "new"]),
        (["fetched", "redirected"], ["new", "redirected"]),
    ],
)
def test_a_page_is_back_if_it_was_gone(kinds: list[str], findings: list[str]) -> None:
    plan = RevisitPlan(Schedule(1.0, start=AT), Ledger(GrowingGraph(), [0]))
    seen = [Seen(0, kind, "", 200, AT + 60 * number, b"a") for number, kind in enumerate(kinds)]
    assert [plan.observe(one) for one in seen] == findings

"""Audits of validators: some unchanged pages are downloaded again, because a server may answer 304 for changed pages.

A re-visit is conditional (ETag, Last-Modified), and a server that answers *not modified* sends no content. If that
answer is wrong, the change is never seen. So every `EVERY`-th re-visit of a page is unconditional, unless the page was
downloaded in the last week: that is an *audit*. Its cost is bounded, at most one visit in `EVERY`. Pages of
one host are audited at different visits, so that a host is not judged by the same moment of all of them.

A host is found *lying*, and all of its pages are fetched unconditionally from then on, in two cases:

- *proof*: an audit returns other content under the validator that was stored: the same strong ETag, or no ETag and the
  same Last-Modified, if requests send it (`usable_validators`). (A weak ETag only promises the same meaning, so it
  needs another main text.)
- *evidence*: audits found `CHANGED` changes, and none of at least `SAME` conditional re-visits of the host found one.
  Both see the same pages at the same intervals, so an honest server has such a record with probability below 1 in 1,000
  (if a visit finds a change with probability p, below p²(1 − p)²⁰).

Which visits are audits is a function of the visits in the journal; the results are recorded as events `audit` and
`lying`, so that a resumed watch continues with the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surveyor.outcome import Event, Outcome, Visit, has_changed
from surveyor.web.caching import usable_validators

if TYPE_CHECKING:
    from surveyor.arrays import FloatArray, IntArray

EVERY = 10  # visits of a page: one of them is an audit
REST = 7 * 86_400.0  # seconds since the last download of a page
CHANGED, SAME = 2, 20  # found by audits, and conditional re-visits that found no change
PHASE = 7  # distinct phases of neighbouring pages


@dataclass(slots=True)
class Record:
    """What the re-visits of one host found."""

    same: int = 0  # conditional, not modified
    changed: int = 0  # conditional, modified
    audits: int = 0
    audits_changed: int = 0
    lying: str = ""  # why it is not trusted


class ValidatorAudits:
    """Which re-visits are unconditional, and what audits found."""

    def __init__(self, host_of: Callable[[int], str], *, rest: float = REST) -> None:
        """`host_of` returns the host of a page; a page is audited `rest` seconds after its last download or later."""
        self._host_of, self._rest = host_of, rest
        self.records: dict[str, Record] = {}
        self._visits: IntArray = np.zeros(0, np.int64)  # of each page
        self._full: FloatArray = np.zeros(0)  # time of the last download of each page
        self.running: set[int] = set()  # pages that are being audited
        self._past: set[tuple[int, float]] = set()  # audits before this run, by page and time

    def restore(self, events: Iterable[Event]) -> None:
        """Enter the events of earlier runs, before the visits."""
        for event in events:
            if event.kind == "lying":
                self._record(event.detail["host"]).lying = event.detail["why"]
            else:
                found = self._record(self._host_of(event.detail["page"]))
                found.audits += 1
                found.audits_changed += event.detail["changed"]
                self._past.add((event.detail["page"], event.detail["at"]))

    def was_audit(self, page: int, at: float) -> bool:
        """Return whether the visit of a page at a time was an audit; until `restored` is called."""
        return (page, at) in self._past

    def restored(self) -> None:
        """Forget what only the restored visits need."""
        self._past.clear()

    def is_full(self, page: int, now: float, *, has_validator: bool) -> bool:
        """Return whether to fetch a page unconditionally now; record it if that is an audit."""
        self._make_room(page)
        if not has_validator or self.is_lying(page):
            return True
        due = (self._visits[page] + PHASE * page) % EVERY == 0
        if due and now - self._full[page] >= self._rest:
            self.running.add(page)
            return True
        return False

    def is_lying(self, page: int) -> bool:
        """Return whether the host of a page is not trusted."""
        found = self.records.get(self._host_of(page))
        return found is not None and bool(found.lying)

    @property
    def lying(self) -> dict[str, str]:
        """The hosts that are not trusted, and why."""
        return {host: record.lying for host, record in self.records.items() if record.lying}

    def count(self, page: int, status: int, at: float, *, changed: bool | None) -> None:
        """Count a visit that fetched a page; `changed` is None if the page was not fetched before."""
        self._make_room(page)
        self._visits[page] += 1
        if status != 304:
            self._full[page] = at
        if changed is None or (page, at) in self._past:
            return
        if status == 304:
            self._record(self._host_of(page)).same += 1
        elif changed:
            self._record(self._host_of(page)).changed += 1

    def settle(self, outcome: Outcome, before: Visit | None) -> list[Event]:
        """Return the events of an audit that has ended; `before` is the visit that it is compared with."""
        if outcome.page not in self.running:
            return []
        self.running.discard(outcome.page)
        if outcome.kind != "fetched" or before is None or not isinstance(outcome, Visit) or outcome.status == 304:
            return []
        host = self._host_of(outcome.page)
        found, changed = self._record(host), differs(before, outcome)
        detail = {"page": outcome.page, "at": outcome.fetched_at, "changed": changed}
        events = [Event("audit", outcome.fetched_at, detail)]
        self._past.add((outcome.page, outcome.fetched_at))  # until it is counted
        found.audits += 1
        found.audits_changed += changed
        if not found.lying and (why := _lie(before, outcome, found) if changed else ""):
            found.lying = why
            events.append(Event("lying", outcome.fetched_at, {"host": host, "why": why}))
        return events

    def _record(self, host: str) -> Record:
        return self.records.setdefault(host, Record())

    def _make_room(self, page: int) -> None:
        if page >= self._visits.size:
            room = max(page + 1, 2 * self._visits.size) - self._visits.size
            self._visits = np.concatenate([self._visits, np.zeros(room, np.int64)])
            self._full = np.concatenate([self._full, np.full(room, -np.inf)])


def differs(before: Visit, after: Visit) -> bool:
    """Return whether the content of a page changed: its main text, or its bytes if one text is unknown."""
    return has_changed(before, after) is not False


def _lie(before: Visit, after: Visit, found: Record) -> str:
    """Return why a host is not trusted after an audit that found a change; empty if it still is."""
    if before.etag or after.etag:
        strong = not after.etag.startswith("W/") or bool(has_changed(before, after))
        if before.etag == after.etag and strong:
            return f"the same ETag for other content: {after.etag[:100]}"
    elif (
        after.last_modified == before.last_modified
        and usable_validators("", before.last_modified, before.fetched_at)[1] is not None  # else it is never sent
    ):
        return f"the same Last-Modified for other content: {after.last_modified[:100]}"
    if found.audits_changed >= CHANGED and found.same >= SAME and not found.changed:
        return f"{found.same:,} answers that nothing was modified, and {found.audits_changed:,} changes seen in audits"
    return ""

"""The joint coverage of all shards, from reports of any age or from a consistent cut.

**Any age.** Let a_i(t) be all mass that has arrived at page i up to time t. Without corrections (no revisit finds
other links, no negative mass) a_i never falls, and the importance of page i is r_i = (1 − d) · a_i(∞). Each page
belongs to one shard. Take one report of each shard, of any age, and let F be the pages that they report as fetched.
Then

    coverage of F = Σ_{i in F} r_i ≥ Σ_{i in F} (1 − d) · a_i(report) = Σ over shards (captured + (1 − d) · moving)

since a fetched page has settled (1 − d) · (a_i − residual_i). In the same way the pages outside F hold at least
Σ (lost + (1 − d) · (dying + waiting + blocked)). Neither sum needs a snapshot: mass that is reported twice, by the page
that it left and by the page that it has reached, counts once for each page, as it does in r. Mass in flight, in an
outbox or in the pool counts for neither bound. The lower bound also holds for all pages fetched later, and it never
falls. With `aliases`, a page that waits or is blocked may turn out to be a fetched page, so only pages gone lower the
upper bound.

**Consistent cut.** A correction withdraws mass, so a_i may fall, and reports of different ages may not be combined.
Then all reports must be of one *epoch*: a shard enters epoch e when the driver or a batch of epoch e says so, and
reports before it applies anything of epoch e. So no report counts a batch as received that no report counts as sent,
and

    importance = Σ over shards (settled + Σ residual_i · PPR_i) + Σ in flight · PPR

holds for these reports. Negative residuals, and negative mass in flight (the sum of the negative parts sent, minus
those received), lower the lower bound and raise the upper bound by their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from surveyor.crawler.ledger import DUST, CoverageInterval
from surveyor.crawler.shards.ledger import Accounts
from surveyor.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a shard reports of itself."""

    shard: int
    incarnation: int
    epoch: int  # that it was in
    accounts: Accounts
    corrected: bool  # whether it has ever had negative mass
    best: float  # the largest mass of a page that can be fetched now
    fetched: int  # pages
    known: int
    proxies: int  # known pages of other shards
    requests: int = 0
    bytes: int = 0
    idle: bool = False  # nothing to fetch, to send or to wait for
    cuts: int = 0  # batches cut so far, to all shards
    gots: int = 0  # batches received so far

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """Read plain values."""
        given = {field.name: values[field.name] for field in fields(cls)}
        return cls(**{**given, "accounts": Accounts(**values["accounts"])})


def joint_coverage(
    reports: Sequence[Report], *, damping: float, aliases: bool, consistent: bool = False
) -> CoverageInterval:
    """Return bounds on the coverage of the pages that the reports count as fetched.

    `reports` has one report of each shard; with `consistent`, all are of one epoch.
    """
    one_epoch = len({report.epoch for report in reports}) == 1
    if consistent and not one_epoch:
        raise UsageError("the reports are of several epochs", hint="collect those of one epoch")
    if not consistent and any(report.corrected for report in reports):
        raise UsageError("links were corrected, so reports of several ages cannot be combined", hint="use one epoch")
    total = _sums(report.accounts for report in reports)
    keeps = 1.0 - damping
    doubt = total["negative"] + max(-total["pool"], 0.0)
    if consistent:
        doubt += max(total["sent_negative"] - total["received_negative"], 0.0)
    low = total["captured"] + keeps * total["moving"] - doubt
    outside = total["dying"] + (0.0 if aliases else total["waiting"] + total["blocked"])
    high = 1.0 - total["lost"] - keeps * outside + doubt
    low = min(max(low, 0.0), 1.0)
    lost = total["lost"] + total["dying"]
    rest = 1.0 - total["captured"] - total["waiting"] - total["blocked"] - lost  # moving, in outboxes or in flight
    shown = [total["captured"], rest, total["waiting"], total["blocked"], lost]
    return CoverageInterval(low, min(max(high, low), 1.0), *(0.0 if abs(value) < DUST else value for value in shown))


def in_flight(reports: Iterable[Report]) -> float:
    """Return the mass that was sent and not received, by reports of one epoch."""
    total = _sums(report.accounts for report in reports)
    return total["sent"] - total["received"]


def _sums(accounts: Iterable[Accounts]) -> dict[str, float]:
    rows = [asdict(one) for one in accounts]
    return {name: sum(row[name] for row in rows) for name in rows[0]}

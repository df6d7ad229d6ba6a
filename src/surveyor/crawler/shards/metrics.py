"""The progress of a sharded crawl as metrics in the text format of Prometheus.

Counts are those of the shards' journals, so they do not restart from zero when a process or the whole crawl does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from surveyor.crawler.shards.bounds import Report
from surveyor.crawler.shards.director import Director

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ACCOUNTS = ("captured", "moving", "waiting", "blocked", "lost", "dying", "outbox")


class Metric(NamedTuple):
    """One metric: name, type and meaning."""

    name: str
    kind: str  # counter or gauge
    help: str


COUNTS = {  # by the field of a report
    "fetched": Metric("surveyor_pages_fetched_total", "counter", "Pages fetched."),
    "requests": Metric("surveyor_requests_total", "counter", "Requests sent, with robots.txt, redirects and retries."),
    "bytes": Metric("surveyor_received_bytes_total", "counter", "Bytes received."),
    "cuts": Metric("surveyor_batches_sent_total", "counter", "Batches of mass cut for other shards."),
    "gots": Metric("surveyor_batches_received_total", "counter", "Batches of mass applied."),
    "known": Metric("surveyor_pages_known", "gauge", "Known pages of the shard."),
    "proxies": Metric("surveyor_pages_of_other_shards", "gauge", "Known pages of other shards."),
    "incarnation": Metric("surveyor_shard_incarnation", "gauge", "Times that the shard was opened."),
}
MASS = Metric("surveyor_mass", "gauge", "Share of all mass in an account of the shard.")
LOW = Metric("surveyor_coverage_at_least", "gauge", "Certified lower bound on the joint coverage.")
HIGH = Metric("surveyor_coverage_at_most", "gauge", "Certified upper bound on the joint coverage.")
REPORTING = Metric("surveyor_shards_reporting", "gauge", "Shards that have reported since the crawl was started.")
SHARDS = Metric("surveyor_shards", "gauge", "Shards of the survey.")
RESTARTS = Metric("surveyor_process_restarts_total", "counter", "Processes of shards started again.")


def exposition(director: Director, restarts: int = 0) -> str:
    """Return all metrics; the coverage is missing until every shard has reported."""
    reports = [director.reports[shard] for shard in sorted(director.reports)]
    lines: list[str] = []
    for name, metric in COUNTS.items():
        lines += _lines(metric, ((_shard(report), getattr(report, name)) for report in reports))
    masses = ((_shard(report, name), getattr(report.accounts, name)) for report in reports for name in ACCOUNTS)
    lines += _lines(MASS, masses)
    single: dict[Metric, float] = {SHARDS: director.shards, REPORTING: len(reports), RESTARTS: restarts}
    if (now := director.coverage()) is not None:
        single |= {LOW: now.at_least, HIGH: now.at_most}
    for metric, value in single.items():
        lines += _lines(metric, [("", value)])
    return "\n".join(lines) + "\n"


def _shard(report: Report, account: str | None = None) -> str:
    more = "" if account is None else f',account="{account}"'
    return f'{{shard="{report.shard}"{more}}}'


def _lines(metric: Metric, values: Iterable[tuple[str, float]]) -> list[str]:
    rows = [f"{metric.name}{labels} {value!r}" for labels, value in values]
    return [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *rows]

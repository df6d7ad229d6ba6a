"""Log records of a crawl: fetch results at DEBUG, retries and backoff at INFO, failures of hosts at WARNING.

Everything logged here is also in the journal, which is the record that counts. Without a handler of that level a batch
costs one check.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from surveyor.outcome import Event, FetchResults, Outcome

FETCH = logging.getLogger("surveyor.fetch")


def log_results(results: FetchResults, url_of: Callable[[int], str], now: float) -> None:
    """Log a batch of outcomes, robots.txt files and events at the time `now`."""
    if FETCH.isEnabledFor(logging.DEBUG):
        for outcome in results.outcomes:
            _log_outcome(outcome, url_of)
        for file in results.robots:
            fields = {"origin": file.origin, "status": file.status, "bytes": len(file.body)}
            FETCH.debug("robots.txt of %s: %s", file.origin, file.status or "no response", extra={"fields": fields})
    for event in results.events:
        _log_event(event, url_of, now)


def _log_outcome(outcome: Outcome, url_of: Callable[[int], str]) -> None:
    url = url_of(outcome.page)
    fields: dict[str, Any] = {"url": url, "kind": outcome.kind, "reason": outcome.reason}
    for name in ("status", "seconds", "size", "title"):
        if value := getattr(outcome, name, None):
            fields[name] = value
    details = [str(fields[name]) for name in ("status", "reason") if fields.get(name)]
    if outcome.kind == "fetched":
        fields["links"] = outcome.links.size
    elif outcome.kind == "redirected":
        fields["target"] = url_of(outcome.target)
        details.append(f"to {fields['target']}")
    suffix = f" ({', '.join(details)})" if details else ""
    FETCH.debug("%s %s%s", outcome.kind, url, suffix, extra={"fields": fields})


def _log_event(event: Event, url_of: Callable[[int], str], now: float) -> None:
    detail: Mapping[str, Any] = event.detail
    why, until = detail.get("why") or "no reason recorded", detail.get("until")
    wait = "not again in this run" if until is None else f"in {max(0.0, until - now):.0f} s"
    if event.kind == "retry" and FETCH.isEnabledFor(logging.INFO):
        url = url_of(detail["page"])
        fields = {"url": url, "failures": detail["tries"], "until": until, "reason": why}
        FETCH.info("retry of %s %s, after failure %d: %s", url, wait, detail["tries"], why, extra={"fields": fields})
    elif event.kind == "backoff":
        fields = {"host": detail["host"], "until": until, "reason": why}
        FETCH.info("backoff of %s, next request %s: %s", detail["host"], wait, why, extra={"fields": fields})
    elif event.kind == "robots_retry":
        why = detail.get("why") or f"http {detail.get('status')}"
        fields = {"origin": detail["origin"], "failures": detail["tries"], "until": until, "reason": why}
        text = "robots.txt of %s cannot be fetched, retry %s: %s"
        FETCH.warning(text, detail["origin"], wait, why, extra={"fields": fields})
    elif event.kind == "offline":
        FETCH.warning("no network, retry %s: %s", wait, why, extra={"fields": {"until": until, "reason": why}})

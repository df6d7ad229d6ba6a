"""Interpret the response to a request for robots.txt: follow a redirect, or return rules (RFC 9309, 2.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surveyor.fetch.http import REDIRECTS, Fetched
from surveyor.fetch.responses import CUT
from surveyor.web.boundary import Failure, guarded
from surveyor.web.robots import Robots
from surveyor.web.urls import normalise, origin

HOPS = 5  # maximum redirects


def next_hop(fetched: Fetched, before: Sequence[str]) -> tuple[str, Fetched]:
    """Return the URL to request next, if any, and the effective response; `before` are the URLs requested so far.

    Too many redirects, a redirect loop, or a redirect without a valid target count as a missing file.
    """
    if fetched.status not in REDIRECTS:
        return "", fetched
    target = None if fetched.target is None else normalise(fetched.target)  # even if the body was cut off
    if target is None or target in before or len(before) > HOPS:
        return "", replace(fetched, status=404, error="", body=b"")
    return target, fetched


def interpreted(fetched: Fetched) -> Fetched:
    """Return the response unchanged if its rules can be parsed, else as a failure, which permits nothing."""
    found = guarded(fetched.url, _try_rules, fetched)
    if not isinstance(found, Failure):
        return fetched
    return replace(fetched, status=None, error="protocol", detail=f"robots.txt {found.reason}", body=b"")


def _try_rules(fetched: Fetched) -> None:
    robots = rules_in(fetched)[1]
    robots.why(f"{origin(fetched.url)}/")
    _ = robots.crawl_delay, robots.sitemaps


def rules_in(fetched: Fetched) -> tuple[int | None, Robots]:
    """Return the effective status and the rules; a body that was cut off is used as far as it goes."""
    status = None if fetched.error and not (fetched.error in CUT and fetched.body) else fetched.status
    return status, Robots.from_answer(status, fetched.body)

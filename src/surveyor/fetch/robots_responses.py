"""What an answer to the request for a robots.txt means: go on elsewhere, or rules (RFC 9309, 2.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surveyor.fetch.http import REDIRECTS, Fetched
from surveyor.fetch.responses import CUT
from surveyor.web.boundary import Failure, guarded
from surveyor.web.robots import Robots
from surveyor.web.urls import normalise, origin

HOPS = 5  # redirects that are followed


def next_hop(fetched: Fetched, before: Sequence[str]) -> tuple[str, Fetched]:
    """Return where to ask next, if anywhere, and the answer as it counts; `before` are the URLs asked so far.

    A redirect too many, in a circle, or to no page means that there is no such file.
    """
    if fetched.status not in REDIRECTS:
        return "", fetched
    target = None if fetched.target is None else normalise(fetched.target)  # though its body was cut off
    if target is None or target in before or len(before) > HOPS:
        return "", replace(fetched, status=404, error="", body=b"")
    return target, fetched


def interpreted(fetched: Fetched) -> Fetched:
    """Return an answer as it is if its rules can be read, else as a failure: then nothing may be fetched."""
    found = guarded(fetched.url, _try_rules, fetched)
    if not isinstance(found, Failure):
        return fetched
    return replace(fetched, status=None, error="protocol", detail=f"robots.txt {found.reason}", body=b"")


def _try_rules(fetched: Fetched) -> None:
    robots = rules_in(fetched)[1]
    robots.why(f"{origin(fetched.url)}/")
    _ = robots.crawl_delay, robots.sitemaps


def rules_in(fetched: Fetched) -> tuple[int | None, Robots]:
    """Return the status that counts and the rules; what was cut off in the middle counts as far as it goes."""
    status = None if fetched.error and not (fetched.error in CUT and fetched.body) else fetched.status
    return status, Robots.from_answer(status, fetched.body)

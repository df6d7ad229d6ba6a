"""Embedded web for tests of crawlers: many hosts on loopback, with known ground truth.

    >>> from urllib.request import ProxyHandler, build_opener
    >>> with running(WebSettings.plain()) as web:
    ...     opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{web.port}"}))
    ...     status = opener.open(web.seeds[0], timeout=10).status
    ...     truth = web.truth()
    >>> status, truth.status(web.seeds[0]), [request.status for request in web.log]
    (200, 'fetched', [200])
    >>> truth.coverage(truth.urls)[0] > 1 - 1e-9
    True

`WebSettings` switches features (redirects, traps, errors, robots.txt files, …), `PerfectCrawler` defines the crawler
that the ground truth refers to, and `Truth` has the link graph, and the status and importance of every URL.
"""

from surveyor.testing.web_plan import WebSettings
from surveyor.testing.web_server import EmbeddedWeb, LoopbackResolver, Request, running, serve
from surveyor.testing.web_truth import STATUSES, PerfectCrawler, Truth

__all__ = [
    "STATUSES",
    "EmbeddedWeb",
    "LoopbackResolver",
    "PerfectCrawler",
    "Request",
    "Truth",
    "WebSettings",
    "running",
    "serve",
]

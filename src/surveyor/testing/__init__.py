"""For tests of crawlers: a web on this machine whose truth is known.

    >>> from urllib.request import ProxyHandler, build_opener
    >>> with running(WebSettings.plain()) as web:
    ...     opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{web.port}"}))
    ...     status = opener.open(web.seeds[0], timeout=10).status
    ...     truth = web.truth()
    >>> status, truth.fate(web.seeds[0]), [request.status for request in web.log]
    (200, 'fine', [200])
    >>> truth.coverage(truth.urls)[0] > 1 - 1e-9
    True

`WebSettings` switches features (redirects, traps, errors, robots.txt files and so on), `PerfectCrawler` says what
truth is to be compared with, and `Truth` has the graph, the fates and the importance of all pages.
"""

from surveyor.testing.web import EmbeddedWeb, LoopbackResolver, Request, running, serve
from surveyor.testing.web_settings import WebSettings
from surveyor.testing.web_truth import FATES, PerfectCrawler, Truth

__all__ = [
    "FATES",
    "EmbeddedWeb",
    "LoopbackResolver",
    "PerfectCrawler",
    "Request",
    "Truth",
    "WebSettings",
    "running",
    "serve",
]

"""Listed pages of a survey: known in advance, from sitemaps or with weight 0, and the orphans among them.

An orphan is a fetched listed page that no path of fetched links leads to from a seed: it has no importance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.replay import listed_in_scope

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.crawler.replay import Derived
    from surveyor.store.manifest import Manifest


def pages_of(manifest: Manifest, state: Derived) -> IdArray:
    """Return the listed pages in scope; redirected ones are named as listed."""
    known = [state.urls.find(url) for url in listed_in_scope(manifest)]
    return np.array([page for page in known if page is not None], np.int32)


def counts(manifest: Manifest, state: Derived) -> dict[str, int]:
    """Return the number of listed pages in scope, and how many of them are fetched and queued."""
    from surveyor.kernels.mass import FETCHED, STATUS, WAITING

    pages = pages_of(manifest, state)
    status = state.crawl.ledger.state[pages] & STATUS
    fetched, queued = (int(np.count_nonzero(status == one)) for one in (FETCHED, WAITING))
    return {"pages": pages.size, "fetched": fetched, "queued": queued}


def orphans(manifest: Manifest, state: Derived) -> list[int]:
    """Return the fetched listed pages that no link from a fetched page with importance leads to."""
    from surveyor.kernels.mass import FETCHED, STATUS

    pages, ledger = pages_of(manifest, state), state.crawl.ledger
    fetched = pages[ledger.state[pages] & STATUS == FETCHED]
    return [page for page in fetched.tolist() if ledger.importance_of(page) == 0]


def rows(pages: list[int], state: Derived, title: Any) -> list[dict[str, Any]]:
    """Return the URL and title of pages."""
    return [{"url": state.urls[page], "title": title(page)} for page in pages]

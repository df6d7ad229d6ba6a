"""How much of a focused crawl is on its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surveyor.crawler.topics.focus import UrlTopic
from surveyor.crawler.topics.rules import is_url_rule

if TYPE_CHECKING:
    from surveyor.crawler.replay import Derived
    from surveyor.store.directory import SurveyFolder


def topic_of(folder: SurveyFolder, state: Derived) -> dict[str, Any] | None:
    """Return the rule, the pages judged and on topic, and a lower bound of the importance of those; None if none.

    Pages that are not HTML, and all pages of a survey from elsewhere whose topic URLs decide, are not judged.
    """
    from surveyor.kernels.mass import FETCHED, STATUS

    rule = str(folder.manifest.setting("topic"))
    if not rule:
        return None
    ledger = state.crawl.ledger
    fetched = np.flatnonzero(ledger.state & STATUS == FETCHED).astype(np.int32)
    judged: dict[int, bool] = {}
    if is_url_rule(rule):
        if folder.manifest.authentic:
            judged = dict(zip(fetched.tolist(), (UrlTopic(rule, state.urls)(fetched) > 0).tolist(), strict=True))
    else:
        for event in folder.journal.events("topic"):
            judged |= dict.fromkeys(event.detail["on"], True) | dict.fromkeys(event.detail["off"], False)
    known = set(fetched.tolist())
    on = [page for page, is_on in judged.items() if is_on and page in known]
    return {
        "rule": rule,
        "judged": len(known & judged.keys()),
        "on_topic": len(on),
        "at_least": float(sum(map(ledger.importance_of, on))),
    }

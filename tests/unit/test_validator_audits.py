"""Which audits show that the validators of a host are wrong."""

from __future__ import annotations

import pytest

from surveyor.crawler.validator_audits import ValidatorAudits
from surveyor.outcome import Visit

AT = 1_750_000_000.0  # 2025-06-15


@pytest.mark.parametrize(
    ("modified", "lies"),
    [
        ("Tue, 10 Jun 2025 10:00:00 GMT", True),
        ("Tue, 19 Jan 2038 03:14:07 GMT", False),  # never sent back, so no answer depended on it
        ("yesterday", False),
        ("", False),
    ],
)
def test_a_date_that_is_never_sent_is_no_lie(modified: str, lies: bool) -> None:
    audits = ValidatorAudits(lambda _page: "a.example", rest=0.0)
    before = Visit(0, "fetched", status=200, fetched_at=AT, hash=b"a", last_modified=modified)
    after = Visit(0, "fetched", status=200, fetched_at=AT + 60, hash=b"b", last_modified=modified)
    assert audits.is_full(0, AT + 60, has_validator=True)
    kinds = [event.kind for event in audits.settle(after, before)]
    assert kinds == (["audit", "lying"] if lies else ["audit"])
    assert bool(audits.lying) == lies

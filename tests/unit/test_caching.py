"""Caching headers: until when a page is declared fresh, and which validators are sent again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surveyor.web.caching import LATEST, expiry, http_date, usable_validators

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT
SENT = "Tue, 14 Nov 2023 22:13:20 GMT"
LATER = "Tue, 14 Nov 2023 22:14:20 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": 'PUBLIC, Max-Age="60"'}, 60),
        ({"cache-control": "s-maxage=9, max-age=60"}, 60),  # this is not a shared cache
        ({"cache-control": "max-age=60", "age": "20"}, 40),
        ({"cache-control": "max-age=60", "age": "99"}, 0),
        ({"cache-control": "max-age=60, no-store"}, 0),
        ({"cache-control": "no-cache\nmax-age=60"}, 0),
        ({"cache-control": "max-age=-60"}, 0),
        ({"cache-control": "max-age=soon", "expires": LATER}, 0),  # max-age takes precedence, valid or not
        ({"cache-control": "max-age=1e9"}, 0),
        ({"cache-control": "max-age=٦٠"}, 0),
        ({"expires": LATER}, 60),
        ({"expires": LATER, "date": LATER}, 0),
        ({"expires": LATER, "date": SENT, "age": "10"}, 50),
        ({"expires": LATER, "date": "yesterday"}, 60),
        ({"expires": "0"}, 0),
        ({"expires": "-1", "cache-control": "private"}, 0),
        ({"cache-control": "max-age=0", "expires": LATER}, 0),
    ],
)
def test_when_a_page_expires(headers: dict[str, str], seconds: int) -> None:
    assert expiry(headers, NOW) == (NOW + seconds if seconds else 0.0)


def test_a_page_expires_at_the_latest_in_the_year_9999() -> None:
    assert expiry({"cache-control": f"max-age={'9' * 500}"}, NOW) == LATEST


@given(st.dictionaries(st.sampled_from(["cache-control", "expires", "date", "age"]), st.text()), st.floats(0, LATEST))
def test_any_header_gives_a_valid_time(headers: dict[str, str], at: float) -> None:
    until = expiry(headers, at)
    assert until == 0.0 or at <= until <= LATEST


@pytest.mark.parametrize(
    "text", ["", "0", "now", "Tue, 99 Nov 2023 22:13:20 GMT", "Fri, 01 Jan 1960 00:00:00 GMT", "x" * 9999]
)
def test_what_is_no_date(text: str) -> None:
    assert http_date(text) is None


def test_dates_in_the_three_formats() -> None:
    assert (
        http_date(SENT) == http_date("Tuesday, 14-Nov-23 22:13:20 GMT") == http_date("Tue Nov 14 22:13:20 2023") == NOW
    )


@pytest.mark.parametrize(
    ("etag", "modified", "sent"),
    [
        ("", "", (None, None)),
        ('"1"', "", ('"1"', None)),
        ('W/"1"', SENT, ('W/"1"', SENT)),
        ("", "yesterday", (None, None)),
        ("", LATER, (None, None)),  # in the future: the server would never see a change
    ],
)
def test_validators_that_are_sent_again(etag: str, modified: str, sent: tuple[str | None, str | None]) -> None:
    assert usable_validators(etag, modified, NOW + 30) == sent


def test_a_page_of_the_same_second_may_change_again() -> None:
    assert usable_validators("", SENT, NOW + 0.5) == (None, None)
    assert usable_validators("", SENT, NOW + 1) == (None, SENT)

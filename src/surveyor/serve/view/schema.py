"""Tables and arrays of a view.

The file `pages.sqlite` has what a query returns; the arrays have what it selects and sorts by. An array has one entry
per row of its table, by id, and its missing values are -1, or NaN. Filters and counts over arrays read a few bytes per
page in sequence: a million pages take milliseconds, for any combination of filters, so that all counts are exact.

    pages     one row per known URL            id = page id of the journal
    hosts     one row per host                 id in order of discovery
    domains   one row per registrable domain   id in order of discovery
    folders   one row per folder               id in order of discovery, its parent first
    words     texts of coded columns           kind (reason, language, type), id; 0 is no text
    facets    number of pages by value         kind, value, pages
    blocked   reasons of blocked pages         reason, pages, mass
    curve     bounds of coverage               pages, seconds, at_least, at_most, sampled
    meta      key, value
"""

from __future__ import annotations

from typing import Any

import numpy as np

VERSION = 1
DATABASE = "pages.sqlite"
GRAPH = "graph"
STATUSES = ("out of scope", "queued", "fetched", "blocked", "gone", "redirected")  # by code, as in `survey.tables`
CODED = ("reason", "language", "type")  # columns of pages that are codes of `words`
FACETS = ("status", "http_status", "reason", "depth", "type", "language", "host", "domain")

SUMS = {  # of the pages of a site
    **dict.fromkeys(("pages", "fetched", "queued", "blocked", "gone", "redirected", "out_of_scope"), "INTEGER"),
    "share": "REAL",
    "mass": "REAL",
    "bytes": "INTEGER",
}
TABLES: dict[str, dict[str, str]] = {
    "pages": {
        "id": "INTEGER PRIMARY KEY",
        "url": "TEXT",
        "host": "TEXT",
        "domain": "TEXT",
        "folder": "TEXT",
        "status": "TEXT",
        "reason": "TEXT",
        "http_status": "INTEGER",
        "depth": "INTEGER",
        "type": "TEXT",
        "language": "TEXT",
        "title": "TEXT",
        "share": "REAL",
        "score": "REAL",
        "position": "INTEGER",
        "in_links": "INTEGER",
        "out_links": "INTEGER",
        "bytes": "INTEGER",
        "seconds": "REAL",
        "fetched_at": "REAL",
        "visits": "INTEGER",
        "redirected_to": "INTEGER",
        "mass": "REAL",
        "priority": "REAL",
    },
    "hosts": {"id": "INTEGER PRIMARY KEY", "host": "TEXT UNIQUE", "domain": "TEXT", **SUMS},
    "domains": {"id": "INTEGER PRIMARY KEY", "domain": "TEXT UNIQUE", "hosts": "INTEGER", **SUMS},
    "folders": {
        "id": "INTEGER PRIMARY KEY",
        "prefix": "TEXT UNIQUE",
        "parent": "INTEGER",
        "pages": "INTEGER",
        "own_pages": "INTEGER",
        "share": "REAL",
        "own_share": "REAL",
    },
    "words": {"kind": "TEXT", "id": "INTEGER", "value": "TEXT"},
    "facets": {"kind": "TEXT", "value": "", "pages": "INTEGER"},
    "blocked": {"reason": "TEXT", "pages": "INTEGER", "mass": "REAL"},
    "curve": dict.fromkeys(("pages", "seconds", "at_least", "at_most", "sampled"), "REAL"),
    "meta": {"key": "TEXT PRIMARY KEY", "value": ""},
}
# Arrays of pages: what is read from URLs and visits, kept from one build to the next, and what is computed each time.
KEPT: dict[str, Any] = {
    "host": np.int32,
    "folder": np.int32,
    "type": np.int32,
    "reason": np.int32,
    "language": np.int32,
    "http_status": np.int16,
    "bytes": np.int64,
    "seconds": np.float64,
    "fetched_at": np.float64,
    "visits": np.int32,
    "redirected_to": np.int32,
    "transferred": np.int64,  # bytes of all visits
}
COMPUTED: dict[str, Any] = {
    "status": np.uint8,
    "depth": np.int32,
    "domain": np.int32,
    "share": np.float64,
    "score": np.float64,
    "position": np.int32,
    "in_links": np.int32,
    "out_links": np.int32,
    "mass": np.float64,
    "priority": np.float64,
}
# Sortable columns of each table. True: the natural order has the largest first.
SORTS: dict[str, dict[str, bool]] = {
    "pages": {
        "url": False,
        "title": False,
        "depth": False,
        **dict.fromkeys(
            ("share", "in_links", "out_links", "bytes", "seconds", "fetched_at", "visits", "mass", "priority"), True
        ),
    },
    "hosts": {
        "host": False,
        **dict.fromkeys(("share", "pages", "fetched", "queued", "blocked", "gone", "mass", "bytes"), True),
    },
    "domains": {
        "domain": False,
        **dict.fromkeys(("share", "pages", "hosts", "fetched", "queued", "blocked", "gone", "mass", "bytes"), True),
    },
}
TEXTS = {"pages": ("url", "title"), "hosts": ("host",), "domains": ("domain",)}  # columns that are searched


def create(table: str) -> str:
    """Return the statement that creates a table."""
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}'.strip() for name, kind in TABLES[table].items())})"

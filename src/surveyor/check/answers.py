"""Answers to requests for external links, kept in the survey, so that a later audit need not request them again.

The file `answers.json` has `{"schema": 1, "answers": {URL: [time, problem, refusal]}}`. As a cache, it may be deleted,
and a file that cannot be read is replaced.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from surveyor.errors import SurveyError
from surveyor.graph.formats.streams import atomic_write
from surveyor.store.layout import ANSWERS, read_inside

SCHEMA = 1
INVALID = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
LONGEST = 50_000_000  # bytes of the file
KEPT = 90 * 86_400.0  # seconds that an answer is kept at most


class Probe(NamedTuple):
    """The answer to a request."""

    url: str
    problem: str = ""  # empty if the URL can be read, or if that is unknown
    refused: str = ""  # by robots.txt or by the server, so it is not judged
    at: float = 0.0  # seconds since 1970


def read_answers(folder: Path, newest: float, max_age: float) -> dict[str, Probe]:
    """Return the answers in a survey that are at most `max_age` seconds old at the time `newest`."""
    try:
        document = json.loads(read_inside(folder, ANSWERS, LONGEST))
        entries = document["answers"] if document["schema"] == SCHEMA else {}
        found = [
            Probe(str(url), str(problem), str(refused), float(at)) for url, (at, problem, refused) in entries.items()
        ]
    except (*INVALID, SurveyError):
        return {}
    return {one.url: one for one in found if 0 <= newest - one.at <= max_age}


def write_answers(folder: Path, before: Mapping[str, Probe], new: Iterable[Probe]) -> None:
    """Write the answers of a survey; new ones replace those of before."""
    now = time.time()
    every = {**before, **{one.url: one for one in new}}
    kept = {url: [one.at, one.problem, one.refused] for url, one in sorted(every.items()) if now - one.at <= KEPT}
    text = json.dumps({"schema": SCHEMA, "answers": kept}, indent=0)
    with atomic_write(folder / ANSWERS) as draft, draft.open("x", encoding="utf-8") as file:
        file.write(text)

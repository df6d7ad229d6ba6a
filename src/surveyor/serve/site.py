"""What the views of a server share: its surveys, jobs and tables, and the checked parameters of one request."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.serve.security import Identity, Refused
from surveyor.store import published
from surveyor.store.manifest import Manifest

if TYPE_CHECKING:
    from starlette.requests import Request

    from surveyor.serve.events import Hub
    from surveyor.serve.jobs import Jobs
    from surveyor.serve.surveys import Surveys
    from surveyor.serve.tables import Tables
    from surveyor.serve.view.view import View

MOST_COSTLY = 2  # queries and texts at once
LONGEST = 4_000  # characters of one parameter
LISTED = "text status reason type language host domain folder http_status depth limit sort order after level show"
PARAMETERS = frozenset(LISTED.split())  # of lists; only these are repeated in the links of a page


@dataclass(slots=True)
class Site:
    """One server."""

    identity: Identity
    surveys: Surveys
    jobs: Jobs
    tables: Tables
    hub: Hub | None = None
    notes: dict[str, str] = field(default_factory=dict)  # name of a survey -> the last answer to a command
    costly: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_COSTLY))
    waiting: int = 0  # costly requests, with those that are computed


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a page: its parameters are checked when they are read."""

    site: Site
    request: Request
    name: str = ""  # of the survey
    folder: Path = field(default_factory=Path)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter as text."""
        value = self.request.query_params.get(name, default)
        if len(value) > LONGEST:
            raise Refused(400, f"{name} is longer than {LONGEST:,} characters.")
        return value

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of a list, for the addresses of its other parts."""
        return {name: self.text(name) for name in self.request.query_params if name in PARAMETERS}

    def choice(self, name: str, values: Sequence[str], default: str) -> str:
        """Return a parameter that is one of these."""
        value = self.text(name) or default
        if value not in values:
            raise Refused(400, f"{name} must be one of {', '.join(filter(None, values))}; got {value!r:.60}.")
        return value

    def whole(self, name: str, default: int | None, least: int = 0, most: int = 2**53) -> int | None:
        """Return a parameter that is a whole number, or the default if it is missing or empty."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 18 and least <= int(value) <= most):
            raise Refused(400, f"{name} must be a whole number from {least:,} to {most:,}; got {value!r:.60}.")
        return int(value)

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a parameter that is a finite number, or the default if it is missing or empty."""
        value = self.text(name)
        if not value:
            return default
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise Refused(400, f"{name} must be a number; got {value!r:.60}.")
        return found

    @property
    def live(self) -> dict[str, Any] | None:
        """The state that the crawl or watch of this survey published, running or not."""
        return published.read(self.folder)

    @property
    def manifest(self) -> Manifest:
        """The seeds and settings of the survey."""
        return Manifest.read(self.folder)

    @property
    def view(self) -> View | None:
        """The tables of the survey; None while they are not built yet."""
        return self.site.tables.open(self.folder)

"""Validation of `survey.toml`: a survey may come from elsewhere, so every value is checked before it is used.

Nothing is imported because of it: for a user-defined strategy class the manifest stores the numbers that a replay
needs (`replay`), and only the syntax of its name is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from surveyor.config import FIELDS, Settings, names_code
from surveyor.errors import UsageError
from surveyor.stopping import parse_rule
from surveyor.web.scope import Scope
from surveyor.web.urls import domain, host, normalise

CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
MOST_PATTERNS = 10_000
LONGEST_PATTERN = 10_000  # characters
REPLAY: dict[str, type] = {"closure": float, "eager": bool, "rereads": bool}


def check_manifest(table: Mapping[str, Any]) -> None:
    """Raise ValueError with the problem unless seeds, rng, settings, origins and replay are valid and consistent."""
    seeds, settings = table["seeds"], table["settings"]
    _check_seeds(seeds)
    if type(table["rng"]) is not int or not 0 <= table["rng"] < 1 << 64:
        raise ValueError("rng must be a whole number from 0 to 2**64 - 1")
    if not isinstance(settings, dict) or not _is_text(table["origins"]):
        raise ValueError("settings must be a table, and origins a table of text")
    try:
        _check_settings(settings)
        kind = settings.get("scope") or (Scope.of_seeds(seeds).kind if seeds else "any")
        include, exclude = (tuple(settings.get(name, ())) for name in ("include", "exclude"))
        Scope(kind, tuple(seeds), include, exclude, settings.get("depth"), domain=domain)
    except UsageError as error:
        raise ValueError(f"{error.problem}; {error.hint}") from error
    _check_replay(table.get("replay", {}))


def _check_seeds(seeds: Any) -> None:
    if not isinstance(seeds, list):
        raise ValueError("seeds must be a list of URLs")
    for seed in seeds:
        if not isinstance(seed, str) or normalise(seed) != seed or not host(seed):
            raise ValueError(f"the seed {str(seed)[:200]!r} is not the URL of a page")


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = {name: value for name, value in settings.items() if name in FIELDS}
    for name in ("include", "exclude"):
        patterns = known.get(name, ())
        if isinstance(patterns, list) and len(patterns) > MOST_PATTERNS:
            raise ValueError(f"{name} has {len(patterns):,} patterns, more than {MOST_PATTERNS:,}")
        if any(len(str(pattern)) > LONGEST_PATTERN for pattern in patterns):
            raise ValueError(f"{name} has a pattern of more than {LONGEST_PATTERN:,} characters")
    chosen = Settings(**known)
    parse_rule(chosen.until)
    if names_code(chosen.strategy) and CLASS.fullmatch(chosen.strategy.strip()) is None:
        raise ValueError(f"strategy must be a name or module:Class, not {chosen.strategy[:200]!r}")


def _check_replay(replay: Any) -> None:
    if not isinstance(replay, dict) or replay.keys() - REPLAY:
        raise ValueError(f"replay must be a table of {', '.join(REPLAY)}")
    for name, value in replay.items():
        if type(value) is not REPLAY[name] or (isinstance(value, float) and not value > 0):
            raise ValueError(f"{name} of replay must be a {'number' if REPLAY[name] is float else 'switch'}")


def _is_text(table: Any) -> bool:
    return isinstance(table, dict) and all(isinstance(value, str) for value in table.values())

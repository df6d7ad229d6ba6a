"""The manifest of a survey, `survey.toml`: seeds, settings and their origins, versions, random seed, and a signature.

A survey may come from elsewhere, so every value is checked before it is used (`check_manifest`). Nothing is imported
because of it: for a user-defined strategy class the manifest stores the numbers that a replay needs (`replay`), and
only the syntax of its name is checked.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import surveyor
from surveyor.config import FIELDS, Settings, names_code
from surveyor.errors import SurveyError, UsageError
from surveyor.stopping import parse_rule
from surveyor.store import signing
from surveyor.store.layout import MANIFEST, read_inside
from surveyor.web.scope import Scope
from surveyor.web.urls import domain, host, normalise

FORMAT, VERSION = "surveyor-survey", 1
ELSEWHERE, VOUCHED = "elsewhere", "trusted survey"  # origins of settings that came with a survey
FIRST_LINE = "# A survey by surveyor. Run the same command again to resume it.\n"
BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
MOST_PATTERNS = 10_000
LONGEST_PATTERN = 10_000  # characters
REPLAY: dict[str, type] = {"closure": float, "eager": bool, "rereads": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of `survey.toml`."""

    seeds: tuple[str, ...]
    rng: int
    weights: Mapping[str, float] = field(default_factory=dict)  # of seeds in random jumps, if not 1
    listed: tuple[str, ...] = ()  # pages known in advance that no jump leads to
    settings: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)  # setting -> "default", "flag", a file, …
    created: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    surveyor: str = surveyor.__version__  # version that created the survey
    replay: Mapping[str, Any] = field(default_factory=dict)  # replay data of a user-defined strategy
    signature: str = field(default="", compare=False)  # of the last writer, see `signed`
    authentic: bool = field(default=True, compare=False)  # whether this user signed it: false for one from elsewhere

    def signed(self, journal: str) -> Manifest:
        """Return a copy with this user's signature for the survey whose journal has this identity."""
        return replace(self, signature=signing.sign("survey", self._message(journal)), authentic=True)

    def verified(self, journal: str) -> Manifest:
        """Return a copy that is authentic only if this user signed exactly this content for this journal."""
        return replace(self, authentic=signing.is_signed("survey", self._message(journal), self.signature))

    @property
    def own_patterns(self) -> bool:
        """Whether this user wrote, or vouched for, all scope patterns."""
        return self.authentic and ELSEWHERE not in (self.origins.get("include"), self.origins.get("exclude"))

    @property
    def seed_weights(self) -> list[float]:
        """The weight of each seed."""
        return [float(self.weights.get(seed, 1.0)) for seed in self.seeds]

    @property
    def written_seeds(self) -> list[str]:
        """The seeds as a user writes them, with their weights if they are not 1."""
        return [f"{seed} {self.weights[seed]:.15g}" if seed in self.weights else seed for seed in self.seeds]

    def setting(self, name: str) -> Any:
        """Return a setting, or its default if the manifest, which may come from elsewhere, does not have it."""
        return self.settings.get(name, getattr(Settings(), name))

    def foreign_origins(self, names: Iterable[str]) -> dict[str, str]:
        """Return the origins of those settings that came from elsewhere, to be recorded in another manifest."""
        return {name: ELSEWHERE for name in names if not self.authentic or self.origins.get(name) == ELSEWHERE}

    def _message(self, journal: str) -> bytes:
        settings = {name: value for name, value in self.settings.items() if value is not None}  # TOML has no null
        identity, created = journal.partition(".")[0], self.created.isoformat()
        parts = [identity, list(self.seeds), self.rng, settings, self.origins, created, self.surveyor, self.replay]
        if self.weights or self.listed:  # surveys without them were signed before they existed
            parts.append([self.weights, list(self.listed)])
        return json.dumps(parts, sort_keys=True, default=list).encode()

    def to_toml(self) -> str:
        """Return the manifest as TOML."""
        about = {"format": FORMAT, "version": VERSION, "surveyor": self.surveyor, "created": self.created}
        signature = {"signature": self.signature} if self.signature else {}
        listed = {"listed": list(self.listed)} if self.listed else {}
        weights = {"weights": self.weights} if self.weights else {}
        body = {"rng": self.rng, "seeds": list(self.seeds), **listed, **weights}
        body |= {"settings": self.settings, "origins": self.origins}
        replay = {"replay": self.replay} if self.replay else {}
        return FIRST_LINE + toml({**about, **signature, **body, **replay})

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a survey and reject one that is damaged or newer; not authentic until `verified`."""
        try:
            table = tomllib.loads(read_inside(folder, MANIFEST).decode())
            if table["format"] == FORMAT and table["version"] > VERSION:
                raise SurveyError(
                    f"{folder} was created by a newer surveyor (version {table['version']}; "
                    f"this one reads up to {VERSION})",
                    hint="pip install --upgrade surveyor",
                )
            if table["format"] != FORMAT or not isinstance(table["created"], datetime):
                raise ValueError(f"format must be {FORMAT!r}, got {str(table['format'])[:50]!r}")
            check_manifest(table)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            raise SurveyError(f"{folder / MANIFEST} is damaged ({why})", hint="fix it or restore a copy") from error
        return cls(
            seeds=tuple(table["seeds"]),
            rng=table["rng"],
            weights=table.get("weights", {}),
            listed=tuple(table.get("listed", ())),
            settings=table["settings"],
            origins=table["origins"],
            created=table["created"],
            surveyor=str(table.get("surveyor", "")),
            replay=table.get("replay", {}),
            signature=str(table.get("signature", "")),
            authentic=False,
        )


def check_manifest(table: Mapping[str, Any]) -> None:
    """Raise ValueError with the problem unless seeds, rng, settings, origins and replay are valid and consistent."""
    seeds, settings = table["seeds"], table["settings"]
    _check_seeds(seeds)
    _check_seeds(table.get("listed", []), "listed page")
    _check_weights(table.get("weights", {}), seeds)
    if type(table["rng"]) is not int or not 0 <= table["rng"] < 1 << 64:
        raise ValueError(f"rng must be an integer from 0 to 2**64 - 1, got {str(table['rng'])[:50]}")
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


def _check_seeds(seeds: Any, what: str = "seed") -> None:
    if not isinstance(seeds, list):
        raise ValueError(f"{what}s must be a list of URLs")
    for seed in seeds:
        if not isinstance(seed, str) or normalise(seed) != seed or not host(seed):
            raise ValueError(f"each {what} must be a normalised URL of a page, got {str(seed)[:200]!r}")


def _check_weights(weights: Any, seeds: Sequence[str]) -> None:
    if not isinstance(weights, dict) or not weights.keys() <= set(seeds):
        raise ValueError("weights must be a table of numbers, by seed")
    for seed, weight in weights.items():
        if type(weight) not in (int, float) or not 0 < weight <= sys.float_info.max:  # an integer may be larger
            got = "more than a float holds" if type(weight) is int and weight > 0 else f"{weight!r:.50}"
            raise ValueError(f"the weight of a seed must be a number above 0, got {got} for {seed[:200]}")


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
        raise ValueError(f"strategy must be a name or module:Class, got {chosen.strategy[:200]!r}")


def _check_replay(replay: Any) -> None:
    if not isinstance(replay, dict) or replay.keys() - REPLAY:
        raise ValueError(f"replay must be a table of {', '.join(REPLAY)}")
    for name, value in replay.items():
        if type(value) is not REPLAY[name] or (isinstance(value, float) and not value > 0):
            kind = "positive number" if REPLAY[name] is float else "boolean"
            raise ValueError(f"{name} of replay must be a {kind}, got {str(value)[:50]!r}")


def _is_text(table: Any) -> bool:
    return isinstance(table, dict) and all(isinstance(value, str) for value in table.values())


def toml(table: Mapping[str, Any], path: str = "") -> str:
    """Format values, lists of values and tables as TOML; settings that are None are omitted."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping) and value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            name = path + _key(key)
            lines += ["", f"[{name}]", toml(value, name + ".").rstrip("\n")]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if key and BARE.issuperset(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    raise UsageError(f"{value!r} cannot be stored in {MANIFEST}", hint="use text, a number, a boolean or a list")

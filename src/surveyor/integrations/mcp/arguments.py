"""Arguments of tools: their JSON schema, and the check of what a client sends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from surveyor.errors import UsageError
from surveyor.report.numbers import printable

SHOWN = 60  # characters of a wrong value that a message repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument: a text of at most `most` characters, or a number from `least` to `most`."""

    name: str
    kind: Literal["text", "whole", "number"]
    about: str
    most: float
    least: float = 0
    default: Any = None
    required: bool = False
    values: Sequence[str] = ()  # the only ones of a text

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema."""
        found: dict[str, Any] = {"description": self.about}
        if self.kind == "text":
            found |= {"type": "string", **({"enum": [*self.values]} if self.values else {"maxLength": int(self.most)})}
        else:
            kind = "integer" if self.kind == "whole" else "number"
            found |= {"type": kind, "minimum": self.least, "maximum": self.most}
        return found if self.default is None else {**found, "default": self.default}

    def checked(self, value: Any) -> Any:
        """Return a value of the right kind and range; UsageError otherwise."""
        if self.kind == "text":
            if not isinstance(value, str):
                raise UsageError(f"{self.name} must be a text, got {_shown(value)}", hint=self.about)
            if len(value) > self.most:
                raise UsageError(f"{self.name} must have at most {self.most:,} characters", hint=self.about)
            if self.values and value not in self.values:
                known = ", ".join(self.values)
                raise UsageError(f"{self.name} must be one of {known}; got {_shown(value)}", hint=self.about)
            return value
        what = "a whole number" if self.kind == "whole" else "a number"
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or (self.kind == "whole" and value != int(value)) or not self.least <= value <= self.most:
            limits = f"{what} from {self.least:,} to {self.most:,}"
            raise UsageError(f"{self.name} must be {limits}, got {_shown(value)}", hint=self.about)
        return int(value) if self.kind == "whole" else float(value)


def schema_of(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return the JSON schema of an object with these arguments."""
    return {
        "type": "object",
        "properties": {one.name: one.schema for one in arguments},
        "required": [one.name for one in arguments if one.required],
        "additionalProperties": False,
    }


def check_arguments(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments with their values or defaults; UsageError for one that is unknown, missing or wrong."""
    names = [one.name for one in arguments]
    known = f"the arguments are {', '.join(names)}" if names else "this tool has no arguments"
    for name in given:
        if name not in names:
            raise UsageError(f"there is no argument {_shown(name)}", hint=known)
    for one in arguments:
        if one.required and given.get(one.name) is None:
            raise UsageError(f"{one.name} is missing", hint=one.about)
    return {one.name: one.default if given.get(one.name) is None else one.checked(given[one.name]) for one in arguments}


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return printable(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")

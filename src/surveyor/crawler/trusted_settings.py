"""Stored settings that apply when a survey is resumed: all if this user signed it, else none that widen access.

A survey from elsewhere may set what is crawled: seeds, scope, strategy, damping. It may not set the politeness policy
or grant access in the user's name: hosts of a private network, robots.txt exceptions, contact, request rate, volume,
and files on this disk. Such settings apply only if they are given now, are in the user's own configuration, or are no
wider than the defaults.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.config import NARROW, SECRETS, Settings, names_code
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from surveyor.store.manifest import Manifest

KEPT = tuple(one.name for one in fields(Settings) if one.name not in SECRETS | {"rng", "seeds"})


def honoured(manifest: Manifest, given: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the stored settings that apply besides those given now, and those that are ignored."""
    stored = {name: manifest.settings[name] for name in KEPT if name in manifest.settings and name not in given}
    if manifest.authentic:
        return stored, {}
    clean = Settings(**stored)
    ignored = {name for name in stored if name in NARROW and not NARROW[name](getattr(clean, name))}
    return (
        {name: value for name, value in stored.items() if name not in ignored},
        {name: stored[name] for name in KEPT if name in ignored},
    )


def notice(folder: Path, ignored: Mapping[str, Any]) -> str:
    """Return a message: which settings are ignored, why, and how to give them again."""
    options = [_option(name, value) for name, value in ignored.items() if name != "permission"]
    again = f"give them again ({' '.join(options)})" if options else "give them again"
    where = " in your own configuration" if "permission" in ignored else ""
    return (
        f"ignored in {folder}, which was made elsewhere or edited since: {', '.join(ignored)}; "
        f"{again}{where}, or if the survey is yours, run `surveyor config trust {shlex.quote(str(folder))}`"
    )


def check_code(folder: Path, manifest: Manifest, given: Collection[str]) -> None:
    """Refuse to import a class only because a survey names it."""
    strategy = str(manifest.settings.get("strategy", ""))
    if "strategy" not in given and names_code(strategy):
        raise UsageError(
            f"{folder} was crawled with the strategy {strategy}, and code that a survey names is never run",
            hint=f"if you know that code, name it again: --strategy {strategy}",
        )


def _option(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    each = value if isinstance(value, list | tuple) else [value]
    return " ".join(f"{flag} {shlex.quote(str(one)[:200])}" for one in each[:3]) + (" …" if len(each) > 3 else "")

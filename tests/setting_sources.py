"""Sources of settings for tests: home folder, working folder, environment variables and flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from surveyor.config import Settings, load, trust_file, user_file
from surveyor.errors import UsageError

USER = "~/.config/surveyor/config.toml"
PLACES = ("user", "surveyor.toml", "pyproject.toml", "variable", "flag")


class Places:
    """Home folder, working folder, environment variables and flags."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.project.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "USERPROFILE": str(self.home)}

    @property
    def user(self) -> Path:
        return user_file(self.environ)

    def write(self, place: str, text: str) -> None:
        path = self.user if place == "user" else self.project / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if place != "user":
            trust_file(path, self.environ)

    def load(self, flags: Mapping[str, object] | None = None) -> tuple[Settings, dict[str, str]]:
        return load(flags, folder=self.project, environ=self.environ)

    def problem(self, flags: Mapping[str, object] | None = None) -> tuple[str, str]:
        with pytest.raises(UsageError) as caught:
            self.load(flags)
        return caught.value.problem, caught.value.hint


def as_text(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)

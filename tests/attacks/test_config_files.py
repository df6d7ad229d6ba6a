"""Files of settings that came with a folder: what is not a small plain file is refused before it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attack import attack

from console import CommandResult
from surveyor.config import LONGEST, load
from surveyor.errors import UsageError


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # bytes that take no space on the disk, and all memory if they were read


def one_byte_too_long(path: Path) -> None:
    path.write_text("delay = 2\n" + "#" * (LONGEST - 9))


@attack(
    "a file of settings that is a pipe, a device without end, a folder, or too large",
    area="files from elsewhere",
    must_hold="one sentence that names the file (exit code 2); nothing waits, and at most 1 MB is read",
)
@pytest.mark.parametrize("make", [pipe, endless, folder, sparse, one_byte_too_long])
@pytest.mark.parametrize("name", ["surveyor.toml", "pyproject.toml"])
def test_files_of_settings_are_small_plain_files(
    make: Callable[[Path], None],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(tmp_path / name)
    with pytest.raises(UsageError, match=f"{name} cannot be read: ") as caught:
        load(folder=tmp_path, environ={"XDG_CONFIG_HOME": "/nowhere"})
    assert "\n" not in caught.value.problem
    monkeypatch.chdir(tmp_path)
    for command in (["config", "show"], ["crawl", "https://a.example/"]):
        result = CommandResult(capsys, *command)
        assert result.code == 2
        assert f"{name} cannot be read: " in result.err


def test_a_large_file_that_does_not_count_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "surveyor.toml").write_text("delay = 2\n")
    sparse(tmp_path / "pyproject.toml")
    monkeypatch.chdir(tmp_path)
    assert CommandResult(capsys, "config", "show").code == 0


def test_the_largest_file_of_settings_is_read(tmp_path: Path) -> None:
    (tmp_path / "surveyor.toml").write_text("delay = 2\n" + "#" * (LONGEST - 10))
    assert load(folder=tmp_path, environ={"XDG_CONFIG_HOME": "/nowhere"})[0].delay == 2

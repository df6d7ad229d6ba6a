"""Every error says what to do next: all classes, all places that raise one, and what a terminal shows of each."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from types import SimpleNamespace

import pytest

import surveyor
from console import LINKS, CommandResult
from surveyor import errors
from surveyor.errors import SurveyorError

SOURCE = Path(surveyor.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"


def classes(kind: type[SurveyorError] = SurveyorError) -> Iterator[type[SurveyorError]]:
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            yield one
            yield from classes(one)


def test_each_class_is_documented_with_its_exit_code() -> None:
    result = dict(re.findall(r"── (\w+) .* exit (\d)", errors.__doc__ or ""))
    assert {one.__name__: str(one.exit_code) for one in classes()} == result
    table = (DOCS / "reference" / "commands.md").read_text("utf-8")
    assert set(result.values()) <= set(re.findall(r"^\| (\d+) \|", table, re.MULTILINE))


@pytest.mark.parametrize(
    "error",
    [
        SurveyorError("it is broken", hint="repair it"),
        *(one("it is broken", hint="repair it") for one in (errors.UsageError, errors.InputError, errors.SurveyError)),
        errors.MissingExtra("--cluster", "ray", "ray"),
        errors.StrategyError("it is broken"),
        errors.NothingFetched("it is broken", hint="repair it"),
        errors.NotConverged(SimpleNamespace(error=0.5, sweeps=3), 1e-6, "use .best"),  # type: ignore[arg-type]
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_can_be_raised_in_another_process(error: SurveyorError) -> None:
    other = copy(error)  # in the way that pickle does
    assert type(other) is type(error)
    assert (str(other), vars(other), other.args) == (str(error), vars(error), error.args)


def test_no_error_can_be_made_without_a_hint() -> None:
    """Those that take none have one of their own; the type checker sees to the others."""
    every: list[type[SurveyorError]] = [SurveyorError, *classes()]
    for one in every:
        hint = inspect.signature(one).parameters.get("hint")
        assert hint is None or hint.default is inspect.Parameter.empty, one
        assert hint is not None or "hint=" in inspect.getsource(one), one


def test_no_hint_is_empty() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                assert not (isinstance(node.value, ast.Constant) and not node.value.value), f"{path.name}:{node.lineno}"


STRATEGY = "class Broken:\n    def observe(self, outcome, old_links):\n        raise ValueError('no')\n"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("UsageError", ["crawl", "example.org", "--damping", "2"]),
        ("StrategyError", ["simulate", "links.tsv", "--strategies", "broken:Broken"]),
        ("InputError", ["rank", "nowhere.tsv"]),
        ("GraphError", ["rank", "damaged"]),
        ("SurveyError", ["status", "damaged.survey"]),
        ("NothingFetched", ["crawl", "http://127.0.0.1:9/", "--contact", "me@example.org", "--backoff", "0.01"]),
        ("NotConverged", ["rank", "links.tsv", "--tolerance", "1e-12", "--max-sweeps", "1"]),
    ],
)
@pytest.mark.slow
def test_what_a_terminal_shows(
    kind: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An address that is not public, port 9: it is refused here, and nothing is sent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Path("links.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in LINKS))
    Path("broken.py").write_text(STRATEGY)
    for folder, file in (("damaged", "graph.json"), ("damaged.survey", "survey.toml")):
        Path(folder).mkdir()
        Path(folder, file).write_text("{")
    done = CommandResult(capsys, *words)
    assert done.code == getattr(errors, kind).exit_code
    assert re.search(r"^  hint: \S", done.err, re.MULTILINE), done.err
    assert "Traceback" not in done.err
    assert "bug" not in done.err


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    error = errors.MissingExtra("a plot", "matplotlib", "report")
    assert str(error) == "a plot needs matplotlib\n  hint: pip install 'surveyor[report]'"

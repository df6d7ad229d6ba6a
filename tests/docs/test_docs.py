"""The documentation cannot rot: names exist, examples run, links lead somewhere."""

from __future__ import annotations

import doctest
import gzip
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import surveyor

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MODULES = [
    name for _, name, _ in pkgutil.walk_packages(surveyor.__path__, "surveyor.") if not name.endswith("__main__")
]


def blocks(language: str) -> list[tuple[str, str]]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(page.name, code) for page in PAGES for code in pattern.findall(page.read_text("utf-8"))]


def test_public_names_are_those_of_the_table() -> None:
    assert surveyor.__all__ == sorted(surveyor._HOME)
    for name in surveyor.__all__:
        assert getattr(surveyor, name).__name__ == name
    assert set(surveyor.__all__) <= set(dir(surveyor))
    with pytest.raises(AttributeError, match="nothing"):
        surveyor.nothing  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_every_module_explains_itself_and_its_examples_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize(("page", "code"), blocks("python"))
def test_python_examples_run(page: str, code: str, tmp_path: Path) -> None:
    links = b"home\tnews\nnews\thome\nhome\tabout\n"
    (tmp_path / "links.tsv").write_bytes(links)
    (tmp_path / "links.tsv.gz").write_bytes(gzip.compress(links))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{page}: {done.stderr}"


@pytest.mark.parametrize(("page", "code"), blocks("console"))
def test_commands_shown_exist(page: str, code: str) -> None:
    from surveyor.cli.lazy import COMMANDS, GROUPS, implied_command

    for line in re.findall(r"^\$ surveyor (.*)$", code, re.MULTILINE):
        words = line.split()
        survey = words[0].endswith(".survey")  # is looked at
        assert survey or words[0] in COMMANDS or words[0].startswith("-") or implied_command(words[0]), (
            f"{page}: {line}"
        )
        if words[0] in GROUPS:
            assert words[1] in GROUPS[words[0]], f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_importing_the_package_loads_neither_numba_nor_numpy() -> None:
    code = "import surveyor, sys; sys.exit('numba' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Commands and settings


def said_in(*places: str) -> str:
    return "\n".join(page.read_text("utf-8") for place in places for page in sorted(ROOT.glob(f"docs/{place}/*.md")))


def commands() -> list[str]:
    from surveyor.cli.lazy import COMMANDS, GROUPS

    return [name for name in COMMANDS if name not in GROUPS] + [f"{one} {two}" for one in GROUPS for two in GROUPS[one]]


@pytest.mark.parametrize("name", commands())
def test_every_command_is_shown_at_work(name: str) -> None:
    assert re.search(rf"^\$ surveyor {name}\b", said_in("tutorials", "how-to"), re.MULTILINE)


def shown() -> list[tuple[str, list[str]]]:
    """Return the words of each command line of surveyor that a page shows, without what the shell takes."""
    found = []
    for page, code in blocks("console"):
        for line in re.findall(r"^\$ surveyor (.*)$", code.replace("\\\n", " "), re.MULTILINE):
            words = shlex.split(line, comments=True)
            ends = [place for place, word in enumerate(words) if re.fullmatch(r"[|<>&]+|\d?>.*", word)]
            found.append((f"{page}: {line}", words[: ends[0]] if ends else words))
    return found


@pytest.mark.parametrize(("line", "words"), shown(), ids=[line for line, _ in shown()])
def test_options_shown_exist(line: str, words: list[str]) -> None:
    import click

    from surveyor.cli.lazy import GROUPS, implied_command, surveyor

    command: click.Command = surveyor
    if meant := implied_command(words[0]):
        words = [meant, *words]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        assert found is not None, line
        command = found
        if name not in GROUPS:
            break
    context = click.Context(command, help_option_names=command.context_settings["help_option_names"])  # which it keeps
    command.make_parser(context).parse_args(words)  # raises NoSuchOption


def test_every_setting_and_exit_code_is_documented() -> None:
    from surveyor import errors
    from surveyor.config import FIELDS

    settings = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    assert [name for name in FIELDS if f"| `{name}` |" not in settings] == []
    codes = {
        one.exit_code
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.SurveyorError)
    }
    table = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    assert [code for code in codes | {0, 5} if f"| {code} |" not in table] == []


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#]+)", index.read_text("utf-8"))}
    assert [page.name for page in PAGES if page.parent.parent == index.parent and page not in linked] == []
    assert "(docs/README.md)" in (ROOT / "README.md").read_text("utf-8")

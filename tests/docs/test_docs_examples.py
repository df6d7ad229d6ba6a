"""What the documentation shows works: the newcomer's path of the README, the tutorial of a site, scripts, queries."""

from __future__ import annotations

import doctest
import functools
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import surveyor as sv
from console import CommandResult
from example_site import HOME, survey_of
from loopback import linked, served
from surveyor.testing import EmbeddedWeb, WebSettings, running

ROOT = Path(__file__).parents[2]
HURRY = {"slow_seconds": 0.05, "pace": 0.1, "crawl_delay": 0.05}  # as `surveyor demo` has it
posix = pytest.mark.skipif(sys.platform == "win32", reason="scripts of a POSIX shell")


def code_of(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Shell:
    """A shell in an empty folder that knows `surveyor`, with no settings of whoever runs the tests.

    A line that needs no shell runs in this process, which spares the time to start another.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.patch, self.capsys = patch, capsys
        self.folder = folder / "work"
        self.folder.mkdir()
        tools = folder / "bin"
        tools.mkdir()
        for name, words in {"surveyor": "-m surveyor", "python3": ""}.items():
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            tool.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SURVEYOR_")}
        self.env = {**kept, "PATH": f"{tools}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(folder / "config")}

    def __call__(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        if script.startswith("surveyor ") and not set(script) & set("|<>&;$\n"):
            return self._here(shlex.split(script)[1:], env)
        return subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def _here(self, words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        with self.patch.context() as patch:
            patch.chdir(self.folder)
            for name in set(os.environ) - set(self.env):
                patch.delenv(name)
            for name, value in {**self.env, **env}.items():
                patch.setenv(name, value)
            result = CommandResult(self.capsys, *words)
        return subprocess.CompletedProcess(words, result.code, result.out, result.err)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


@pytest.fixture
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(**HURRY)) as made:  # type: ignore[arg-type]
        yield made


# Tutorials


@posix
def test_readme_examples(shell: Shell, web: EmbeddedWeb) -> None:
    """Run the console blocks of the README in order; compare what they show, except for times and random seeds."""
    blocks = [code for code in code_of("README.md", "console") if "$ surveyor" in code]
    assert len(blocks) == 4
    for block in blocks:
        for command, shown in re.findall(r"^\$ (surveyor .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            done = shell(command.replace("8765", str(web.port)))
            assert done.returncode == 0, f"{command}: {done.stderr}"
            pattern = re.sub(r"[\d\\.]+ m?s\\.", r"[\\d.]+ m?s\.", elided(shown).pattern.replace(r"\ ", " "))
            assert not shown or re.fullmatch(pattern, done.stdout), f"{command}\n{done.stdout}"
    survey = f"blog.site70.example_{web.port}.survey"
    for command in (f"top {survey}", f"explain {survey} /arts/0/page-38.html", f"report {survey}"):
        assert shell(f"surveyor {command}").returncode == 0
    assert (shell.folder / survey / "report.html").is_file()


def test_readme_python_example() -> None:
    (code,) = code_of("README.md", "pycon")
    test = doctest.DocTestParser().get_doctest(code, {}, "README.md", "README.md", 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@posix
@pytest.mark.slow
def test_the_tutorial_of_global_rank_shows_what_comes(shell: Shell) -> None:
    page = "docs/tutorials/global-rank.md"
    result = []
    for block in code_of(page, "console"):
        line, shown = block.removeprefix("$ ").split("\n", 1)
        done = shell(line)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        to_files = "--save" in line  # reported on stderr
        result.append(done.stdout)
        assert elided(shown).fullmatch(done.stderr if to_files else done.stdout), f"{line}\n{done.stdout}{done.stderr}"
    assert len(result) == 6
    (below,) = code_of(page, "text")
    assert result[1].endswith("\n\n" + below.replace("\n  ", " "))  # lines are folded on a terminal alone


@posix
@pytest.mark.slow
def test_the_tutorial_of_samples_shows_what_comes(shell: Shell, web: EmbeddedWeb) -> None:
    page = "docs/tutorials/sampling-a-topic.md"
    heard = ""
    for block in code_of(page, "console"):
        line, shown = block.removeprefix("$ ").split("\n", 1)
        if "--serve" in line:
            continue
        done = shell(line.replace("8765", str(web.port)))
        assert done.returncode == (3 if "fetches=" in line else 0), f"{line}: {done.stderr}"
        if "8765" in line:  # hosts fail there now and then, and walks go another way
            names = [row.split("  ")[0] for row in shown.splitlines()[:9]]
            assert [row.split("  ")[0] for row in done.stdout.splitlines()[:9]] == names
            assert all(
                any(words in row for row in done.stdout.splitlines()) for words in ("language", "mean out_degree")
            )
            continue
        assert elided(shown).fullmatch(done.stdout), f"{line}\n{done.stdout}"
        heard += done.stderr
    count, *warnings = code_of(page, "text")
    assert all(line in heard.splitlines() for text in warnings for line in text.splitlines())
    done = shell(f"python3 - <<'END'\n{code_of(page, 'python')[0]}END\n")
    assert done.stdout == count
    assert (shell.folder / "arts.html").is_file()
    assert (shell.folder / "curves" / "running-1.svg").is_file()


def elided(shown: str) -> re.Pattern[str]:
    """Return what output looks like that is shown with … for lines left out."""
    parts = re.split("^…\n", shown, flags=re.MULTILINE)
    return re.compile("(?:.*\n)*?".join(map(re.escape, parts)))


@pytest.mark.slow
@posix
def test_the_tutorial_of_a_site_shows_what_comes(shell: Shell, web: EmbeddedWeb) -> None:
    page = "docs/tutorials/my-site.md"
    (permission,) = code_of(page, "toml")
    result = ""
    for line in re.findall(r"^\$ (surveyor .*)$", "\n".join(code_of(page, "console")), re.MULTILINE):
        if "--serve" in line:
            continue
        if "--fresh" in line:
            with (shell.folder / "surveyor.toml").open("a") as file:
                file.write(f"\n{permission}")
        quick = line.replace("8765", str(web.port)).replace("--delay 0.1", "--delay 0.01")
        done = shell(quick, SURVEYOR_PROXY=f"http://127.0.0.1:{web.port}")
        assert done.returncode == (3 if line == "surveyor crawl" else 0), f"{line}: {done.stderr}"
        result += done.stdout.replace(str(web.port), "8765")
    text = (ROOT / page).read_text("utf-8")
    rows = re.findall(r"^ +[\d.]+ .*(?:/|html).*$", text, re.MULTILINE)  # of tables
    assert len(rows) > 12
    assert [row for row in rows if row not in result] == [], result


@pytest.mark.slow
@posix
def test_the_tutorial_of_a_watch_shows_what_comes(shell: Shell) -> None:
    page = "docs/tutorials/keep-a-site-fresh.md"
    lines = re.findall(r"^\$ (.*)$", "\n".join(code_of(page, "console")), re.MULTILINE)
    made, edited = lines[:4], [line for line in lines[6:] if line.startswith("echo")]
    for line in made:
        assert shell(line).returncode == 0, line
    handler = functools.partial(QuietHandler, directory=str(shell.folder / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        crawl, watch = (
            next(line for line in lines if line.startswith(f"surveyor {name}")) for name in ("crawl", "watch")
        )
        assert "Goal reached (3 pages)" in shell(crawl.replace("8766", str(server.server_port))).stdout
        for line in edited:
            assert shell(line).returncode == 0, line
        result = ""
        for _ in range(20):
            time.sleep(1.1)
            done = shell(watch)
            assert done.returncode == 0, done.stderr
            result += done.stdout.replace(str(server.server_port), "8766")
            if "changed " in result and "new " in result:
                break
        server.shutdown()
    text = (ROOT / page).read_text("utf-8")
    rows = re.findall(r"^ +[\d.]+ % +\S+ \S+ +(\w.*?) +(http.*)$", text, re.MULTILINE)
    assert len(rows) == 2
    for kind, url in rows:
        assert re.search(rf" {kind} +{re.escape(url)}$", result, re.MULTILINE), result
    assert (shell.folder / "site.survey" / "changes.atom").is_file()
    assert "Nothing more is due" in result


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        pass


@posix
@pytest.mark.slow
def test_the_tutorial_of_domains_shows_what_comes(shell: Shell) -> None:
    page = "docs/tutorials/domains-without-spam.md"
    for code in code_of(page, "python"):
        (shell.folder / "make.py").write_text(code)
        done = shell("python3 make.py")
        assert done.returncode == 0, done.stderr
    shown, result = "\n".join(code_of(page, "console")), ""
    for line in re.findall(r"^\$ (surveyor .*)$", shown, re.MULTILINE):
        done = shell(line)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        result += done.stdout
    expected = [line for line in shown.splitlines() if line and not line.startswith("$")]
    assert len(expected) > 35
    assert [line for line in expected if line not in result.splitlines()] == []
    assert (shell.folder / "bad.svg").read_text().startswith("<svg xmlns=")
    assert (shell.folder / "budgets.csv").read_text().count("\n") == 201
    assert (shell.folder / "domains.csv").read_text().count("\n") == 17_707


# Scripts and queries


@posix
@pytest.mark.slow
def test_the_script_for_ci_fails_when_it_should(shell: Shell, web: EmbeddedWeb) -> None:
    (script,) = code_of("docs/how-to/ci-check.md", "sh")
    site = f"http://www.site11.example:{web.port}/"
    env = {"SITE": site, "SURVEYOR_PROXY": f"http://127.0.0.1:{web.port}", "SURVEYOR_DELAY": "0",
           "SURVEYOR_CONTACT": "me@example.org", "SURVEYOR_BACKOFF": "0.02"}  # fmt: skip
    good = shell(script, **env, GOAL="0.3")
    assert (good.returncode, good.stderr) == (0, "")
    assert re.fullmatch(r"\d+ pages fetched, at least \d+\.\d% captured, 30% required\n", good.stdout)
    missing, secret = site + "nowhere's.html", site + "private/1.html"
    bad = shell(script, **env, GOAL="0.95", MUST=f"{site} {missing} {secret}")
    assert bad.returncode == 1
    assert "95% required\n" in bad.stdout  # and not reached
    assert f"{missing}: not linked from anywhere\n" in bad.stdout
    assert f"{secret}: blocked,robots.txt disallows it (Disallow: /private/)\n" in bad.stdout
    assert bad.stdout.count("\n") == 3
    assert shell(script, **env, GOAL="0.95").returncode == 1
    nothing = shell(script, SITE="http://nowhere.invalid/", SURVEY="b.survey", SURVEYOR_CONTACT="me@example.org")
    assert nothing.returncode == 5
    assert "does not resolve" in nothing.stderr or "hint:" in nothing.stderr


@pytest.mark.slow
@posix
def test_the_line_for_ci_is_red_and_green(shell: Shell) -> None:
    line = next(code for code in code_of("docs/how-to/ci-check.md", "console") if "surveyor check" in code)
    script = line.removeprefix("$ ").strip() + " --allow 127.0.0.1 --delay 0"
    for name, more, code in (("red", "/none", 3), ("green", "/a", 0)):
        with served({"/": linked("/a", more, title="Home"), "/a": linked("/", title="A")}) as url:
            done = shell(f"mkdir {name} && cd {name} && " + script.replace("https://docs.example.org", url))
        assert done.returncode == code, done.stderr
        assert (f"title=broken-link::{url}none: http 404" in done.stdout) == (code == 3)
        assert {"check.sarif", "check.xml"} <= {path.name for path in (shell.folder / name).iterdir()}
        junit = (shell.folder / name / "check.xml").read_text("utf-8")
        assert ('<failure type="error"' in junit) == (code == 3)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sv.Survey]:
    with sv.open(survey_of(tmp_path_factory.mktemp("small") / "small.survey")) as survey:
        yield survey


RECIPES = code_of("docs/how-to/sql-recipes.md", "sql")


@pytest.mark.parametrize("query", RECIPES, ids=[query.split("\n")[0] for query in RECIPES])
def test_recipes_work_with_both_engines(query: str, small: sv.Survey) -> None:
    pytest.importorskip("duckdb")
    first, second = (small.sql(query, engine=engine) for engine in ("duckdb", "sqlite"))
    assert first.columns == second.columns
    assert sorted(map(repr, map(tuple, first.rows))) == sorted(map(repr, map(tuple, second.rows)))
    assert first.rows or "group by hash" in query or "group by title" in query


def test_there_are_recipes(small: sv.Survey) -> None:
    assert len(RECIPES) >= 10
    dead = next(query for query in RECIPES if "dead" in query)
    assert small.sql(dead, engine="sqlite").rows == [(HOME, HOME + "gone", 404)]

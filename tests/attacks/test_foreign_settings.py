"""What a survey or a settings file from elsewhere may say, and what counts of it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from hypothesis import given
from hypothesis import strategies as st

from console import CommandResult
from setting_sources import Places
from surveyor import config
from surveyor.config import NARROW, Settings, trust_file
from surveyor.crawler.budgets import read_limits
from surveyor.crawler.replay import derive, scope_of
from surveyor.crawler.start import start
from surveyor.crawler.strategies import NAMES
from surveyor.errors import InputError, SurveyError, UsageError
from surveyor.store import signing
from surveyor.store.directory import SurveyFolder
from surveyor.store.layout import open_inside
from surveyor.store.manifest import toml
from surveyor.web.linear_regex import MOST_STATES, MOST_WIDE, LinearPattern
from surveyor.web.scope import Scope

SEEDS = ["http://a.example/"]
WIDE: dict[str, Any] = {
    "allow": ["10.0.0.1"],
    "permission": {"a.example": "mine"},
    "contact": "other@example.org",
    "budget_file": "b.csv",
    "budget": "b.csv",
    "delay": 0.0,
    "domain_delay": 0.0,
    "backoff": 0.0,
    "topic": "url:(a+)+$",
    "max_delay": 1e6,
    "max_wait": 1e6,
    "timeout": 1e6,
    "max_bytes": 10**12,
    "concurrency": 1000,
    "max_fruitless": 10**9,
}
MINE = Settings(contact="me@example.org")
GIVEN = {"contact": "--contact"}


def begun(path: Path, **settings: Any) -> Path:
    """Begin a survey with some settings, all of them given."""
    chosen = Settings(**{"contact": "me@example.org", "rng": 1, **settings})
    folder, _ = start(path, SEEDS, chosen, dict.fromkeys(["contact", *settings], "argument"))
    folder.close()
    return path


def edited(path: Path, **settings: Any) -> Path:
    """Write settings into survey.toml, with the signature that is there."""
    with SurveyFolder.open(path, write=False) as folder:
        manifest = folder.manifest
    changed = {**manifest.settings, **settings}
    text = re.sub(r"(?s)\[settings\]\n.*", "", manifest.to_toml())
    (path / "survey.toml").write_text(text + toml({"settings": changed, "origins": manifest.origins}), "utf-8")
    return path


def resumed(path: Path, settings: Settings = MINE, origins: dict[str, str] | None = None) -> tuple[Settings, list[str]]:
    folder, now = start(path, [], settings, GIVEN if origins is None else origins)
    with folder:
        return now, folder.notices


def test_what_this_user_signed_counts(tmp_path: Path) -> None:
    path = begun(tmp_path / "a.survey", delay=0.0, allow=["10.0.0.1"], permission={"a.example": "mine"})
    now, notices = resumed(path, Settings(), {})
    assert (now.delay, now.allow, now.contact, notices) == (0.0, ("10.0.0.1",), "me@example.org", [])


def test_the_key_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    begun(tmp_path / "a.survey")
    key = tmp_path / "config" / "surveyor" / "key"
    assert len(key.read_bytes()) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() not in b"".join(p.read_bytes() for p in (tmp_path / "a.survey").rglob("*") if p.is_file())
    assert signing.user_key() == key.read_bytes()


@attack(
    "settings of a survey from elsewhere that widen access",
    area="surveys from elsewhere",
    must_hold="each is ignored, with a sentence that says so, and the default counts",
)
@pytest.mark.parametrize("name", [name for name in WIDE if name != "contact"])
def test_settings_that_widen_access_are_ignored_unless_signed(name: str, tmp_path: Path) -> None:
    path = edited(begun(tmp_path / "a.survey"), **{name: WIDE[name]})
    now, notices = resumed(path)
    usual = getattr(MINE, name)
    assert getattr(now, name) == usual
    (notice,) = notices
    assert re.search(rf"\b{name}\b", notice)
    assert "surveyor config trust" in notice
    again, silence = resumed(path)  # what counts now was signed by this user
    assert (getattr(again, name), silence) == (usual, [])


def test_every_setting_is_either_harmless_or_checked() -> None:
    harmless = {
        "until",
        "strategy",
        "scope",
        "include",
        "exclude",
        "depth",
        "damping",
        "avoid",
        "archive",
        "main_text",
        "follow_nofollow",
        "graph",
        "check",
    }
    known = set(config.FIELDS) - {"seeds", "rng", "proxy", "ca_file", "headers", "auth"}
    assert known - harmless <= set(NARROW) | {"patient", "keep_busy"}
    assert set(WIDE) == set(NARROW)


@attack(
    "a signature that is copied to another survey, or left after an edit",
    area="surveys from elsewhere",
    must_hold="it counts for nothing",
    inputs=3,
)
def test_a_signature_is_good_for_one_survey_and_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = begun(tmp_path / "a.survey", delay=0.0), begun(tmp_path / "b.survey")
    shutil.copy(fast / "survey.toml", slow / "survey.toml")
    with SurveyFolder.open(fast, write=False) as one, SurveyFolder.open(slow, write=False) as other:
        assert (one.manifest.authentic, other.manifest.authentic) == (True, False)
    text = (fast / "survey.toml").read_text("utf-8")
    (fast / "survey.toml").write_text(text.replace("concurrency = 32", "concurrency = 31"), "utf-8")
    with SurveyFolder.open(fast, write=False) as one:
        assert not one.manifest.authentic
    (fast / "survey.toml").write_text(text, "utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    with SurveyFolder.open(fast, write=False) as one:
        assert not one.manifest.authentic


def test_a_contact_from_elsewhere_is_none(tmp_path: Path) -> None:
    path = edited(begun(tmp_path / "a.survey"), contact="other@example.org")
    with pytest.raises(UsageError, match="contact is not set"):
        resumed(path, Settings(), {})


@pytest.mark.usefixtures("nowhere")
def test_whoever_vouches_for_a_survey_gets_its_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = edited(begun(tmp_path / "a.survey"), delay=0.0, allow=["10.0.0.1"])
    assert CommandResult(capsys, "config", "trust", str(path)).code == 0
    now, notices = resumed(path)
    assert (now.delay, now.allow, notices) == (0.0, ("10.0.0.1",), [])


def test_a_strategy_of_ones_own_is_named_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lazy_own.py").write_text(
        "import surveyor as sv\nclass Own:\n    closure = 0.5\n    rereads = True\n"
        "    def observe(self, outcome, old_links):\n        return sv.Reorder()\n"
    )
    path = begun(tmp_path / "a.survey", strategy="lazy_own:Own")
    with SurveyFolder.open(path, write=False) as folder:
        assert folder.manifest.replay == {"closure": 0.5, "eager": True, "rereads": True}
        reading = derive(folder).crawl.strategy
        assert (type(reading).__name__, getattr(reading, "closure", 0)) == ("ReplayStrategy", 0.5)
        assert type(derive(folder, code=True).crawl.strategy).__name__ == "Own"
    with pytest.raises(UsageError, match="code that a survey names is never run") as caught:
        resumed(path)
    assert "--strategy lazy_own:Own" in caught.value.hint
    now, _ = resumed(path, Settings(strategy="lazy_own:Own"), {"strategy": "--strategy"})
    assert now.strategy == "lazy_own:Own"


def test_config_knows_the_strategies_there_are() -> None:
    assert set(NAMES) == config.STRATEGIES


@attack(
    "a project file from elsewhere that names code, private hosts, a proxy, certificates, logins or headers",
    area="surveys from elsewhere",
    must_hold="it is refused in one sentence until the user trusts the file",
)
@pytest.mark.parametrize(
    "text",
    [
        "strategy = 'evil:Evil'",
        "allow = ['10.0.0.1']",
        "[permission]\n'a.org' = 'x'",
        "proxy = 'http://p.example/'",
        "ca_file = 'a.pem'",
        "[headers]\nCookie = 'x'",
        "[auth]\n'a.org' = 'u:p'",
    ],
)
@pytest.mark.parametrize("name", ["surveyor.toml", "pyproject.toml"])
def test_a_project_file_is_trusted_or_refused(text: str, name: str, tmp_path: Path) -> None:
    places = Places(tmp_path)
    if name == "pyproject.toml":
        text = f"[tool.surveyor.{text[1:]}" if text.startswith("[") else f"[tool.surveyor]\n{text}"
    (places.project / name).write_text(text, "utf-8")
    problem, hint = places.problem()
    assert problem.startswith(f"{name}: ")
    assert "surveyor config trust" in hint
    trust_file(places.project / name, places.environ)
    places.load()
    elsewhere = places.project.parent / "copy"
    shutil.copytree(places.project, elsewhere)
    with pytest.raises(UsageError, match="only in a trusted file"):
        config.load(folder=elsewhere, environ=places.environ)


@attack(
    "settings of an untrusted project file, each widening access",
    area="surveys from elsewhere",
    must_hold="refused in one sentence that names the setting, and no file that it names is opened",
)
@pytest.mark.parametrize("name", WIDE)
def test_a_project_file_widens_nothing_unless_trusted(name: str, tmp_path: Path) -> None:
    places = Places(tmp_path)
    (places.project / "surveyor.toml").write_text(toml({name: WIDE[name]}), "utf-8")
    problem, hint = places.problem()
    assert problem.startswith(f"surveyor.toml: {name}")
    assert "surveyor config trust" in hint
    trust_file(places.project / "surveyor.toml", places.environ)
    places.load()


def test_a_project_file_may_narrow(tmp_path: Path) -> None:
    places = Places(tmp_path)
    (places.project / "surveyor.toml").write_text(
        "delay = 3\nconcurrency = 2\nmax_bytes = '1MB'\nstrategy = 'opic:random'\nallow = []\nexclude = ['*/x/*']\n"
        "until = 'pages=3'\nscope = 'host'\nbudget = 'star:10-100@1k'\nbudget_file = ''\ncontact = ''\n"
    )
    assert places.load()[0].delay == 3


@pytest.mark.parametrize(
    "line", ["root:x:0:0:root:/root:/bin/bash", "secret", "secret,x", "-----BEGIN KEY-----", "a b,c"]
)
def test_files_that_are_no_budgets_are_not_quoted(line: str) -> None:
    with pytest.raises(InputError) as caught:
        read_limits([line], "/etc/passwd", 10)
    assert line.split(",")[0] not in str(caught.value).replace("/etc/passwd", "")


@attack(
    "an include or exclude pattern that takes exponential time",
    area="surveys from elsewhere",
    must_hold="steps grow with the length of the URL, for each pattern",
)
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|a)*b$", r"(\w+\s?)*$", r"(.*)*x", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_of_others_take_linear_time(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    step = LinearPattern._step

    def count(self: LinearPattern, now: int, character: str, *, last: bool = False) -> int:
        nonlocal counted
        counted += 1
        return step(self, now, character, last=last)

    monkeypatch.setattr(LinearPattern, "_step", count)
    made = LinearPattern(pattern)
    made.search("a" * 30_000 + "!")
    assert counted < 100  # all other steps were known
    assert made.states < 50


PATTERNS = r"(\^|\\b)?([ab.]|\[ab\]|\[\^a\]|\\d|\(a\|b\)|\(ab\|c\)[*+?]|a\{1,3\}|b\*\?)+(\$|\\b)?"


@given(pattern=st.from_regex(PATTERNS, fullmatch=True), text=st.text("abcAB1./ ", min_size=1, max_size=12))
def test_linear_patterns_mean_what_python_means(pattern: str, text: str) -> None:
    assert LinearPattern(pattern).search(text) == bool(re.search(pattern, text))


HUGE = ["(){4000000000}", "(){1001,}", "(a?){4000000}", "a.{900}[cd]$", "a.{60}[cd]$", "(?:ab|c){60}x", "x(){0,5000}"]


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(?=a)b", r"(?<!a)b", "a{5000}", "((a{50}){50}){50}", *HUGE])
def test_patterns_that_cannot_be_linear_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="of a survey from elsewhere"):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 5000 + ")" * 5000, "(", "a{3,2}"])
@pytest.mark.parametrize("linear", [False, True])
def test_patterns_beyond_python_are_one_sentence(pattern: str, *, linear: bool) -> None:
    with pytest.raises(UsageError, match="regular expression"):
        Scope("any", (), include=(f"re:{pattern}",), linear=linear)


def test_repeats_of_nothing_add_no_work() -> None:
    made = LinearPattern("((((){1000}){1000}){1000}){1000}b")
    assert made.states == 2
    assert made.search("ab")


def test_the_worst_pattern_visits_few_states_for_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    reached = LinearPattern._reached

    def count(self: LinearPattern, *args: Any, **named: Any) -> Any:
        nonlocal visits
        for state in reached(self, *args, **named):
            visits += 1
            yield state

    monkeypatch.setattr(LinearPattern, "_reached", count)
    text = "".join(f"{number:b}".replace("1", "a") for number in range(300))[:2000]
    LinearPattern(f"a.{{{MOST_WIDE - 1}}}c$").search(text)
    assert visits < 2000 * (MOST_WIDE + 3)


def test_whose_patterns_are_matched_in_which_way(tmp_path: Path) -> None:
    path = begun(tmp_path / "a.survey", exclude=[r"re:(a)\1"])
    with SurveyFolder.open(path, write=False) as folder:
        assert not scope_of(folder.manifest).linear
    edited(path, exclude=["re:b+"])
    with SurveyFolder.open(path, write=False) as folder:
        assert scope_of(folder.manifest).linear
    resumed(path)  # which signs it, and patterns of others stay what they are
    with SurveyFolder.open(path, write=False) as folder:
        assert folder.manifest.authentic
        assert scope_of(folder.manifest).linear


def test_many_patterns_share_the_room() -> None:
    with pytest.raises(UsageError, match="states"):
        Scope("any", (), exclude=tuple(f"re:{'a' * 100}" for _ in range(MOST_STATES // 50)), linear=True)


@attack("names that are no file of a survey", area="surveys from elsewhere", must_hold="none is opened, in no mode")
@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/etc/passwd", "a/b", "a\0b"])
def test_names_stay_inside(name: str, tmp_path: Path) -> None:
    for mode in ("rb", "xb", "r+b", "a+b"):
        with pytest.raises(SurveyError, match="plain files"):
            open_inside(tmp_path, name, mode)


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "hard").hardlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name, modes in {"link": ("rb", "r+b", "a+b"), "pipe": ("rb", "r+b", "a+b"), "hard": ("r+b", "a+b")}.items():
        for mode in modes:
            with pytest.raises(SurveyError, match="plain files"):
                open_inside(tmp_path, name, mode)
    assert (tmp_path / "file").read_bytes() == b"precious"

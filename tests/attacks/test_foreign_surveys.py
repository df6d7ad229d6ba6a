"""Surveys from elsewhere, opened with every command: no code runs, nothing outside is written, no request is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack import attack
from foreign import CALLS, CRAFTED, base_survey, opened

from surveyor.cli.lazy import COMMANDS, GROUPS

READS = ("status", "top", "rank", "report", "sql", "diff", "export", "graph build", "config show")
OPEN = ("nothing_altered", "strategy_is_code", "allows_a_cloud_agent", "in_a_hurry", "pattern_that_takes_forever")
REFUSED = {
    "damping_out_of_range",
    "damping_without_end",
    "delay_is_text",
    "strategy_is_a_number",
    "random_seed_without_end",
    "seed_is_a_file",
    "lock_is_a_link",
    "warc_is_a_link",
    "checkpoint_is_a_link",
    "journal_is_a_link",
    "manifest_is_a_link",
    "lock_is_a_pipe",
    "view_without_end",
    "rollback_journal_that_names_a_file",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return base_survey(tmp_path_factory.mktemp("base"))


def test_every_command_is_called() -> None:
    groups = {f"{group} {name}" for group, table in GROUPS.items() for name in table}
    assert set(CALLS) == (set(COMMANDS) - set(GROUPS)) | groups
    assert len(CRAFTED) >= 20


@attack(
    "a survey that a stranger has altered (code, links, pipes, paths, settings, patterns, SQL), with every command",
    area="surveys from elsewhere",
    must_hold="no import, no write outside, no connection, no endless command; an exit code that is documented",
    inputs=len([call for call in CALLS.values() if call is not None]),
)
@pytest.mark.parametrize("name", CRAFTED)
@pytest.mark.slow
def test_a_survey_from_elsewhere_is_data(name: str, base: tuple[Path, str], tmp_path: Path) -> None:
    rows = opened(name, *base, tmp_path / name)
    assert {row["command"]: row["violations"] for row in rows if row["violations"]} == {}
    codes = {row["command"]: row["code"] for row in rows}
    if name in OPEN:
        assert {command: codes[command] for command in READS} == dict.fromkeys(READS, 0)
    if name in REFUSED:
        assert {command: codes[command] for command in READS} == dict.fromkeys(READS, 4)
    if name == "strategy_is_code":
        assert codes["crawl"] == 2

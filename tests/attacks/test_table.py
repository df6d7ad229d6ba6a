"""The table of attacks is what the tests are: each row is a test that pytest collects, and the page is current."""

from __future__ import annotations

import subprocess
import sys

import pytest
from attack import attack, inputs_of
from page import PAGE, page

from table import TESTS, table


@pytest.mark.slow
def test_each_row_is_a_test_that_runs() -> None:
    rows = table()
    files = sorted({row.test.split("::")[0] for row in rows})
    collect = [sys.executable, "-m", "pytest", "-n0", "--collect-only", *files]
    done = subprocess.run(collect, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    collected = {line.split("[")[0] for line in done.stdout.splitlines()}
    assert [row.test for row in rows if row.test not in collected] == []


def test_each_row_says_something_of_its_own() -> None:
    rows = table()
    names = [row.name for row in rows]
    assert [name for name in names if names.count(name) > 1] == []
    assert [row.name for row in rows if not row.must_hold or row.inputs < 1] == []


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(table()), "run make docs"


def test_inputs_are_counted_from_the_cases() -> None:
    @attack("an example", area="pages", must_hold="nothing", inputs=2)
    @pytest.mark.parametrize("one", [1, 2, 3])
    @pytest.mark.parametrize("two", "ab")
    def example(one: int, two: str) -> None: ...

    assert inputs_of(example) == 12
    with pytest.raises(ValueError, match="area 'elsewhere' is not one of pages"):
        attack("an example", area="elsewhere", must_hold="nothing")
    with pytest.raises(ValueError, match="at least 1"):
        attack("an example", area="pages", must_hold="nothing", inputs=0)(example)

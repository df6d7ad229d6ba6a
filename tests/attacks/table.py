"""The table of attacks, collected from the tests: `python tests/attacks/table.py` prints it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from attack import AREAS, Attack, inputs_of

TESTS = Path(__file__).parent.parent
IMPORT = "from attack import"


def modules() -> list[Path]:
    """Return the test files that register attacks, wherever they are below tests/."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if IMPORT in path.read_text("utf-8")]


def table() -> list[Attack]:
    """Return every attack, by area and then in the order of the files."""
    rows = []
    for folder in (TESTS.parent, TESTS, *(TESTS / name for name in ("unit", "integration", "browser", "docs", "slow"))):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    for path in modules():
        module = importlib.import_module(path.stem)
        if not path.samefile(module.__file__ or ""):
            raise ImportError(f"two test modules are named {path.stem}: {path} and {module.__file__}")
        for name, test in vars(module).items():
            if name.startswith("test_") and (mark := getattr(test, "attack", None)) and test.__module__ == path.stem:
                node = f"{path.relative_to(TESTS.parent).as_posix()}::{name}"
                rows.append(Attack(mark.name, mark.area, inputs_of(test), mark.must_hold, node))
    return sorted(rows, key=lambda row: AREAS.index(row.area))


if __name__ == "__main__":
    for row in table():
        sys.stdout.write(f"{row.area:24} {row.inputs:9,}  {row.name}: {row.must_hold}  [{row.test}]\n")

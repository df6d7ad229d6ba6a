"""Retired words do not return: the code and the documentation use current technical terms (see CONTRIBUTING.md)."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EVERYWHERE = [
    r"\btold\b",
    r"(?<!\.)\btells?\b",  # but file.tell()
    r"\b(go|goes|going|gone|went) on\b",
    r"\bmend(s|ed|ing)?\b",
    r"\bseed of all chance\b",
    r"\bby chance\b",
    r"\bwhat became of\b",
    r"\bfates?\b",
    r"\bmanners\b",
    r"\berrands?\b",
    r"\bwish(es|ed)?\b",
    r"\bheard of\b",
    r"\bto and fro\b",
    r"\bmay be off\b",
    r"\bhow far off\b",
    r"\bwhat (it|they|that) (is|are) worth\b",
    r"\bnobody\b",
    r"\bfor good\b",
    r"\bin good order\b",
    r"\bmade-up\b",
    r"\bguests?\b",
]
OUTSIDE_TESTS = [
    r"\banew\b",
    r"\bas usual\b",
    r"\bbegun\b",
    r"\bheard\b",
    r"\bhow sure\b",
    r"\bin vain\b",
    r"\bknows nothing\b",
    r"\bleft alone\b",
    r"\bmade up\b",
    r"\bput together\b",
    r"\bsaid\b",
    r"\bshut\b",
    r"\bwhat comes\b",
    r"\bworth\b",
]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile")]
SOURCES = [*PAGES, *sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))]
SCRIPTS = [path for name in ("tests", "experiments", "benchmarks") for path in sorted((ROOT / name).rglob("*.py"))]


def hits(path: Path, words: list[str]) -> list[str]:
    pattern = re.compile("|".join(f"(?:{word})" for word in words), re.IGNORECASE)
    lines = path.read_text("utf-8").replace("_", " ").splitlines()  # also the words in identifiers
    return [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if pattern.search(line)]


def found_in(paths: list[Path], words: list[str]) -> dict[str, list[str]]:
    found = {str(path.relative_to(ROOT)): hits(path, words) for path in paths}
    return {name: lines for name, lines in found.items() if lines}


def test_no_retired_words_in_the_package_and_the_documentation() -> None:
    assert found_in(SOURCES, EVERYWHERE + OUTSIDE_TESTS) == {}


def test_no_retired_words_in_tests_and_scripts() -> None:
    assert found_in([path for path in SCRIPTS if path != Path(__file__)], EVERYWHERE) == {}

"""The documentation site: every public name is listed, builds give no warning, no resource is external."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surveyor

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "docs/check_site.py"


def check(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(CHECK), str(site)], capture_output=True, text=True, check=False)


def test_every_public_name_is_in_the_api_reference_once() -> None:
    page = (ROOT / "docs/reference/api.md").read_text("utf-8")
    names = [
        name for block in re.findall(r"^```api\n(.*?)^```", page, re.MULTILINE | re.DOTALL) for name in block.split()
    ]
    assert sorted(names) == sorted(surveyor.__all__)


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://pictures.example/a.png">',
        "<style>@import 'https://fonts.example/b.css';</style>",
        "<p style=\"background: url('https://pictures.example/c.png')\">",
    ],
)
def test_resources_of_other_hosts_are_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(text)
    done = check(tmp_path)
    assert done.returncode == 1
    assert "index.html: " in done.stderr
    assert "example" in done.stderr


def test_links_and_own_files_are_fine(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="https://example.org/">x</a><script src="_static/a.js"></script>')
    assert check(tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="needs the docs extra")
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", str(ROOT / "docs"), str(site)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'id="surveyor.pagerank"' in (site / "reference/api.html").read_text("utf-8")
    assert check(site).returncode == 0

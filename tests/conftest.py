"""Fixtures that several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from console import LINKS
from surveyor import Graph


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = tmp_path / "web.graph"
    Graph.from_edges(LINKS).save(path)
    return str(path)

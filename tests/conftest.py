"""Shared fixtures and Hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from console import LINKS
from surveyor import Graph

if TYPE_CHECKING:
    from surveyor.cluster.session import Session

# No deadlines, for busy machines, and fixed examples, for reproducible results; `make fuzz` uses new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolate the tests from the user's key and settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = tmp_path / "web.graph"
    Graph.from_edges(LINKS).save(path)
    return str(path)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to an empty folder, without the user's settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [name for name in os.environ if name.startswith("SURVEYOR_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def tiny_communities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow communities of any size, which are refused otherwise."""
    from surveyor.estimate.community import community_options

    monkeypatch.setattr(community_options, "MIN_LOCAL", 1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Session]:
    """Two nodes of Ray on loopback, shared by all tests of this process, as they take seconds to start."""
    from surveyor.cluster.session import Session

    with Session("local:2") as session:
        yield session

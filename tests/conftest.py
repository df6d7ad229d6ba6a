"""Shared fixtures and Hypothesis profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from console import LINKS
from surveyor import Graph

if TYPE_CHECKING:
    from distribution import FileScheduling
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


_clusters = ExitStack()
_sessions: list[Session] = []


@pytest.fixture
def cluster() -> Session:
    """Two nodes of Ray on loopback, shared by consecutive tests of a group, as they take seconds to start."""
    from surveyor.cluster.session import Session

    if not _sessions:
        _sessions.append(_clusters.enter_context(Session("local:2")))
        _clusters.callback(_sessions.clear)
    return _sessions[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the cluster after the last test of its group, as an idle cluster still takes time."""
    if _sessions and (nextitem is None or not nextitem.get_closest_marker("xdist_group")):
        _clusters.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the tests of groups, which are the longest."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileScheduling | None:
    """Keep a group in one process, which xdist alone does not with pytest 9.2."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from distribution import FileScheduling

    return FileScheduling(config, log)

"""The page about clusters: its YAML parses, the shell reads its script, its options and metrics exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from surveyor.crawler.shards.director import Director
from surveyor.crawler.shards.metrics import exposition
from surveyor.stopping import parse_rule

yaml = pytest.importorskip("yaml")
PAGE = (Path(__file__).parents[2] / "docs/how-to/run-a-cluster.md").read_text("utf-8")
OPTIONS = (
    "import json, ray.scripts.scripts as r;"
    "print(json.dumps([option for one in r.start.params for option in one.opts + one.secondary_opts]))"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def ray_options() -> set[str]:
    """The options of `ray start`, from another process: here Ray is only imported by a session."""
    done = subprocess.run([sys.executable, "-c", OPTIONS], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_kubernetes_resource_is_consistent(ray_options: set[str]) -> None:
    cluster, scraping = (yaml.safe_load(block) for block in blocks("yaml"))
    assert (cluster["kind"], cluster["apiVersion"]) == ("RayCluster", "ray.io/v1")
    spec = cluster["spec"]
    assert f"rayproject/ray:{spec['rayVersion']}-" in blocks("dockerfile")[0]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    pods: list[dict[str, Any]] = [group["template"]["spec"] for group in groups]
    for group, pod in zip(groups, pods, strict=True):
        assert {f"--{name}" for name in group["rayStartParams"]} <= ray_options
        assert all(isinstance(value, str) for value in group["rayStartParams"].values()), "KubeRay takes strings"
        (container,) = pod["containers"]
        env = {one["name"]: one for one in container["env"]}
        assert env["RAY_AUTH_MODE"]["value"] == "token"
        assert env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "surveyor-token", "key": "token"}
        assert [mount["name"] for mount in container["volumeMounts"]] == [one["name"] for one in pod["volumes"]]
    assert len({json.dumps([pod["volumes"], pod["containers"][0]["volumeMounts"]]) for pod in pods}) == 1
    assert "create secret generic surveyor-token --from-literal=token=" in PAGE
    (workers,) = spec["workerGroupSpecs"]
    assert f"--machines {workers['replicas']} " in PAGE
    assert scraping["scrape_configs"][0]["static_configs"][0]["targets"] == ["10.0.0.5:9464"]


def test_the_slurm_script_is_read_by_the_shell(ray_options: set[str]) -> None:
    from surveyor.cli.lazy import surveyor

    (script,) = blocks("bash")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    done = subprocess.run([bash, "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    joined = script.replace("\\\n", " ")
    starts = re.findall(r"\bray start (.*)", joined)
    assert len(starts) == 2
    assert {word.partition("=")[0] for line in starts for word in line.split() if word.startswith("--")} <= ray_options
    for name, line in re.findall(r"^[^#]*?\bsurveyor (cluster doctor|rank) (.*)", joined, re.MULTILINE):
        command: click.Command = surveyor
        for word in name.split():
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), word)
            assert found is not None
            command = found
        known = {option for one in command.params for option in one.opts}
        assert set(re.findall(r"--[a-z-]+", line)) <= known


def test_all_metrics_are_listed() -> None:
    text = exposition(Director(1, parse_rule("pages=1"), 0.85))
    made = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)) | {
        "surveyor_coverage_at_least",
        "surveyor_coverage_at_most",
    }
    table = PAGE.partition("| metric |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(surveyor_\w+)`", table)) == made

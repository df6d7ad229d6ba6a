"""The package in fresh virtual environments: with its base dependencies alone, then with each extra.

    python -m benchmarks.environments            (about five minutes; installs wheels)

For each: the size of the installed packages, the time of `import surveyor` and of a first ranking with warm kernels,
whether a ranking works, and the message of each feature whose library is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from benchmarks.graphs import ROOT

TIMEOUT = 600.0
FEATURES = {  # feature -> its extra
    "ranking.to_pandas()": "frames",
    "ranking.to_polars()": "frames",
    "ranking.to_arrow()": "formats",
    "ranking.plot()": "report",
    "graph.to_networkx()": "formats",
    "graph.to_scipy()": "formats",
    "graph.to_arrow()": "formats",
}
PROGRAM = f"""
import json, sys, time
start = time.perf_counter()
import surveyor as sv
imported = time.perf_counter() - start
graph = sv.as_graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")])
ranking = sv.pagerank(graph, tolerance=1e-9)
assert abs(ranking.share("b") - 0.39741) < 1e-4
assert "<table>" in ranking._repr_html_()
ranked = time.perf_counter() - start
found = {{}}
for feature in {list(FEATURES)!r}:
    try:
        eval(feature)
        found[feature] = "works"
    except sv.MissingExtra as error:
        found[feature] = f"{{error.problem}}; {{error.hint}}"
print(json.dumps({{"import": imported, "rank": ranked, "features": found}}))
"""


def extras() -> list[str]:
    """Return the names of the extras that users install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in ("dev", "docs", "bench")]


def measure(extra: str, place: Path) -> None:
    """Install the package with an extra, and print what works."""
    home = place / (extra or "base")
    subprocess.run([sys.executable, "-m", "venv", home], check=True, timeout=TIMEOUT)
    python = home / "bin" / "python"
    environment = {
        **os.environ,
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "XDG_CACHE_HOME": str(place / "cache"),
    }
    environment.pop("PYTHONPATH", None)
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    start = time.perf_counter()
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    subprocess.run([*pip, target], env=environment, check=True, timeout=TIMEOUT, stderr=subprocess.DEVNULL)
    installed = time.perf_counter() - start
    results = []
    for _ in range(3):  # the first compiles
        done = subprocess.run(
            [python, "-c", PROGRAM],
            env=environment,
            cwd=place,
            stdout=subprocess.PIPE,  # errors are shown
            text=True,
            check=True,
            timeout=TIMEOUT,
        )
        results.append(json.loads(done.stdout))
    best = {key: min(result[key] for result in results) for key in ("import", "rank")}
    size = sum(file.stat().st_size for file in home.rglob("*") if file.is_file() and not file.is_symlink())
    print(
        f"{extra or 'base':8} {size / 1e6:6,.0f} MB, installed in {installed:4.0f} s, "
        f"import {1000 * best['import']:4.0f} ms, "
        f"import and first ranking {best['rank']:5.2f} s warm, {results[0]['rank']:5.1f} s cold",
        flush=True,
    )
    for feature, found in results[0]["features"].items():
        wrong = found != "works" and FEATURES[feature] == extra
        print(f"    {feature:22} {found}{'  <- MISSING FROM ITS OWN EXTRA' if wrong else ''}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="surveyor-environments-") as folder:
        for name in ["", *extras()]:
            measure(name, Path(folder))

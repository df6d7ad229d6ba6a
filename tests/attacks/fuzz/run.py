"""Fuzzers: random changes to valid input, run beneath every boundary; any error but SurveyorError is a finding.

    python tests/attacks/fuzz/run.py graphml npz --inputs 200000 --seed 1
    python tests/attacks/fuzz/run.py all --inputs 2000
    python tests/attacks/fuzz/run.py npz --input 504b0304…        run one input again

A target is a file `target_<name>.py` beside this one:

    NAME: str
    seeds() -> list[bytes]               valid inputs to begin with
    run(data: bytes) -> None             raises SurveyorError for input that it rejects; checks its own invariants
    TOKENS: list[bytes]                  optional: words of the format
    mutate(data, rng) -> bytes           optional: structure-aware change, used for half of the inputs

The search is guided: an input that reaches a new line of surveyor or a new kind of rejection is kept and changed
further. Inputs run in a child process with bounded memory and time, so that a crash or an endless loop is a finding
with its input too; kernels check every index there. Exit code 1 if there are findings.
"""

from __future__ import annotations

import argparse
import importlib.util
import mmap
import os
import random
import re
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
sys.path.insert(0, str(FOLDER.parents[1]))

from mutation import LONGEST, Mutator  # noqa: E402  # beside this file
from scratch import scratch  # noqa: E402

from surveyor.errors import SurveyorError  # noqa: E402

MEMORY = 6 << 30  # address space of a child
PATIENCE = 60.0  # seconds for one input
RECORD = 16 + LONGEST
KEPT = 2000
KERNELS = Path.home() / ".cache" / "surveyor-fuzz"  # compiled kernels that check every index
SOURCE = "/surveyor/"


@dataclass
class Finding:
    """What went wrong, where, and the input that shows it."""

    kind: str
    place: str
    data: bytes
    detail: str = ""


@dataclass
class Found:
    """The result of a search."""

    inputs: int = 0
    rejected: int = 0
    outcomes: set[str] = field(default_factory=set)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)


def targets() -> dict[str, Path]:
    """Return the file of each target, by name."""
    return {path.stem.removeprefix("target_"): path for path in sorted(FOLDER.glob("target_*.py"))}


def load(name: str) -> ModuleType:
    """Import a target."""
    path = targets()[name]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def explore(
    target: Any, inputs: int, seed: str, *, note: Callable[[bytes], None] = lambda _: None, found: Found | None = None
) -> Found:
    """Run a target on changed inputs in this process; the valid ones come first."""
    rng = random.Random(f"{target.NAME} {seed}")  # noqa: S311
    mutator = Mutator(rng, getattr(target, "TOKENS", ()))
    own: Callable[[bytes, random.Random], bytes] | None = getattr(target, "mutate", None)
    corpus: list[bytes] = list(target.seeds())
    found = Found() if found is None else found
    first = len(corpus)
    with Lines() as lines:
        for number in range(inputs):
            if number < first:
                data = corpus[number]
            else:
                pool = corpus[:first] if rng.random() < 0.5 else corpus[-50:] if rng.random() < 0.3 else corpus
                data = rng.choice(pool)  # half of all begin at valid input, or most would be broken several times
                if own is not None and rng.random() < 0.5:
                    data = own(data, rng)[:LONGEST]
                else:
                    data = mutator.mutate(data, rng.choice(corpus))
            note(data)
            before = len(lines.reached), len(found.outcomes)
            with lines.watching():
                outcome = attempt(target, data, found)
            found.outcomes.add(outcome)
            if before != (len(lines.reached), len(found.outcomes)) and number >= first and len(corpus) < KEPT:
                corpus.append(data)
    return found


def attempt(target: Any, data: bytes, found: Found) -> str:
    """Run one input; return the kind of its outcome."""
    found.inputs += 1
    try:
        target.run(data)
    except SurveyorError as error:
        found.rejected += 1
        return re.sub(r"\d+|'.*?'|\"[^\"]*\"|/\S+", "_", error.problem)[:80]
    except Exception as error:
        place = where(error)
        kind = type(error).__name__
        found.findings.setdefault((kind, place), Finding(kind, place, data, str(error)[:200]))
        return f"{kind} {place}"
    return "accepted"


def where(error: BaseException) -> str:
    """Return the innermost place in surveyor or in a target that an error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if SOURCE in frame.filename or "target_" in frame.filename]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


class Lines:
    """The lines of surveyor that were reached: all of them where Python reports each once, else by samples."""

    def __init__(self) -> None:
        self.reached: set[tuple[str, int]] = set()
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._turn = 0

    def __enter__(self) -> Lines:
        if self._monitoring is not None:
            tool, events = self._monitoring.COVERAGE_ID, self._monitoring.events
            self._monitoring.use_tool_id(tool, "fuzz")
            self._monitoring.register_callback(tool, events.LINE, self._reached)
            self._monitoring.set_events(tool, events.LINE)
            self._monitoring.restart_events()
        return self

    def __exit__(self, *_: object) -> None:
        if self._monitoring is not None:
            self._monitoring.set_events(self._monitoring.COVERAGE_ID, 0)
            self._monitoring.free_tool_id(self._monitoring.COVERAGE_ID)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch one input; where watching is slow, one in eight."""
        self._turn += 1
        slow = self._monitoring is None and self._turn % 8 == 0 and sys.gettrace() is None
        if slow:
            sys.settrace(self._called)
        try:
            yield
        finally:
            if slow:
                sys.settrace(None)

    def _reached(self, code: CodeType, line: int) -> object:
        if SOURCE in code.co_filename:
            self.reached.add((code.co_filename, line))
        return self._monitoring.DISABLE

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._traced if SOURCE in frame.f_code.co_filename else None

    def _traced(self, frame: FrameType, _event: str, _argument: object) -> Any:
        self.reached.add((frame.f_code.co_filename, frame.f_lineno))
        return self._traced


def search(name: str, inputs: int, seed: int) -> Found:
    """Run a target in child processes until it has had all its inputs."""
    total, attempts = Found(), 0
    while total.inputs < inputs and attempts < 50:
        record = scratch() / f"record-{name}"
        record.write_bytes(bytes(RECORD))
        command = [sys.executable, __file__, name, "--inputs", str(inputs - total.inputs), "--seed"]
        child = subprocess.Popen(
            [*command, f"{seed}.{attempts}", "--child", str(record)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(KERNELS)},
        )
        try:
            _watch(child, record, total)
        finally:
            record.unlink()
        attempts += 1
    return total


def _watch(child: subprocess.Popen[bytes], record: Path, total: Found) -> None:
    """Wait for a child; a crash or an input without an end becomes a finding."""
    seen, since = b"", time.monotonic()
    while True:
        try:
            out, problem = child.communicate(timeout=PATIENCE / 10)
            break
        except subprocess.TimeoutExpired:
            current = record.read_bytes()[:8]
            if current != seen:
                seen, since = current, time.monotonic()
            elif time.monotonic() - since > PATIENCE and any(current):
                child.kill()
                out, problem = child.communicate()
                problem = b"hang"
                break
    data = record.read_bytes()
    count, size = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:16], "little")
    for line in out.decode().splitlines():
        kind, place, text, detail = line.split("\t", 3)
        if kind == "=":
            total.rejected += int(place)
            total.outcomes |= {f"{len(total.outcomes) + n}" for n in range(int(text))}
        else:
            total.findings.setdefault((kind, place), Finding(kind, place, bytes.fromhex(text), detail))
    total.inputs += max(count, 1)
    if child.returncode:
        last = problem.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        kind = "hang" if problem == b"hang" else f"exit {child.returncode}"
        total.findings.setdefault((kind, last[0][:80]), Finding(kind, last[0][:80], data[16 : 16 + size]))


def work(name: str, inputs: int, seed: str, record: Path) -> None:
    """Be the child: note every input before it runs, print the findings."""
    limit = MEMORY if sys.platform == "linux" else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    count, found = 0, Found()
    with record.open("r+b") as file, mmap.mmap(file.fileno(), RECORD) as shared:

        def note(data: bytes) -> None:
            nonlocal count
            count += 1
            shared[8 : 16 + len(data)] = len(data).to_bytes(8, "little") + data
            shared[:8] = count.to_bytes(8, "little")

        explore(load(name), inputs, seed, note=note, found=found)
    for finding in found.findings.values():
        detail = " ".join(finding.detail.split())
        sys.stdout.write(f"{finding.kind}\t{finding.place}\t{finding.data.hex()}\t{detail}\n")
    sys.stdout.write(f"=\t{found.rejected}\t{len(found.outcomes)}\t\n")


def main() -> int:
    """Search the targets named, one after another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="+", metavar="TARGET", help=f"all, or of: {', '.join(targets())}")
    parser.add_argument("--inputs", type=int, default=10_000, help="for each target")
    parser.add_argument("--seed", default=None, help="of the random numbers; by default from the clock")
    parser.add_argument("--input", default=None, metavar="HEX", help="run this one input in this process")
    parser.add_argument("--child", default=None, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = list(targets()) if given.targets == ["all"] else given.targets
    if unknown := set(names) - set(targets()):
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    if given.child is not None:
        work(names[0], given.inputs, given.seed, given.child)
        return 0
    if given.input is not None:
        load(names[0]).run(bytes.fromhex(given.input))
        return 0
    seed = int(given.seed if given.seed is not None else time.time())
    failed = False
    for name in names:
        began = time.monotonic()
        found = search(name, given.inputs, seed)
        rate = found.inputs / (time.monotonic() - began)
        sys.stdout.write(
            f"{name}: {found.inputs:,} inputs ({rate:,.0f} a second, seed {seed}), {found.rejected:,} rejected in "
            f"{len(found.outcomes)} ways, {len(found.findings)} findings\n"
        )
        for finding in found.findings.values():
            sys.stdout.write(f"  {finding.kind} at {finding.place}: {finding.detail}\n    {finding.data.hex()}\n")
        sys.stdout.flush()
        failed = failed or bool(found.findings)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

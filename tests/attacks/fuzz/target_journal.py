"""Journals of surveys: whatever changes in one, its log or its head, each reader reports damage or gives the same.

An input is a patch: runs of file (1 byte), offset (4 bytes), length (1 byte) and new bytes. The last file byte 255 cuts
the file at the offset instead.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from scratch import scratch

from fake_web import Sites, Time, crawled, moved, page, rules
from surveyor.errors import SurveyorError
from surveyor.store.directory import SurveyFolder

NAME = "journal"
TOKENS = [b"\xff\xff\xff\xff", bytes(40), b"SQLite format 3\0", b"\x0d\0\0\0", b"http://", b"blocked", b"fetched"]
A = "http://a.org"
SURVEY = scratch() / "a.survey"
FILES: dict[str, bytes] = {}
EXPECTED: list[str] = []


def seeds() -> list[bytes]:
    prepare()
    sizes = [len(data) for data in FILES.values()]
    flips = [patch(file, size // 2, b"\xff") for file, size in enumerate(sizes)]
    return [b"", patch(0, 100, bytes(8)), patch(0, 24, b"\0\0\0\1"), patch(0, 5000, b"http://b.org/"), *flips]


def patch(file: int, offset: int, data: bytes) -> bytes:
    return bytes([file]) + offset.to_bytes(4, "little") + bytes([len(data)]) + data


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Add a change at a random place, or begin again with one."""
    file = rng.randrange(len(FILES)) if rng.random() < 0.97 else 255
    offset = rng.randrange(max(map(len, FILES.values())) or 1)
    new = rng.choice(
        [rng.randbytes(rng.choice([1, 1, 1, 2, 4, 16, 60])), rng.choice(TOKENS), bytes(rng.choice([1, 4]))]
    )
    return (data if rng.random() < 0.3 else b"") + patch(file, offset, new)


def run(data: bytes) -> None:
    prepare()
    files = {name: bytearray(body) for name, body in FILES.items()}
    names = list(files)
    place = 0
    while place + 6 <= len(data):
        offset, length = int.from_bytes(data[place + 1 : place + 5], "little"), data[place + 5]
        new = data[place + 6 : place + 6 + length]
        chosen = files[names[data[place] % len(names)]]
        if data[place] == 255:
            del chosen[offset:]
        elif offset < len(chosen):
            chosen[offset : offset + len(new)] = new[: len(chosen) - offset]
        place += 6 + length
    for path in SURVEY.iterdir():
        if path.name.startswith("journal") and path.name not in files:
            path.unlink()
    for name, body in files.items():
        (SURVEY / name).write_bytes(body)
    changed = any(bytes(files[name]) != FILES[name] for name in names)
    with SurveyFolder.open(SURVEY, write=False) as folder:
        problem = None
        for number, reader in enumerate(READERS):
            try:
                found = repr(reader(folder))
            except SurveyorError as error:
                problem = error
                continue
            assert found == EXPECTED[number], f"reader {number}: {found[:200]} is not {EXPECTED[number][:200]}"
    if problem is not None:
        assert changed
        raise problem


READERS: list[Callable[[SurveyFolder], object]] = [
    lambda folder: [(one.page, one.kind, one.reason, one.links.tolist()) for one in folder.journal.outcomes()],
    lambda folder: [
        (one.page, one.title, one.status, one.hash, one.fetched_at, one.etag) for one in folder.journal.visits()
    ],
    lambda folder: [*folder.journal.urls(), [(number, url) for number, url, _ in folder.journal.pages()]],
    lambda folder: [
        folder.journal.kinds(),
        folder.journal.cost(),
        folder.journal.identity,
        folder.journal.archived,
    ],
    lambda folder: [folder.journal.robots(A), *folder.journal.answered(), folder.journal.asked().tolist()],
    lambda folder: [*folder.journal.events(), folder.journal.state_events()],
]


def prepare() -> None:
    if FILES:
        return
    shutil.rmtree(SURVEY, ignore_errors=True)
    pages = {f"{A}/": page(f"{A}/", *(f"/{n}" for n in range(12)), extra="<title>Home</title>")}
    pages |= {f"{A}/{n}": page(f"{A}/{n}", f"/{n + 1}", "http://b.org/") for n in range(10)}
    answers = {**pages, **rules(A, "User-agent: *\nDisallow: /11"), f"{A}/10": moved(f"{A}/10", "/")}
    crawled(Path(SURVEY), [f"{A}/"], Sites(Time(), answers))
    names = ("journal.sqlite", "journal.sqlite-wal", "journal.head")
    FILES.update({path.name: path.read_bytes() for path in sorted(SURVEY.iterdir()) if path.name in names})
    with SurveyFolder.open(SURVEY, write=False) as folder:
        EXPECTED.extend(repr(reader(folder)) for reader in READERS)

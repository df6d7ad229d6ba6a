"""Surveys as a stranger might send them: a real one, altered. `python tests/attacks/foreign.py` prints what happens.

`CRAFTED` has one function per survey, which alters a copy of a survey that was crawled on loopback under another
user's key. `CALLS` says how each command is called with a survey (`test_foreign_surveys` checks that none is missing).
All commands run in a child process (`foreign_child`) that records imports, files written and connections.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

CHILD = Path(__file__).with_name("foreign_child.py")
PRECIOUS = b"precious\n" * 200
Craft = Callable[[Path, Path], None]  # the survey, and a folder outside it
CRAFTED: dict[str, Craft] = {}
CALLS: dict[str, list[str] | None] = {  # None: it takes no survey, or runs until it is stopped
    "status": ["{survey}"],
    "steer": ["{survey}", "pause"],
    "top": ["{survey}"],
    "rank": ["{survey}", "--report", "{out}/rank.html"],
    "check": ["{survey}"],
    "explain": ["{survey}", "{seed}"],
    "report": ["{survey}"],
    "search": ["{survey}", "page", "--explain"],
    "sql": ["{survey}", "SELECT count(*) FROM pages"],
    "diff": ["{survey}", "{honest}"],
    "export": ["{survey}", "--out", "{out}/pages.csv"],
    "domains": ["{survey}", "--condense"],
    "simulate": ["{survey}", "--strategies", "breadth", "--until", "pages=3"],
    "graph build": ["{survey}", "{out}/a.graph"],
    "graph info": ["{survey}"],
    "graph convert": ["{survey}", "{out}/a.csv"],
    "graph condense": ["{survey}", "{out}/b.graph"],
    "graph split": ["{survey}", "{out}/b.pieces", "--pieces", "2"],
    "cluster reshard": ["{survey}", "--shards", "0"],
    "topic train": ["{out}/topic.json", "--survey", "{survey}", "--positive", "{seed}1", "--negative", "{seed}2"],
    "topic test": ["word:page", "{survey}"],
    "config show": ["{survey}"],
    "sample": ["{survey}", "--topic", "everything", "--until", "steps=20"],
    "community": [
        "{survey}",
        "--local",
        "all",
        "--extra",
        "2",
        "--out",
        "{out}/c.survey",
        "--contact",
        "me@example.org",
    ],
    "crawl": ["{survey}", "--until", "minutes=0.05", "--contact", "me@example.org"],
    "scout": ["{survey}", "--walks", "5", "--until", "minutes=0.05", "--contact", "me@example.org"],
    "watch": ["{survey}", "--once", "--rate", "10/day", "--contact", "me@example.org"],
    "config trust": ["{survey}"],  # last: it vouches for what the survey says
    "serve": None,  # test_serve_security.py and tests/browser open such surveys
    "mcp": None,  # test_mcp_security.py opens such surveys
    "try": None,
    "demo": None,
    "init": None,
    "config list": None,
    "doctor": None,
    "cluster doctor": None,
    "completion": None,
}


def crafted(craft: Craft) -> Craft:
    CRAFTED[craft.__name__] = craft
    return craft


def say(survey: Path, **settings: Any) -> None:
    """Give a survey other settings, as somebody with an editor would."""
    from surveyor.store.manifest import toml

    path = survey / "survey.toml"
    text = path.read_text("utf-8")
    for name, value in settings.items():
        line = toml({name: value}).strip()
        if re.search(rf"(?m)^{name} = .*$", text.partition("[settings]")[2].partition("[origins]")[0]):
            head, _, rest = text.partition("[settings]")
            text = head + "[settings]" + re.sub(rf"(?m)^{name} = .*$", line.replace("\\", "\\\\"), rest, count=1)
        else:
            text = text.replace("[settings]\n", f"[settings]\n{line}\n", 1)
    path.write_text(text, "utf-8")


def state(survey: Path, name: str, value: str) -> None:
    """Give a survey another top-level value."""
    path = survey / "survey.toml"
    path.write_text(re.sub(rf"(?m)^{name} = .*$", lambda _: f"{name} = {value}", path.read_text("utf-8"), count=1))


def ask(survey: Path, *statements: str, values: tuple[str, ...] = ()) -> None:
    """Change a journal as somebody would who knows its format: all checksums and digests are right afterwards."""
    from surveyor.store import commits
    from surveyor.store.commits import Head
    from surveyor.store.database import ask as rows
    from surveyor.store.database import transaction
    from surveyor.store.journal import Journal, _edition

    with closing(Journal.open(survey / "journal.sqlite")) as journal:
        connection, last = journal._connection, journal._last
        with transaction(connection):
            for statement in statements:
                connection.execute(statement, values)
            ((event,),) = rows(connection, "SELECT coalesce(max(event), 0) FROM events")
            if event > last.event:
                commits.add(connection, replace(last, number=last.number + 1, event=event))
            now = commits.rechain(connection)
        if journal._head is not None:
            edition = journal._edition if "meta_before" in str(statements) else _edition(connection)
            journal._head.announce(Head(edition, now.number, now.digest), last.number)
        journal._reached(now, both=True)
        journal.flush()


def link(place: Path, target: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


@crafted
def nothing_altered(_survey: Path, _outside: Path) -> None:
    """Made honestly, by another user: it opens with every command."""


@crafted
def strategy_is_code(survey: Path, _outside: Path) -> None:
    say(survey, strategy="evil_strategy:Evil")


@crafted
def strategy_is_code_with_numbers(survey: Path, _outside: Path) -> None:
    say(survey, strategy="evil_strategy:Evil")
    with (survey / "survey.toml").open("a") as file:
        file.write("\n[replay]\nclosure = nan\neager = false\nrereads = true\n")


@crafted
def allows_a_cloud_agent(survey: Path, _outside: Path) -> None:
    say(survey, allow=["169.254.169.254", "10.0.0.1", "127.0.0.2"], delay=0.0, scope="any")
    state(survey, "seeds", '["http://169.254.169.254/latest/", "http://10.0.0.1/", "http://127.0.0.2/"]')
    ask(survey, "UPDATE urls SET url = 'http://169.254.169.254/latest/' WHERE id = 0")


@crafted
def in_a_hurry(survey: Path, _outside: Path) -> None:
    say(survey, delay=0.0, domain_delay=0.0, backoff=0.0, concurrency=5000, max_bytes=10**12, timeout=1e9, max_wait=1e9)
    say(survey, contact="victim@example.org")
    path = survey / "survey.toml"
    table = "[settings.permission]\n"
    path.write_text(path.read_text("utf-8").replace(table, f'{table}"127.0.0.1" = "I said so"\n'), "utf-8")


@crafted
def budgets_from_a_file(survey: Path, outside: Path) -> None:
    say(survey, budget_file=str(outside / "precious"), budget=str(outside / "precious"))


@crafted
def lock_is_a_link(survey: Path, outside: Path) -> None:
    link(survey / "lock", outside / "precious")


@crafted
def lock_is_a_hard_link(survey: Path, outside: Path) -> None:
    (survey / "lock").unlink()
    (survey / "lock").hardlink_to(outside / "precious")


@crafted
def lock_is_a_pipe(survey: Path, _outside: Path) -> None:
    (survey / "lock").unlink()
    os.mkfifo(survey / "lock")


@crafted
def archive_named_outside(survey: Path, outside: Path) -> None:
    ask(survey, "INSERT OR REPLACE INTO meta VALUES ('archived', ?)", values=(f"{outside / 'precious'} 0",))


@crafted
def archive_named_above(survey: Path, _outside: Path) -> None:
    ask(survey, "INSERT OR REPLACE INTO meta VALUES ('archived', '../../outside/00000.warc.gz 3')")


@crafted
def records_named_outside(survey: Path, outside: Path) -> None:
    statement = "UPDATE visits SET warc_file = ?, warc_offset = 0, warc_length = 900"
    ask(survey, statement, values=(str(outside / "precious"),))


@crafted
def records_of_absurd_size(survey: Path, _outside: Path) -> None:
    ask(
        survey,
        "UPDATE visits SET warc_offset = -5, warc_length = 9223372036854775807 WHERE visit % 2 = 0",
        "UPDATE visits SET warc_offset = 0, warc_length = 281474976710655 WHERE visit % 2 = 1",
    )


@crafted
def warc_is_a_link(survey: Path, outside: Path) -> None:
    link(survey / "warc", outside)


@crafted
def archive_is_a_link(survey: Path, outside: Path) -> None:
    link(survey / "warc" / "00000.warc.gz", outside / "precious")


@crafted
def checkpoint_is_a_link(survey: Path, outside: Path) -> None:
    link(survey / "checkpoint", outside)


@crafted
def checkpoint_with_a_class_that_deletes(survey: Path, outside: Path) -> None:
    (state_,) = [path for path in (survey / "checkpoint").iterdir() if path.is_dir()][:1]
    header = json.loads((state_ / "header.json").read_text())
    evil = {"name": str(outside / "precious"), "close_called": False, "delete": True}
    header["about"]["frozen"]["things"] += [["plain", "tempfile:_TemporaryFileCloser", evil]]
    number = len(header["about"]["frozen"]["things"]) - 1
    header["about"]["frozen"]["objects"]["ledger"]["damping"] = ["thing", number]
    (state_ / "header.json").write_text(json.dumps(header))


@crafted
def journal_is_a_link(survey: Path, outside: Path) -> None:
    shutil.copy(survey / "journal.sqlite", outside / "other.sqlite")
    link(survey / "journal.sqlite", outside / "other.sqlite")


@crafted
def rollback_journal_that_names_a_file(survey: Path, outside: Path) -> None:
    """SQLite removes the super-journal that a hot journal names, once no other refers to it."""
    name = str(outside / "precious").encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">IIIII", 0, 0, (survey / "journal.sqlite").stat().st_size // 4096, 512, 4096)
    tail = struct.pack(">I", 1 << 30) + name + struct.pack(">II", len(name), sum(name)) + magic
    (survey / "journal.sqlite-journal").write_bytes(header.ljust(512, b"\0") + tail)


@crafted
def manifest_is_a_link(survey: Path, outside: Path) -> None:
    shutil.move(survey / "survey.toml", outside / "survey.toml")
    link(survey / "survey.toml", outside / "survey.toml")


@crafted
def report_and_tables_are_links(survey: Path, outside: Path) -> None:
    for name in ("report.html", "pages.parquet"):
        link(survey / name, outside / "precious")


@crafted
def topics_are_a_link(survey: Path, outside: Path) -> None:
    link(survey / "topics", outside)


@crafted
def pipes_in_the_folders(survey: Path, _outside: Path) -> None:
    os.mkfifo(survey / "warc" / "00001.warc.gz")
    os.mkfifo(next((survey / "checkpoint").iterdir()) / "evil.npy")


@crafted
def drafts_are_links(survey: Path, outside: Path) -> None:
    for pid in range(1, 3000):
        (survey / f".draft-{pid}-survey.toml").symlink_to(outside / "precious")


@crafted
def damping_out_of_range(survey: Path, _outside: Path) -> None:
    say(survey, damping=7.0)


@crafted
def damping_without_end(survey: Path, _outside: Path) -> None:
    say(survey, damping=1 - 1e-12)


@crafted
def delay_is_text(survey: Path, _outside: Path) -> None:
    say(survey, delay="x")


@crafted
def strategy_is_a_number(survey: Path, _outside: Path) -> None:
    say(survey, strategy=3)


@crafted
def random_seed_without_end(survey: Path, _outside: Path) -> None:
    state(survey, "rng", "9" * 4000)


@crafted
def seed_is_a_file(survey: Path, _outside: Path) -> None:
    state(survey, "seeds", '["file:///etc/passwd"]')


@crafted
def strategy_with_a_huge_number(survey: Path, _outside: Path) -> None:
    say(survey, strategy="rounds:local=2000000000,start=2000000000")


@crafted
def pattern_that_takes_forever(survey: Path, _outside: Path) -> None:
    say(survey, include=["re:(([a-z0-9.:/])+)+=$"], exclude=["re:^(\\w+\\.?:?/?)*\\s$"])
    ask(survey, "INSERT INTO events(visit, at, kind, detail) VALUES (0, 0, 'rescope', '{}')")


@crafted
def pattern_that_looks_back(survey: Path, _outside: Path) -> None:
    say(survey, exclude=["re:(a*)*(?=b)\\1$"])


@crafted
def tables_without_end(survey: Path, _outside: Path) -> None:
    path = survey / "survey.toml"
    path.write_text(path.read_text() + "\nx = " + "[" * 50_000)


@crafted
def events_that_mean_nothing(survey: Path, _outside: Path) -> None:
    for kind, detail in (
        ("budgets", "{}"),
        ("community", '{"base": 3}'),
        ("sample", "{}"),
        ("retry_blocked", "{}"),
        ("backoff", '{"host": 3}'),
        ("retry", '{"page": "x"}'),
        ("settled", "[]"),
        ("budgets", '{"reopened": 3, "default": "x", "pages": 7, "spec": 1}'),
    ):
        ask(survey, "INSERT INTO events(visit, at, kind, detail) VALUES (1, 0, ?, ?)", values=(kind, detail))


@crafted
def view_without_end(survey: Path, _outside: Path) -> None:
    ask(
        survey,
        "ALTER TABLE meta RENAME TO meta_before",
        "CREATE VIEW meta AS WITH RECURSIVE n(key, value) AS "
        "(SELECT 1, 1 UNION ALL SELECT key + 1, value FROM n) SELECT key, value FROM n WHERE key < 0",
    )


@crafted
def trigger_on_every_visit(survey: Path, _outside: Path) -> None:
    ask(survey, "CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM visits; END")


@crafted
def urls_with_escapes(survey: Path, _outside: Path) -> None:
    ask(survey, "UPDATE urls SET url = 'http://127.0.0.1/' || char(27) || ']0;evil' || char(7) WHERE id = 1")


@crafted
def urls_of_files(survey: Path, _outside: Path) -> None:
    ask(survey, "UPDATE urls SET url = 'file:///etc/passwd' WHERE id = 1")


@contextmanager
def serving(pages: int) -> Iterator[str]:
    """Serve a site of so many pages, which link in a ring and to the first, on loopback; give its address."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.strip("/") or 0) if re.fullmatch(r"/\d*", self.path) else -1
            links = f"<a href=/{(number + 1) % pages}>next</a><a href=/>home</a>"
            body = f"<title>page {number}</title>{links} words of the page".encode()
            self.send_response(200 if number >= 0 else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def base_survey(folder: Path, pages: int = 12) -> tuple[Path, str]:
    """Crawl a small site on loopback under the key of whoever runs this; return the survey and its seed."""
    import surveyor as sv

    with serving(pages) as seed:
        settings: dict[str, Any] = {"delay": 0.0, "allow": ["127.0.0.1"], "contact": "other@example.org", "rng": 3}
        sv.crawl(seed, until=sv.Pages(pages // 2), out=folder / "base.survey", **settings).close()
    return folder / "base.survey", seed


def opened(name: str, base: Path, seed: str, folder: Path) -> list[dict[str, Any]]:
    """Alter a copy of a survey and open it with every command, as another user; return what happened."""
    folder.mkdir()
    outside, survey = folder / "outside", folder / "here" / "a.survey"
    for place in (outside, folder / "here" / "out", folder / "config", folder / "code"):
        place.mkdir(parents=True)
    (outside / "precious").write_bytes(PRECIOUS)
    (outside / "00000.warc.gz").write_bytes(PRECIOUS)
    evil = f"from pathlib import Path\nPath({str(folder / 'imported')!r}).touch()\nclass Evil: pass\n"
    for place in (folder / "code", folder / "here"):
        (place / "evil_strategy.py").write_text(evil)
    shutil.copytree(base, survey)
    shutil.copytree(base, folder / "here" / "honest.survey")
    CRAFTED[name](survey, outside)
    plan = {"calls": CALLS, "seed": seed, "folder": str(folder)}
    environ = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(folder / "code"), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, str(CHILD)],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        cwd=folder / "here",
        env=environ,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CONFIG_HOME"] = str(Path(place) / "author")
        base, seed = base_survey(Path(place))
        for name in sys.argv[1:] or CRAFTED:
            rows = opened(name, base, seed, Path(place) / name)
            codes: dict[int, list[str]] = {}
            for row in rows:
                codes.setdefault(row["code"], []).append(row["command"])
            codes_text = "; ".join(f"exit {code}: {', '.join(which)}" for code, which in sorted(codes.items()))
            bad = [f"{row['command']}: {row['violations']}" for row in rows if row["violations"]]
            sys.stdout.write(f"{name:40} {codes_text}\n")
            sys.stdout.write("".join(f"    VIOLATION {line}\n" for line in bad))
            first = next((row["message"] for row in rows if row["code"] in (2, 4)), "")
            sys.stdout.write(f"    {first}\n" if first else "")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

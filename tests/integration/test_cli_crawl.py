"""Commands of a crawl, against a web on loopback: what they say, where they end, what goes wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import CommandResult, process, wait_for
from surveyor.config import Settings
from surveyor.crawler.session import Run, run
from surveyor.crawler.start import start
from surveyor.outcome import Outcome
from surveyor.stopping import Pages
from surveyor.store.directory import SurveyFolder
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = pytest.mark.usefixtures("nowhere")

ME = ["--contact", "me@example.org"]
QUICK = {"slow_seconds": 0.02, "pace": 0.05, "crawl_delay": 0.02}


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(**QUICK)) as made:  # type: ignore[arg-type]
        yield made


def polite(web: EmbeddedWeb, *more: str) -> list[str]:
    """Return the options of a crawl of this web."""
    proxy = ["--proxy", f"http://127.0.0.1:{web.port}"]
    return [*proxy, "--contact", "me@example.org", "--delay", "0", "--backoff", "0.02", "--scope", "any", *more]


def test_a_crawl_reports_its_coverage_and_resumes(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*web.seeds, *polite(web, "--out", "a.survey", "--rng", "3")]
    first = CommandResult(capsys, "crawl", *words, "--until", "coverage=0.5")
    assert first.code == 0
    assert "Goal reached (coverage 50 %)" in first.out
    assert "Ctrl-C is safe" in first.err
    assert "surveyor explain a.survey" in first.err
    reads = CommandResult(capsys, "status", "a.survey", "--json").json()["pages_fetched"]
    second = CommandResult(capsys, *words, "--until", "coverage=0.7", "--json")  # no command: a URL is crawled
    result = second.json()
    assert (second.code, result["reached"], result["ending"], result["rng"]) == (0, True, "reached", 3)
    assert result["pages_fetched"] > reads
    assert result["coverage"]["at_least"] >= 0.7
    assert (
        abs(sum(result["coverage"][name] for name in ("captured", "moving", "waiting", "blocked", "lost")) - 1) < 1e-9
    )
    assert f"Resuming from {reads} pages (at least " in second.err
    status = CommandResult(capsys, "a.survey")  # no command: a survey is looked at
    assert "at least" in status.out
    assert "rng 3" in status.out
    assert CommandResult(capsys, "status", "a.survey", "--csv").out.startswith("mass,pages,reason\n")


def test_the_report_of_a_crawl_uses_its_state_and_equals_the_survey_on_disk(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from surveyor.survey import survey

    words = ["crawl", *web.seeds, *polite(web, "--out", "state.survey", "--rng", "3", "--json")]
    for goal in ("pages=40", "coverage=0.7"):
        with monkeypatch.context() as patch:
            patch.setattr(survey, "derive", lambda *_, **__: pytest.fail("the state was derived again"))
            crawled = CommandResult(capsys, *words, "--until", goal).json()
        stored = CommandResult(capsys, "status", "state.survey", "--json").json()
        same = crawled.keys() & stored.keys() - {"schema", "command", "size", "bytes_on_disk"}
        assert {name: crawled[name] for name in same} == {name: stored[name] for name in same}
        assert {"coverage", "pages_fetched", "pages_known", "goal"} <= same


def test_ranks_of_a_survey(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    CommandResult(capsys, "crawl", *web.seeds, *polite(web, "--out", "b.survey", "--until", "pages=60", "-q"))
    top = CommandResult(capsys, "top", "b.survey", "-n", "3", "--json").json()
    assert len(top["pages"]) == 3
    assert top["coverage"]["at_least"] > 0
    assert top["ranking"]["teleport"] == "custom"
    assert (
        CommandResult(capsys, "rank", "b.survey", "--teleport", "uniform", "--json").json()["ranking"]["teleport"]
        == "uniform"
    )
    crawled = CommandResult(capsys, "rank", "b.survey", "--crawled-only", "--json").json()
    assert crawled["graph"]["pages"] == 60 < top["graph"]["pages"]
    explained = CommandResult(capsys, "explain", "b.survey", top["pages"][0]["name"], "--json").json()
    assert explained["explanation"]["position"] == 1
    assert CommandResult(capsys, "top", "b.survey", "--blocked").code == 0
    assert CommandResult(capsys, "graph", "info", "b.survey").code == 2
    wrong = CommandResult(capsys, "rank", "b.survey/nothing", "--crawled-only")
    assert (wrong.code, "need a survey, but 'b.survey/nothing' does not exist" in wrong.err) == (2, True)


def test_a_goal_that_cannot_be_reached_is_said_and_ends_with_3(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*web.seeds, *polite(web, "--out", "c.survey", "--until", "coverage=0.999", "--scope", "host")]
    done = CommandResult(capsys, "crawl", *words)
    assert done.code == 3
    assert "cannot be reached" in done.out + done.err or "No page is left" in done.out
    assert "surveyor top c.survey --blocked" in done.err


def test_nothing_left_to_read_before_the_goal_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    with running(WebSettings.plain(web="small")) as plain:
        words = [plain.seeds[0], *polite(plain, "--scope", "host", "--out", "d.survey", "--until", "pages=100000")]
        done = CommandResult(capsys, "crawl", *words)
        assert done.code == 3
        assert "No page is left to fetch before the goal (100,000 pages)" in done.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_print_how_to_resume(web: EmbeddedWeb, number: int, code: int, tmp_path: Path) -> None:
    words = ["crawl", *web.seeds, *polite(web, "--out", "e.survey", "--until", "pages=100000")]
    crawl = subprocess.Popen(
        [sys.executable, "-m", "surveyor", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    wait_for(tmp_path / "e.survey", 20)
    crawl.send_signal(number)
    out, err = crawl.communicate(timeout=60)
    assert crawl.returncode == code, err
    assert out == ""
    assert "Stopped." in err
    assert "resume" in err
    assert "surveyor top e.survey" in err
    with SurveyFolder.open(tmp_path / "e.survey") as folder:
        assert folder.journal.position >= 20


def test_a_cancelled_crawl_saves_a_checkpoint(web: EmbeddedWeb, tmp_path: Path) -> None:
    settings = Settings(proxy=f"http://127.0.0.1:{web.port}", contact="me@example.org", delay=0.0, scope="any")
    folder, settings = start(tmp_path / "g.survey", web.seeds, settings, {})

    async def crawl() -> str:
        def watch(now: Run, _: Outcome | None) -> None:
            if now.state.tally.pages >= 20:
                task.cancel()

        task = asyncio.create_task(run(folder, settings, Pages(100_000), watch=watch))
        return await task

    with folder:
        assert asyncio.run(crawl()) == "interrupted"
        assert folder.journal.position >= 20
        assert folder.load_checkpoint() is not None


@pytest.mark.slow
def test_two_at_once(web: EmbeddedWeb, tmp_path: Path) -> None:
    words = ["crawl", *web.seeds, *polite(web, "--out", "f.survey", "--until", "pages=100000", "-q")]
    crawl = subprocess.Popen([sys.executable, "-m", "surveyor", *words], stderr=subprocess.DEVNULL)
    try:
        wait_for(tmp_path / "f.survey", 5)
        second = process("-m", "surveyor", *words)
        assert second.returncode == 4
        assert f"another surveyor process (pid {crawl.pid}" in second.stderr
        assert "hint:" in second.stderr
        looked = process("-m", "surveyor", "status", "f.survey", "--json")  # looking is allowed
        assert looked.returncode == 0, looked.stderr
        assert json.loads(looked.stdout)["visits"] >= 5
    finally:
        crawl.kill()
        crawl.wait()


# What goes wrong


def test_a_host_that_does_not_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = CommandResult(capsys, "crawl", "https://docs.exmaple.invalid", "--contact", "me@example.org")
    assert done.code == 5
    assert "docs.exmaple.invalid does not resolve (no such host)." in done.err
    assert "Check the spelling." in done.err
    assert not list(tmp_path.glob("*.survey"))  # nothing was lost, nothing is left


def test_a_seed_that_robots_forbid(web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]) -> None:
    host = next(host for host in web.hosts if web.plan.robots_of(host).style == "rules")
    seed = f"http://{host}:{web.port}/private/1.html"
    done = CommandResult(capsys, "crawl", seed, *polite(web, "--out", "g.survey"))
    assert done.code == 5
    assert f"{seed}: robots.txt disallows it (Disallow: /private/)." in done.err
    assert "ask its owner" in done.err
    assert not [request for request in web.log if request.path.startswith("/private/1") and request.host == host]


def test_an_address_of_this_network(capsys: pytest.CaptureFixture[str]) -> None:
    done = CommandResult(capsys, "crawl", "http://169.254.169.254/", "--contact", "me@example.org")
    assert done.code == 5
    assert "169.254.169.254 is a cloud agent address." in done.err
    assert "--allow" in done.err


def test_a_self_signed_certificate_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # without a certificate: no handshake ends well
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(connection, server_side=True)
                except (ssl.SSLError, OSError):
                    connection.close()

        threading.Thread(target=answer, daemon=True).start()
        port = server.getsockname()[1]
        seed = f"https://127.0.0.1:{port}/"
        done = CommandResult(capsys, "crawl", seed, "--allow", "127.0.0.1", "--contact", "me@example.org")
    assert done.code == 5
    assert seed in done.err
    assert "SSL" in done.err or "TLS" in done.err
    assert "--ca-file" in done.err


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["https://a.example", "--untill", "coverage=0.9"], "No option --untill. Did you mean --until?", 2),
        (["https://a.example"], "contact is not set", 2),
        (["https://a.example", "--contact", "me"], "contact must be an e-mail address or a URL", 2),
        (
            ["https://a.example", "--contact", "me@example.org", "--until", "coverage=1"],
            "100 % cannot be certified",
            2,
        ),
        (["https://a.example", "--contact", "me@example.org", "--strategy", "rankmas"], "did you mean rankmass?", 2),
        (["https://a.example", "--contact", "me@example.org", "--scope", "page"], "host, domain, prefix or any", 2),
        (["ftp://a.example", "--contact", "me@example.org"], "is not an http or https URL", 2),
        ([], "there are no seeds", 2),
        (["--seeds", "nowhere.txt"], "nowhere.txt", 2),
    ],
)
def test_wrong_words_are_said_before_anything_is_made(
    words: list[str], text: str, code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = CommandResult(capsys, "crawl", *words)
    assert (done.code, done.out) == (code, "")
    assert text in done.err
    assert "hint:" in done.err
    assert not list(tmp_path.glob("*.survey"))


def test_a_typo_in_the_settings_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "surveyor.toml").write_text("untill = 'coverage=0.9'\n")
    done = CommandResult(capsys, "crawl", "https://a.example", "--contact", "me@example.org")
    assert (done.code, done.err) == (2, "surveyor.toml: unknown setting 'untill'\n  hint: did you mean until?\n")


def test_settings_from_files_and_variables(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "surveyor.toml").write_text(f"proxy = 'http://127.0.0.1:{web.port}'\ndelay = 0\ncontact = 'a@b.org'\n")
    (tmp_path / "seeds.txt").write_text("# mine\n" + "\n".join(web.seeds))
    monkeypatch.setenv("SURVEYOR_UNTIL", "pages=5")
    assert CommandResult(capsys, "config", "trust").code == 0  # it names a proxy
    assert CommandResult(capsys, "crawl", "--seeds", "seeds.txt", "--out", "h.survey", "--scope", "any").code == 0
    with SurveyFolder.open(tmp_path / "h.survey", write=False) as folder:
        manifest = folder.manifest
    assert manifest.origins["contact"] == "surveyor.toml"
    assert manifest.origins["until"] == "SURVEYOR_UNTIL"
    assert manifest.origins["scope"] == "--scope"
    assert manifest.settings["until"] == "pages=5"


def test_a_survey_of_a_newer_version_and_a_damaged_one(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["crawl", *web.seeds, *polite(web, "--out", "i.survey", "--until", "pages=5")]
    assert CommandResult(capsys, *words).code == 0
    toml = tmp_path / "i.survey" / "survey.toml"
    whole = toml.read_text()
    toml.write_text(whole.replace("version = 1", "version = 99"))
    newer = CommandResult(capsys, *words)
    assert (newer.code, "newer surveyor" in newer.err, "upgrade" in newer.err) == (4, True, True)
    assert CommandResult(capsys, "i.survey").code == 4
    toml.write_text(whole[: len(whole) // 2])
    assert CommandResult(capsys, "status", "i.survey").code == 4
    toml.write_text(whole)
    assert CommandResult(capsys, *words).code == 0
    assert CommandResult(capsys, "status", "nowhere.survey").code == 4


@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    made = process("-m", "surveyor", "demo", "--out", "demo", "--json", "--quiet")
    assert made.returncode == 0, made.stderr
    result = json.loads(made.stdout)
    assert result["inside"]
    assert result["coverage"]["at_least"] >= 0.9
    assert result["killed_after"] >= 100
    assert {"share", "true_share", "url"} <= set(result["pages"][0])
    report = (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert report.count("<figure>") == 4
    assert "true share" in report


@pytest.mark.slow
def test_demo_ends_by_naming_the_page() -> None:
    made = process("-m", "surveyor", "demo", "--out", "demo")
    assert made.returncode == 0, made.stderr
    assert made.stderr.rstrip().endswith("surveyor serve demo/web.survey --open")

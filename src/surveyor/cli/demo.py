"""`surveyor demo`: crawl a synthetic web on this machine, kill the crawl, resume it, compare with the ground truth."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.report.survey_html import Truth
    from surveyor.survey.survey import Survey
    from surveyor.testing.web_server import EmbeddedWeb

GOAL = 0.9
KILLED_AFTER = 150  # pages
TOP = 10
HURRY = {"slow_seconds": 0.05, "pace": 0.1, "crawl_delay": 0.05}  # a demo should not take long
CONTACT = "demo@example.org"


@options.command("demo", table=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="surveyor-demo",
    metavar="DIR",
    help="Folder of the results.",
)
@click.option("--rng", type=options.Whole(0), default=7, help="Random seed of the web.")
@options.flag("--serve", "Only serve the web, for your own crawls, until Ctrl-C.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=False, help="Port to serve it on.  [a free port]"
)
def command(output: Output, *, out: str, rng: int, serve: bool, port: int) -> int:
    """Crawl a synthetic web over HTTP on this machine: kill the crawl, resume it, compare with the ground truth.

    The web has hosts that are slow, strict or down, robots.txt files, redirects, dead links, link farms and an
    endless calendar. No request leaves this machine. With --serve you can crawl it yourself.
    """
    from surveyor.testing.web_plan import WebSettings
    from surveyor.testing.web_server import running

    settings = WebSettings(rng=rng, port=port, **HURRY)  # type: ignore[arg-type]
    _check_port(port)
    if serve:
        return _serve(output, settings)
    folder = Path(out)
    path = folder / "web.survey"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path, ignore_errors=True)
    with running(settings) as web:
        words = _arguments(web, path)
        output.info(
            f"serving a web of {len(web.hosts):,} hosts at 127.0.0.1:{web.port}; no request leaves this machine"
        )
        output.info(f"$ surveyor {shlex.join(words)}")
        killed = _crawl_and_kill(words, path, quiet=output.quiet)
        output.info(f"killed with kill -9 after {killed:,} pages. The same command resumes:")
        code = _crawl(words, quiet=output.quiet)
        from surveyor.survey.survey import Survey

        with Survey(path) as survey:
            truth = _truth(web, survey)
            _show(output, survey, truth, killed)
            _write(output, survey, truth, folder / layout.REPORT, f"surveyor demo --rng {rng}")
        steps = {
            "how much is captured?": ["surveyor", str(path)],
            "why is it first?": ["surveyor", "explain", str(path), web.seeds[0]],
            "what is blocked?": ["surveyor", "top", str(path), "--blocked"],
            "your own site": ["surveyor", "https://docs.example.org", "--contact", "you@example.org"],
            "see it on a page": ["surveyor", "serve", str(path), "--open"],
        }
        output.next_steps(steps)
    return code


def _arguments(web: EmbeddedWeb, path: Path) -> list[str]:
    """Return the arguments that crawl this web; the server is its own proxy, so no host is looked up."""
    flags = {
        "proxy": f"http://127.0.0.1:{web.port}",
        "scope": "any",
        "delay": "0",
        "backoff": "0.1",
        "until": f"coverage={GOAL}",
        "contact": CONTACT,
        "out": str(path),
    }
    return ["crawl", *web.seeds, *(word for name, value in flags.items() for word in (f"--{name}", value))]


def _start(words: list[str], *, quiet: bool) -> subprocess.Popen[bytes]:
    mode = "--quiet" if quiet else "--csv"  # stdout is discarded, and CSV prints no next steps
    command = [sys.executable, "-m", "surveyor", *words, mode]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603  # our own command


def _crawl_and_kill(words: list[str], path: Path, *, quiet: bool) -> int:
    """Start the crawl and kill it in the middle; return the number of pages fetched."""
    from surveyor.store.journal import Journal

    crawl = _start(words, quiet=quiet)
    try:
        read = 0
        while crawl.poll() is None and read < KILLED_AFTER:
            time.sleep(0.05)
            if layout.is_survey(path):
                journal = Journal.open(path / layout.JOURNAL, write=False)
                read = journal.kinds().get("fetched", 0)
                journal.close()
    finally:
        if crawl.poll() is None:
            os.kill(crawl.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        crawl.wait()
    return read


def _crawl(words: list[str], *, quiet: bool) -> int:
    crawl = _start(words, quiet=quiet)
    try:
        return crawl.wait()
    finally:
        if crawl.poll() is None:
            crawl.terminate()
            crawl.wait()


def _truth(web: EmbeddedWeb, survey: Survey) -> Truth:
    """Return the true shares, and the true coverage after each fetched page."""
    import numpy as np

    from surveyor.report.survey_html import Truth
    from surveyor.testing.web_truth import PerfectCrawler
    from surveyor.web.urls import normalise

    truth = web.truth(crawler=PerfectCrawler(normalise=lambda url: normalise(url) or url, longest=10_000_000))
    shares = dict(zip(truth.urls, truth.importance.scores.tolist(), strict=True))
    held: set[str] = set()
    covered: list[float] = []
    total = 0.0
    for page in survey.history().pages.tolist():
        url = survey.url(page)
        final = truth.target(url) if url in truth.ids else url
        total += shares.get(final, 0.0) * (final not in held)
        held.add(final)
        covered.append(total)
    return Truth(shares, np.array(covered))


def _show(output: Output, survey: Survey, truth: Truth, killed: int) -> None:
    from surveyor.report.numbers import both_bounds, percent
    from surveyor.report.tables import Formats, table_of

    rows = survey.top(TOP)
    coverage, true = survey.coverage, float(truth.covered[-1])
    pages = [{**row, "true_share": truth.shares.get(row["url"], 0.0)} for row in rows]
    inside = coverage.at_least <= true + 1e-9 and true <= coverage.at_most + 1e-9
    fields = {
        "survey": str(survey.folder),
        "coverage": survey.coverage_fields,
        "true_coverage": true,
        "inside": inside,
        "killed_after": killed,
        "pages_fetched": survey.pages_fetched,
        "pages": pages,
    }
    output.object("demo", fields)
    output.line()
    columns: Formats = {"score": "{:.0f}".format, "share": percent, "true_share": percent, "url": str}
    output.table(table_of(pages, columns))
    output.line()
    verdict = "inside the bounds" if inside else "OUTSIDE the bounds, which is a bug"
    output.line(f"captured {both_bounds(coverage, survey.sampled)}; true coverage {percent(true)}: {verdict}")
    output.line(f"{survey.pages_fetched:,} pages fetched of {survey.pages_known:,} known; the web has no end")


def _write(output: Output, survey: Survey, truth: Truth, path: Path, command: str) -> None:
    from surveyor.report.survey_html import write_report

    write_report(survey, path, title="A synthetic web", command=command, truth=truth)
    output.info(f"report written to {path}")


def _check_port(port: int) -> None:
    """Reject a port that cannot be listened on, before anything is written."""
    from surveyor.errors import UsageError

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError as error:
            problem = f"--port {port} of 127.0.0.1 cannot be used: {error.strerror}"
            raise UsageError(problem, hint="leave --port out to take a free one") from None


def _serve(output: Output, settings: object) -> int:
    from surveyor.testing.web_plan import WebSettings
    from surveyor.testing.web_server import serve

    def ready(web: EmbeddedWeb) -> None:
        output.object("demo", {"port": web.port, "seeds": web.seeds, "hosts": list(web.hosts)})
        output.line(f"serving a web of {len(web.hosts):,} hosts at 127.0.0.1:{web.port}; Ctrl-C stops it")
        output.line("crawl it from another terminal:")
        output.line(f"  surveyor {shlex.join(_arguments(web, Path('web.survey')))}")
        sys.stdout.flush()

    if isinstance(settings, WebSettings):
        serve(settings, ready=ready)
    return 0

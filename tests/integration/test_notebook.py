"""The library in a real Jupyter kernel, in plain asyncio and in threads: crawls that are stopped, saved and resumed."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import surveyor as sv
from surveyor.survey import cell_display
from surveyor.testing import EmbeddedWeb, WebSettings, running

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorials" / "notebook.ipynb"
PATIENCE = 240  # seconds: kernels of this version may have to be compiled first

pytestmark = pytest.mark.filterwarnings("default")  # those of Jupyter are its own


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings.plain()) as served:
        yield served


def options(web: EmbeddedWeb, delay: float = 0.0) -> dict[str, Any]:
    return {"contact": "you@example.org", "proxy": f"http://127.0.0.1:{web.port}", "delay": delay}


# The tutorial


@pytest.mark.slow
def test_the_tutorial_runs_in_a_real_kernel(tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(TUTORIAL, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not stored: they would go stale"
    client = nbclient.NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    text = "\n".join(str(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in shown)
    assert "at least, 100.0 % at most" in text
    assert "CoverageInterval(at_least=0.95" in text
    assert "interrupted and saved; the same call resumes" in text
    assert not list(tmp_path.iterdir())


# A kernel


SETUP = """
import surveyor as sv
from surveyor.testing import WebSettings, running
served = running(WebSettings.plain()); web = served.__enter__()
options = {"contact": "you@example.org", "proxy": f"http://127.0.0.1:{web.port}"}
"""


class Kernel:
    """A Jupyter kernel, and what its cells show."""

    def __init__(self, folder: Path) -> None:
        start = pytest.importorskip("jupyter_client.manager").start_new_kernel
        self.manager, self.client = start(kernel_name="python3", cwd=str(folder))

    def run(self, code: str, *, interrupt_after: int = -1) -> str:
        """Run a cell; interrupt the kernel when its display shows more than some pages. Return what it shows."""
        shown, interrupted = list[str](), interrupt_after < 0

        def see(message: dict[str, Any]) -> None:
            nonlocal interrupted
            content = message["content"]
            error = f"{content.get('ename')}: {content.get('evalue')}"
            shown.append(str(content.get("data", {}).get("text/plain") or content.get("text") or error))
            pages = re.search(r"   (\d+) pages   ", shown[-1])
            if not interrupted and pages is not None and int(pages[1]) > interrupt_after:
                interrupted = True
                self.manager.interrupt_kernel()

        seen = ("stream", "execute_result", "display_data", "update_display_data", "error")
        self.client.execute_interactive(
            code, timeout=PATIENCE, output_hook=lambda message: see(message) if message["msg_type"] in seen else None
        )
        return "\n".join(shown)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    started = Kernel(tmp_path_factory.mktemp("notebook"))
    try:
        started.run(SETUP)
        yield started
    finally:
        started.close()


def test_a_crawl_that_is_interrupted_in_a_kernel_is_saved_and_resumed(kernel: Kernel) -> None:
    stopped = kernel.run(
        "survey = sv.crawl(web.seeds[0], until=sv.Coverage(0.95), out='stopped', delay=0.3, **options)\n"
        "before = survey.pages_fetched\n"
        "print(survey.ending, before)",
        interrupt_after=2,
    )
    assert "interrupted and saved; the same call resumes" in stopped
    saved = re.search(r"^interrupted (\d+)$", stopped, re.MULTILINE)
    assert saved is not None
    assert 2 < int(saved[1]) < 30
    resumed = kernel.run(
        "survey = sv.crawl(web.seeds[0], until=sv.Coverage(0.95), out='stopped', delay=0.0, **options)\n"
        "pages = [visit.page for visit in survey.journal.visits()]\n"
        "print(survey.ending, survey.coverage.at_least >= 0.95, len(pages) == len(set(pages)))"
    )
    assert "reached True True" in resumed, "every page was fetched once"


def test_awaiting_a_crawl_in_a_cell_can_be_interrupted(kernel: Kernel) -> None:
    code = "await sv.crawl_async(web.seeds[0], until=sv.Coverage(0.95), out='awaited', delay=0.3, **options)"
    stopped = kernel.run(code, interrupt_after=2)
    assert "interrupted and saved; the same call resumes, and sv.open('awaited') opens the survey" in stopped
    assert "Survey(awaited, " in kernel.run("with sv.open('awaited') as survey: print(survey)")


@pytest.mark.slow
def test_other_verbs_run_in_a_kernel(kernel: Kernel) -> None:
    kernel.run("sv.crawl(web.seeds[0], until=sv.Pages(40), out='base', quiet=True, delay=0.0, **options).close()")
    sample = "sv.sample(web.seeds[0], until='fetches=20', out='sample', delay=0.0, **options)"
    assert "goal 20 fetches" in kernel.run(sample)
    scouted = kernel.run("sv.scout(web.seeds[0], walks=10, out='scout', delay=0.0, **options)")
    assert "10 of 10 walks ended" in scouted
    assert "of 1,000 requests in 24 h" in kernel.run("sv.watch('base', once=True, rate=1000, delay=0.0, **options)")
    ranked = kernel.run("sv.community('base', 'prefix:' + web.seeds[0] + 'arts/', extra=20, delay=0.0, **options)")
    assert "20 extra" in ranked


def test_quiet_shows_nothing(kernel: Kernel) -> None:
    assert (
        kernel.run("sv.crawl(web.seeds[0], until=sv.Pages(5), out='quiet', quiet=True, delay=0.0, **options).close()")
        == ""
    )


# Applications


def test_crawl_async_leaves_the_event_loop_free_and_saves_when_cancelled(web: EmbeddedWeb, tmp_path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    async def work() -> None:
        loop, ticking = asyncio.get_running_loop(), asyncio.create_task(tick())

        def stop(run: Any, _outcome: Any) -> None:
            if run.state.tally.pages == 3:
                loop.call_soon_threadsafe(crawl.cancel)

        crawl = asyncio.create_task(
            sv.crawl_async(web.seeds[0], out=tmp_path / "survey", watch=stop, **options(web, 0.2))
        )
        with pytest.raises(asyncio.CancelledError, match="interrupted and saved; the same call resumes"):
            await crawl
        ticking.cancel()

    asyncio.run(work())
    assert ticks > 10
    with sv.open(tmp_path / "survey") as saved:
        assert 3 <= saved.pages_fetched < 30
    resumed = asyncio.run(sv.crawl_async(web.seeds[0], until=sv.Pages(30), out=tmp_path / "survey", **options(web)))
    with resumed:
        assert (resumed.ending, resumed.pages_fetched) == ("reached", 30)
        assert resumed.top(1)[0]["url"].startswith("http://")  # used in another thread than it was opened in


def test_errors_of_a_crawl_reach_the_caller_of_crawl_async(tmp_path: Path) -> None:
    with pytest.raises(sv.UsageError, match="there are no seeds"):
        asyncio.run(sv.crawl_async([], out=tmp_path / "survey", contact="you@example.org"))


def test_two_crawls_at_once_in_one_event_loop(web: EmbeddedWeb, tmp_path: Path) -> None:
    async def work() -> list[sv.Survey]:
        crawls = [
            sv.crawl_async(seed, until=sv.Pages(10), out=tmp_path / str(number), **options(web))
            for number, seed in enumerate(web.seeds[:2])
        ]
        return await asyncio.gather(*crawls)

    for survey in asyncio.run(work()):
        with survey:
            assert survey.pages_fetched == 10


def test_an_ordinary_call_within_a_coroutine_stops_at_ctrl_c(web: EmbeddedWeb, tmp_path: Path) -> None:
    endings: list[str] = []

    async def work() -> None:
        with sv.crawl(web.seeds[0], out=tmp_path / "survey", watch=stop, **options(web, 0.2)) as survey:
            endings.append(survey.ending)
        await asyncio.sleep(0)

    def stop(run: Any, _outcome: Any) -> None:
        if run.state.tally.pages == 3 and not endings:
            endings.append("signal")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work())
    assert endings == ["signal", "interrupted"]


def test_a_crawl_in_a_thread(web: EmbeddedWeb, tmp_path: Path) -> None:
    found: list[sv.Survey] = []

    def work() -> None:
        found.append(sv.crawl(web.seeds[0], until=sv.Pages(10), out=tmp_path / "survey", **options(web)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    with found[0] as survey:
        assert survey.pages_fetched == 10
        assert survey.sql("SELECT count(*) FROM pages").rows[0][0] > 10


def test_the_display_outside_a_notebook_does_nothing() -> None:
    display = cell_display.CellDisplay()
    began = time.perf_counter()
    for _ in range(1000):
        display.crawl(None)  # type: ignore[arg-type]
    display.end("reached")
    assert time.perf_counter() - began < 0.5

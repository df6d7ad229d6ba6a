"""Crawls in a browser: one that is started from the page, and one of a terminal that is steered from the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browsing import SECONDS, chromium, serving, until, visiting
from surveyor.store import published
from surveyor.testing import EmbeddedWeb, WebSettings, running

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("nowhere")]
PAUSE = 1.5  # seconds in which nothing may be requested
expect.set_options(timeout=1000 * SECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(WebSettings(slow_seconds=0.02, pace=0.05, crawl_delay=0.02)) as made:
        yield made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("surveys")


@pytest.fixture(scope="module")
def base(place: Path, web: EmbeddedWeb) -> Iterator[str]:
    with serving(place, settings=through(web)) as address:
        yield address


def through(web: EmbeddedWeb) -> dict[str, str]:
    return {"SURVEYOR_PROXY": f"http://127.0.0.1:{web.port}", "SURVEYOR_BACKOFF": "0.02"}


def fact(page: Page, name: str) -> int:
    """Return a number of the overview."""
    text = page.locator("#live-facts div", has=page.locator("dt", has_text=re.compile(f"^{name}$"))).locator("dd")
    return int(text.inner_text().replace(",", ""))


def bounds(page: Page) -> list[float]:
    """Return both bounds of the overview, in percent."""
    return [float(text.rstrip(" %")) for text in page.locator("#live-bounds .big .number").all_inner_texts()]


def set_goal(page: Page, value: str, unit: str) -> None:
    """Give a running crawl another goal."""
    page.get_by_text("New goal").click()
    page.get_by_label("Goal", exact=True).fill(value)
    page.get_by_label("Unit of the goal").select_option(unit)
    page.get_by_role("button", name="Set").click()


def quiet(web: EmbeddedWeb) -> bool:
    """Return whether the web got no request for a while."""
    before = len(web.log)
    time.sleep(PAUSE)
    return len(web.log) == before


def test_a_first_crawl_is_started_paused_resumed_and_watched_to_its_goal(
    browser: Browser, base: str, place: Path, web: EmbeddedWeb
) -> None:
    with visiting(browser, base) as visitor:
        page = visitor.go("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("No survey yet")
        page.get_by_label("Address of a site").fill(web.seeds[0])
        page.get_by_role("button", name="Look at it").click()
        expect(page.get_by_role("heading", name="What the site says")).to_be_visible()
        expect(page.locator("dl.pairs").first).to_contain_text(re.compile("robots.txt.*(allows|allowed)", re.DOTALL))
        expect(page.get_by_text("these alone take at least")).to_be_visible()
        assert not list(place.glob("*.survey"))  # nothing is stored before the crawl

        page.get_by_label("Goal", exact=True).fill("95")
        page.get_by_label("Seconds between two requests").fill("0.15")
        page.get_by_role("button", name="Start the crawl").click()
        page.wait_for_url("**/s/*/")
        (folder,) = place.glob("*.survey")
        expect(page.locator("#live-state")).to_contain_text("Goal: coverage 95 %")
        expect(page.locator("#live-bounds .mass .goal")).to_have_count(1)

        until(lambda: fact(page, "pages fetched") >= 3, "pages appear without a reload")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
        until(lambda: (published.read(folder) or {}).get("status") == "paused", "paused")
        until(lambda: quiet(web), "no request while it is paused", 4 * PAUSE + 5)
        before, goal = bounds(page), fact(page, "pages fetched") + 8
        set_goal(page, str(goal), "pages")
        expect(page.locator("#live-state")).to_contain_text(f"Goal: {goal} pages")
        page.evaluate("window.notReloaded = false")
        page.get_by_role("button", name="Resume", exact=True).click()
        until(lambda: page.evaluate("window.notReloaded === undefined"), "the page after the click")
        page.evaluate("window.notReloaded = true")
        expect(page.locator("#live-state")).to_contain_text("The goal is reached")
        assert page.evaluate("window.notReloaded")  # all of it came through events
        assert fact(page, "pages fetched") >= goal
        after = bounds(page)
        assert before[0] < after[0] <= after[1] <= before[1]
        expect(page.get_by_role("img", name="bounds of coverage")).to_be_visible()
        assert page.get_by_role("button", name="Resume the crawl").is_visible()


@pytest.mark.slow
def test_a_crawl_of_a_terminal_is_controlled_from_the_page(
    browser: Browser, base: str, place: Path, web: EmbeddedWeb
) -> None:
    words = [sys.executable, "-m", "surveyor", "crawl", *web.seeds, "--scope", "any", "--delay", "0.05", "--quiet"]
    words += ["--out", "terminal.survey", "--until", "pages=100000"]
    env = {**os.environ, "SURVEYOR_CONTACT": "me@example.org", **through(web)}
    crawl = subprocess.Popen(words, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        folder = place / "terminal.survey"
        until(lambda: (published.read(folder) or {"pages": 0})["pages"] >= 3, "the crawl runs")
        with visiting(browser, base) as visitor:
            page = visitor.go("/")
            page.get_by_role("link", name="terminal").click()
            page.get_by_role("button", name="Pause").click()
            expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
            until(lambda: quiet(web), "no request while it is paused", 4 * PAUSE + 5)

            set_goal(page, "1000", "pages")
            expect(page.locator("#live-state")).to_contain_text("1,000 pages")
            assert (published.read(folder) or {})["status"] == "paused"  # a goal does not resume

            page.get_by_role("button", name="Resume", exact=True).click()
            expect(page.get_by_role("button", name="Pause")).to_be_visible()
            page.get_by_role("button", name="Stop").click()
            expect(page.get_by_role("button", name="Resume the crawl")).to_be_visible()
        said, _ = crawl.communicate(timeout=SECONDS)
        assert crawl.returncode == 3, said  # it ended before its goal
    finally:
        if crawl.poll() is None:
            crawl.kill()
            crawl.communicate()

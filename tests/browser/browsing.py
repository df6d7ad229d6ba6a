"""A Chromium, a running `surveyor serve`, and a record of all that its pages do, for the tests of the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, Route, sync_playwright

REQUIRED = "SURVEYOR_REQUIRE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing is looked up
    "--no-first-run",
]
LOOPBACK = ("127.0.0.1",)
CANARY = "surveyorCanary"  # what hostile content calls: nothing may
SECONDS = 180.0  # a busy machine needs
VIEWS = (
    "overview",
    "pages",
    "map",
    "fix",
    "hosts",
    "blocked",
    "community",
    "sample",
    "freshness",
    "compare",
    "sql",
    "settings",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium with a new profile; skip the tests if there is none, unless one is required."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = f"no Chromium on the PATH ({', '.join(NAMES)})"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{reason}, and {REQUIRED}=1 requires one")
        pytest.skip(f"{reason}; on Debian `apt-get install chromium`")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, *root])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Record:
    """What the pages of one visitor did that they should not, and what they loaded."""

    foreign: list[str] = field(default_factory=list)  # requests to other hosts
    errors: list[str] = field(default_factory=list)  # of the console, scripts and the policy
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    canary: list[str] = field(default_factory=list)  # calls from hostile content
    accepted: tuple[str, ...] = ()  # parts of console errors that a test provokes

    def check(self) -> None:
        """Fail if a page did anything that it should not."""
        errors = [error for error in self.errors if not any(part in error for part in self.accepted)]
        done = {"foreign": self.foreign, "canary": self.canary, "dialogs": self.dialogs, "errors": errors}
        assert not any(done.values()), done


class Visitor:
    """One window of a browser with its record."""

    def __init__(self, browser: Browser, base: str, also: tuple[str, ...] = (), **options: Any) -> None:
        self.base, self.record, self._hosts = base, Record(), (*LOOPBACK, *also)
        self.context: BrowserContext = browser.new_context(base_url=base, reduced_motion="reduce", **options)
        self.context.set_default_timeout(1000 * SECONDS)
        self.context.route("**/*", self._route)
        self.context.on("request", self._request)
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.record.errors.append(str(error.error)))
        self.context.on("dialog", self._dialog)
        self.context.expose_function(CANARY, lambda *said: self.record.canary.append(repr(said)))
        self.page: Page = self.context.new_page()

    def go(self, path: str, status: int = 200) -> Page:
        """Open a page of the server and check its status."""
        response = self.page.goto(path)
        assert response is not None
        assert response.status == status, f"{path}: {response.status}"
        return self.page

    def _route(self, route: Route) -> None:
        if urlsplit(route.request.url).hostname in (*self._hosts, None):
            route.continue_()
        else:
            route.abort()

    def _request(self, request: Request) -> None:
        self.record.requests.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in self._hosts:
            self.record.foreign.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.record.errors.append(message.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.record.dialogs.append(dialog.message)
        dialog.dismiss()


@contextmanager
def visiting(browser: Browser, base: str, also: tuple[str, ...] = (), **options: Any) -> Iterator[Visitor]:
    """Open a window, and check at the end that its pages did nothing wrong; requests to `also` are permitted."""
    visitor = Visitor(browser, base, also, **options)
    try:
        yield visitor
        visitor.record.check()
    finally:
        visitor.context.close()


@contextmanager
def serving(folder: Path, *words: str, settings: dict[str, str] | None = None) -> Iterator[str]:
    """Run `surveyor serve` in a folder; yield the address that it prints."""
    command = [sys.executable, "-m", "surveyor", "serve", "--port", "0", *words]
    env = {**os.environ, "SURVEYOR_CONTACT": "me@example.org", **(settings or {})}
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), (folder / "serve.log").read_text("utf-8")
            yield address
        finally:
            process.terminate()
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()
    said = (folder / "serve.log").read_text("utf-8")
    assert "Traceback" not in said, said


def until(is_so: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := is_so():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds:g} s")


def built(visitor: Visitor, survey: str) -> None:
    """Wait until the tables of a survey exist."""

    def ready() -> bool:
        return visitor.context.request.get(f"/s/{survey}/pages.json").status == 200

    until(ready, f"tables of {survey}")

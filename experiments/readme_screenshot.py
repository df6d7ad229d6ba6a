"""The screenshot of README: the overview of a running crawl in `surveyor serve`, on an embedded web.

    python -m experiments.readme_screenshot [--out docs/images/serve.png]

It needs a Chromium on the PATH, and requests nothing from other machines. The crawl is stopped after the screenshot.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from surveyor.store import published
from surveyor.testing import WebSettings, running

NAMES = ("chromium", "chromium-browser", "google-chrome")
PORT = 8780  # of the web: URLs contain it
WIDTH, HEIGHT, SCALE = 1240, 1010, 1.5
CAPTURED = 0.55  # when the screenshot is taken
SECONDS = 600.0  # a crawl may take until then
COLORS = 128
NAME = "docs"


@contextlib.contextmanager
def process(folder: Path, *words: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of surveyor in a folder, and end it."""
    command = [sys.executable, "-m", "surveyor", *words]
    env = {**os.environ, "SURVEYOR_CONTACT": "you@example.org", **settings}
    started = subprocess.Popen(  # noqa: S603  # our own command
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield started
    finally:
        started.terminate()
        started.communicate(timeout=60)


def wait(survey: Path) -> None:
    """Wait until a crawl has captured enough."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        state = published.read(survey)
        if state is not None and state["coverage"] and state["coverage"]["at_least"] >= CAPTURED:
            return
        time.sleep(0.2)
    raise TimeoutError(f"the crawl did not capture {CAPTURED:.0%} within {SECONDS:.0f} s")


def screenshot(address: str) -> bytes:
    """Return a PNG of a page in light mode, once its live parts have come."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise SystemExit(f"no Chromium on the PATH ({', '.join(NAMES)})")
    flags = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=[*flags, *root])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            device_scale_factor=SCALE,
            color_scheme="light",
            reduced_motion="reduce",
            locale="en-GB",
        )
        page.goto(address)
        page.wait_for_timeout(2500)
        taken = page.screenshot()
        browser.close()
    return taken


def main() -> None:
    """Take the screenshot."""
    from PIL import Image

    parser = argparse.ArgumentParser(
        "python -m experiments.readme_screenshot", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images/serve.png"))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as place,
        running(WebSettings(port=PORT, slow_seconds=0.05, pace=0.1, crawl_delay=0.1)) as web,
    ):
        folder, proxy = Path(place), {"SURVEYOR_PROXY": f"http://127.0.0.1:{web.port}", "SURVEYOR_BACKOFF": "0.5"}
        crawl = [
            "crawl",
            *web.seeds,
            "--scope",
            "any",
            "--delay",
            "0.6",
            "--until",
            "coverage=0.9",
            "--out",
            f"{NAME}.survey",
            "--quiet",
        ]
        with process(folder, *crawl, **proxy), process(folder, "serve", "--port", "0", **proxy) as server:
            assert server.stdout is not None  # noqa: S101
            address = server.stdout.readline().strip()
            wait(folder / f"{NAME}.survey")
            taken = screenshot(f"{address}s/{NAME}/")
    image = Image.open(io.BytesIO(taken)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    image.save(options.out, optimize=True)
    print(f"{options.out}: {image.width} x {image.height}, {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

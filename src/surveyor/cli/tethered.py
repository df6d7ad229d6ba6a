"""Run a command that ends with the process that started it: `python -m surveyor.cli.tethered crawl …`.

Standard input is a pipe that the other process holds and never writes to. It closes when that process ends, however it
does (also by SIGKILL); then this one stops as by SIGTERM, and a crawl is saved.
"""

from __future__ import annotations

import os
import signal
import threading


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    from surveyor.cli import main

    main()

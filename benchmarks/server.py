"""nginx on this machine, for as long as a `with` statement runs."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SBIN = "/usr/sbin:/usr/local/sbin"  # where Debian keeps it, and users often do not look
CONFIG = """\
{user}
daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 10000000; open_file_cache max=20000;
  types {{ text/html html; text/plain txt; }}
  client_body_temp_path {work}; proxy_temp_path {work}; fastcgi_temp_path {work}; uwsgi_temp_path {work};
  scgi_temp_path {work};
  server {{ listen 127.0.0.1:{port}; root {site}; }}
}}
"""


def nginx() -> str | None:
    """Return where nginx is."""
    return shutil.which("nginx") or shutil.which("nginx", path=SBIN)


@contextmanager
def serving(site: Path, work: Path, cores: set[int]) -> Iterator[str]:
    """Serve the files of a folder from these cores; the value is the address."""
    command = nginx()
    assert command is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = f"user {getpass.getuser()};" if os.getuid() == 0 else ""
    (work / "nginx.conf").write_text(CONFIG.format(user=user, work=work, site=site, port=port), "utf-8")
    process = subprocess.Popen(
        [command, "-c", str(work / "nginx.conf"), "-p", str(work), "-e", str(work / "error.log")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise RuntimeError(f"nginx does not answer: {(work / 'error.log').read_text('utf-8')[-300:]}")
        yield f"http://127.0.0.1:{port}/index.html"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

"""Certificates for TLS servers on loopback, made by the openssl program."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

AUTHORITY = """
[ca]
default_ca = own
[own]
database = {folder}/index.txt
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:127.0.0.1
[req]
distinguished_name = name
[name]
"""


def certificate(folder: Path, days: float) -> tuple[Path, Path]:
    """Return a self-signed certificate of 127.0.0.1 that ends in so many days, and its key; OSError if that fails."""
    program = shutil.which("openssl")
    if program is None:
        raise FileNotFoundError("there is no program openssl")
    folder.mkdir()
    key, request, file, own = (folder / name for name in ("key.pem", "request.pem", "cert.pem", "own.cnf"))
    own.write_text(AUTHORITY.format(folder=folder), "utf-8")
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n", "utf-8")
    end = datetime.now(UTC) + timedelta(days=days)
    dates = [f"{at:%Y%m%d%H%M%SZ}" for at in (end - timedelta(days=90), end)]
    new = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test"]
    new += ["-keyout", str(key), "-out", str(request)]
    signed = ["ca", "-batch", "-selfsign", "-notext", "-startdate", dates[0], "-enddate", dates[1]]
    signed += ["-in", str(request), "-keyfile", str(key), "-out", str(file)]
    for words in (new, signed):
        made = subprocess.run([program, *words, "-config", own], capture_output=True, timeout=30, check=False)
        if made.returncode:
            raise OSError(f"openssl cannot make a certificate: {made.stderr.decode(errors='replace')[-300:]}")
    return file, key

"""Certificates and contexts of TLS servers on loopback."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from benchmarks import certificates


def certificate(folder: Path, days: float) -> tuple[Path, ssl.SSLContext]:
    """Return a certificate of 127.0.0.1 that ends in so many days, and the context of its server."""
    try:
        file, key = certificates.certificate(folder, days)
    except OSError as error:
        pytest.skip(str(error))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key)
    return file, context

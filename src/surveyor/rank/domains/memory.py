"""Memory requirements of the scores, and available memory."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.7  # of the free memory


def needed(score: str, domains: int, links: int, threads: int) -> int:
    """Return the approximate peak memory of a score in bytes; links that are read sequentially are not held."""
    whole = 4 * links + 8 * domains
    return {
        "tse": whole + (12 * threads + 4) * domains,
        "supp": whole + (8 * threads + 16) * domains,
        "in": 8 * domains,
        "win": 24 * domains,
        "qvs": 24 * domains,
        "pagerank": 48 * domains,
        "harmonic": 160 * domains,
        "bv": (144 + 2 * (max(domains, 2) - 1).bit_length() + 2) * domains,
    }[score]


def free_memory() -> int:
    """Return the bytes available for work: most of the free memory of the machine."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) << 10
    except (OSError, StopIteration, ValueError, IndexError):
        try:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
        except (AttributeError, ValueError, OSError):
            free = 4 << 30
    return int(SHARE * free)


def size_in_words(size: int) -> str:
    """Format a number of bytes for people."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:,} bytes"

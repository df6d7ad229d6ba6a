"""Default folder name of a survey: unique for each site, port and path prefix.

The name is readable where that is unambiguous: `example.org`, `localhost_8000`, `example.org_docs`. Anything that a
file system might conflate or reject (capital letters, other characters, long paths) is replaced, and a digest of the
exact location is appended, so that two locations never share a folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

from surveyor.web.scope import Scope

LONGEST = 100  # characters of a name without its suffix; file systems allow 255 bytes
DIGEST = 5  # bytes
LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
# A first segment of digits would look like a port.
PLAIN = re.compile(rf"{LABEL}(\.{LABEL})*(:[0-9]+|(?!/[0-9]+(/|$)))(/[a-z0-9][a-z0-9.-]*)*")
ADDRESS = re.compile(r"\[[0-9a-f:.]+\]")  # IPv6 without a port


def site_name(seed: str, *, prefix: bool = False) -> str:
    """Return a file name for the host and port of a seed URL, and with `prefix` for its folder too.

    >>> site_name("http://localhost:8000/"), site_name("https://example.org/docs/start", prefix=True)
    ('localhost_8000', 'example.org_docs')
    >>> site_name("https://example.org/Docs/", prefix=True)
    'example.org_Docs_9e5136ca69'
    """
    place = seed.partition("://")[2].partition("?")[0]
    place = place.rpartition("/")[0] if prefix else place.partition("/")[0]
    if ADDRESS.fullmatch(place):
        return "ipv6_" + place.strip("[]").replace(":", "-")
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", place).strip("_.-")
    return shortened(name, place, LONGEST) if PLAIN.fullmatch(place) else _marked(name, place, LONGEST)


def shortened(name: str, whole: str, longest: int = 60) -> str:
    """Return a name of at most `longest` characters; a truncated name ends in a digest of `whole`."""
    return name if len(name) <= longest else _marked(name, whole, longest)


def _marked(name: str, whole: str, longest: int) -> str:
    digest = hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=DIGEST).hexdigest()
    return f"{name[: longest - len(digest) - 1].rstrip('_.-')}_{digest}"


def folder_for(seeds: Sequence[str], out: Path | str | None, *, scope: str = "", fresh: bool = False) -> Path:
    """Return the folder of a survey of these seeds; with `fresh`, an unused name.

    The path of a seed is part of the name only if the scope is a prefix.
    """
    if out is not None:
        path = Path(out)
    else:
        kind = scope or Scope.of_seeds(seeds).kind
        path = Path(f"{site_name(seeds[0], prefix=kind == 'prefix')}.survey")
    return unused(path) if fresh else path


def unused(path: Path) -> Path:
    """Return the path, or the first of path-2, path-3, … that does not exist."""
    stem = path.name.removesuffix(".survey")
    ending = path.name[len(stem) :]
    numbers = chain([""], (f"-{number}" for number in count(2)))
    names = (path.with_name(f"{stem}{number}{ending}") for number in numbers)
    return next(name for name in names if not name.exists())

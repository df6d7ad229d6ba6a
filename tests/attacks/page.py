"""Write docs/reference/attacks.md from the table of attacks: `python tests/attacks/page.py` (part of `make docs`)."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from attack import Attack

from table import table

PAGE = Path(__file__).parent.parent.parent / "docs/reference/attacks.md"
HEAD = """\
# Attacks and guarantees

What hostile or broken servers, and files from elsewhere, may send, and what surveyor guarantees then. Each row is a
test of that attack, which runs in `make test` or `make test-all` and fails if the guarantee does not hold; this page is
generated from those tests by `make docs`. All traffic of the tests stays on this machine.
"""
TAIL = """
## A crawl among hostile hosts

`python -m experiments.hostile_web` crawls 1,000 real pages (documentation packages, on loopback) that link to
46 hosts with one fault each. It prints what was reported of each fault and how many requests it cost, and checks that
all honest pages were fetched, within bounds of memory and time, and that nothing but loopback was contacted.

`python tests/attacks/costs.py` measures what hostile input costs: how long a hostile page holds the event loop (at most
100 ms), the slowest verdict of a hostile robots.txt (2 ms), and how much longer URLs take that collide in a hash table
without a key (3 times).

## Fuzzing

`make fuzz` sends mutated inputs to everything that parses what servers or files contain: URLs, headers, robots.txt,
HTML, sitemaps, content encodings, graph formats, journals and archives. The targets are in `tests/attacks/fuzz/`.
They call the parsers beneath the boundary that turns an unexpected exception of a parser into the outcome *blocked*,
so that each exception is a finding. The search is guided by the lines reached; no other fuzzer is needed for it.

| target | inputs of the largest runs | found and fixed |
|---|--:|---|
| URLs | 1,000,000 | a host of dots alone had an empty domain |
| headers | 1,000,000 | `Link` with an empty `rel` |
| robots.txt | 1,260,000 | – |
| HTML | 1,000,000 | – |
| sitemaps | 1,000,000 | encodings that Python does not know |
| content encodings | 200,000 | – |
| archives | 200,000 | records of an impossible length, records without a URL |
| journals | 200,000 | – |
"""


def cell(text: str) -> str:
    """Return text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def page(rows: list[Attack]) -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for area, attacks in groupby(rows, key=lambda row: row.area):
        lines += [f"## {area[0].upper()}{area[1:]}", "", "| attack | inputs | guarantee |", "|---|--:|---|"]
        lines += [f"| {cell(row.name)} | {row.inputs:,} | {cell(row.must_hold)} |" for row in attacks]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(page(table()), "utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")

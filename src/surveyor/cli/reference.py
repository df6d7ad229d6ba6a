"""Write docs/reference/commands.md from the help of every command: `python -m surveyor.cli.reference [FILE]`.

A test fails when the file and the commands differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli.lazy import LazyGroup, surveyor

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "docs/reference/commands.md"
HEAD = """\
# Commands

Made from `surveyor COMMAND --help` by `python -m surveyor.cli.reference docs/reference/commands.md`.

Results go to stdout; progress, warnings and suggestions go to stderr. On a terminal progress is a bar;
elsewhere it is a line every ten seconds. `--quiet` leaves the data asked for, warnings and errors.

| exit code | meaning |
|--:|---|
| 0 | done |
| 1 | a bug in surveyor (or `doctor` found something wrong) |
| 2 | wrong usage, or an input that cannot be read |
| 3 | done, but without the guarantee asked for |
| 4 | a graph folder that is damaged or written by a newer version |
| 130, 143 | interrupted |

`--json` prints one object. It always has `schema` (now 1; raised when a field changes its meaning or goes)
and `command`.

| field | in | meaning |
|---|---|---|
| `graph` | all but `doctor` | the graph folder or file; in rankings and races an object of `path`, `pages`, `links` |
| `source` | `graph convert` | what was read |
| `pages`, `links`, `seconds` | `graph build`, `graph convert` | counts, and how long it took |
| `named`, `provenance` | `graph build`, `graph info` | whether pages have names; where the graph came from |
| `pages_without_links`, `pages_without_in_links` | `graph info` | counts |
| `mean_links`, `max_links`, `max_in_links` | `graph info` | of one page |
| `bytes`, `verified` | `graph info` | size on disk; whether checksums were compared |
| `ranking` | `rank`, `top`, `explain`, `demo` | an object: |
| – `damping`, `tolerance`, `teleport`, `dangling`, `solver` | | what was asked for |
| – `error`, `reached` | | the proven error, and whether it is as small as asked for |
| – `sweeps`, `seconds` | | what it took |
| `pages` | `rank`, `top`, `demo` | a list; each page has `position`, `page` (its id), `score`, `share`, |
| | | `in_links`, `out_links`, `name` |
| `near_ties` | `rank`, `top`, `demo` | neighbours in this list, and at its end, whose order is not proven |
| `explanation` | `explain` | an object; all parts are fractions of the score of the page: |
| – `page`, `name`, `share`, `score`, `position`, `in_links` | | the page |
| – `links`, `other_links`, `stuck`, `teleport` | | what came over links (each: `page`, `name`, `part`, |
| | | `links` on that page), from pages without links, by jumps; they sum to 1 |
| – `origins`, `other_origins` | | where the readers who came here had started; they sum to 1 |
| `seeds`, `seed_names`, `damping`, `rng`, `notes` | `simulate` | what was raced: ids and names of the first pages, |
| | | settings, what else was set |
| `until`, `goal`, `reached` | `simulate` | the goal in words, its coverage (or null), whether all reached it |
| `truth_error` | `simulate` | proven error of the true importance |
| `optimal`, `optimal_curve` | `simulate` | reads of the best possible order, by share ("0.5" to "0.98"); and its |
| | | true coverage (`true`) after so many `reads` |
| `runs` | `simulate` | a list; an object for each strategy: |
| – `strategy`, `reached`, `why`, `compiled` | | its name, whether it reached the goal, why it stopped |
| – `reads`, `requests` | | pages read; with those asked for in vain |
| – `coverage` | | at the end: `at_least`, `at_most`; and `captured`, `moving`, `waiting`, `blocked`, `lost`, |
| | | which sum to 1 |
| – `guaranteed`, `true` | | reads until a share was certain, and until it was captured; by share, null if never |
| – `ratio` | | the same two as multiples of the reads of the best possible order |
| – `seconds`, `microseconds_per_page` | | time of ordering and bookkeeping |
| – `link_updates`, `link_updates_per_second` | | shares of mass handed over a link |
| – `samples` | | how good estimates were after some `reads`: `l1` error, Kendall's `tau` |
| – `curve` | | `at_least`, `at_most` and `true` coverage after so many `reads`, at most 200 points |
| `healthy`, `findings` | `doctor` | each finding has `name`, `value`, `fine` (null: not needed) |

`score` is 100 · log(share / floor) / log(best / floor), with floor the smallest share of any page. It
compares pages of one graph only.

Compiled kernels are kept in `$XDG_CACHE_HOME/surveyor` (`~/.cache/surveyor`), or in `NUMBA_CACHE_DIR`.
"""


def reference() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_entries(surveyor, "surveyor", None)])


def _entries(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": 100, "color": False}
    context = click.Context(command, parent, path.split(" ")[-1], **settings)
    yield f"## {path}\n\n```text\n{command.get_help(context).strip()}\n```\n"
    if isinstance(command, LazyGroup):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _entries(child, f"{path} {name}", context)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(reference(), "utf-8")

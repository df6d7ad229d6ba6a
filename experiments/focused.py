"""The experiments of the paper on focused sampling by random walks (its section 5), on webs whose truth is known.

    python -m experiments.focused [--quick] [--data FOLDER] [--runs 100] [--plots FOLDER] [--json]

1. *Errors at equal fetches*: topics of made-up and real webs (`topic_webs`, `topic_data`), sampled by our methods and
   by the paper's. A fetch is a page fetched for the first time, for whatever reason. Walks begin at pages of the topic
   that are often linked to. The paper's methods run with one walk, as published, and with eight; the better one counts.
   *camps* are topics of two halves that only pages off topic join: hard focus does not get from one to the other.
2. *Distributions* of out-degrees and domains against the truth, with chi-square after Rao and Scott.
3. *Precision*: pages on topic among those that walks stood on and fetched, for topics below a tenth of the web.
4. *Judges* (with --data): a keyword rule and a decision tree in place of the true topic.

RMSE is over runs; ratios of RMSE come with 95 % intervals from drawing the runs anew. What the paper's methods are
biased by stands behind their RMSE. The output is Markdown, written as it comes; with --json it is one object, and the
tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments import focused_tables as tables
from experiments.chosen_domains import say
from experiments.classified import classified, judge_table
from experiments.focused_fits import Fitted, fit_table, fitted
from experiments.focused_plots import distribution_plot, subtopic_plot
from experiments.focused_tables import Compared
from experiments.sampled_runs import SETTINGS, measured
from experiments.topic_data import real
from experiments.topic_webs import PAGES, QUICK, TopicWeb, made_up
from surveyor.errors import MissingExtra
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.report.svg import alone


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    options = _options(arguments)
    runs, out = options.runs or (20 if options.quick else 100), sys.stderr if options.json else sys.stdout
    found: list[Compared] = []
    fits: list[Fitted] = []
    with ThreadPool() as pool:
        print(f"# Errors at equal fetches, {runs} runs\n", file=out, flush=True)
        for web in _webs(options):
            topic = f"{int(web.topic.sum()):,} of {web.graph.pages:,} pages on topic ({web.topic.mean():.1%})"
            parts = f"{web.target.sum() / web.topic.sum():.0%} in one part, {_hard(web):.0%} for hard focus"
            print(f"## {web.name}: {topic}, {parts}\n", file=out, flush=True)
            for fetches in web.fetches[-1:] if options.quick else web.fetches:
                found.append(compared(web, fetches, runs, pool))
                print(tables.error_table(found[-1]), file=out, flush=True)
            fits += fitted(web, max(runs // 2, 10), pool)
            say(f"{web.name}: distributions done")
        for ours in ("trial", "mixture"):
            title = f"# RMSE of {ours} as a part of the least of the paper's methods"
            print(f"{title}\n\n{tables.ratio_table(found, ours)}\n{tables.statistic_table(found, ours)}", file=out)
        print(f"# All together\n\n{tables.target_table(found)}", file=out)
        print("\n\n".join(tables.verdict(found, ours) for ours in ("trial", "mixture")) + "\n", file=out)
        print(
            f"# Distributions\n\n{fit_table(fits)}\n# Precision\n\n{tables.precision_table(found)}",
            file=out,
            flush=True,
        )
        if options.plots is not None:
            _draw(options.plots, fits, found)
        judged = classified(options.data, max(runs // 3, 10), pool) if options.data else []
    if judged:
        print(f"# Judges of the topic\n\n{judge_table(judged)}", file=out, flush=True)
    if options.json:
        plain = {
            "errors": [one.to_dict() for one in found],
            "distributions": [one.to_dict() for one in fits],
            "judges": [one.to_dict() for one in judged],
        }
        print(json.dumps({"schema": 1, "runs": runs, **plain}, indent=1))


def compared(web: TopicWeb, fetches: int, runs: int, pool: ThreadPool) -> Compared:
    """Run every method on one topic."""
    began, done = time.monotonic(), []
    for method, walks in SETTINGS:
        done.append(measured(web, method, walks, fetches, runs, pool))
    say(f"{web.name}, {fetches:,} fetches: {len(done)} methods in {time.monotonic() - began:.1f} s")
    return Compared(web, fetches, tuple(done))


def _hard(web: TopicWeb) -> float:
    return float(web.part("hard").sum() / web.topic.sum())


def _webs(options: argparse.Namespace) -> Iterator[TopicWeb]:
    yield from made_up(QUICK if options.quick else PAGES)
    if options.data is None:
        say("no folder of real graphs was given (--data): only a made-up web is used")
    else:
        yield from real(options.data, quick=options.quick)


def _draw(folder: Path, fits: Sequence[Fitted], found: Sequence[Compared]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for one in fits:
            name = re.sub(r"\W+", "-", f"focused {one.web.name} {one.of}")
            (folder / f"{name}.svg").write_text(alone(distribution_plot(one)), "utf-8")
        (folder / "focused-subtopics.svg").write_text(alone(subtopic_plot(found)), "utf-8")
    except MissingExtra as missing:
        say(str(missing))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small web, 20 runs")
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--runs", type=int, help="samples of each topic by each method  [100]")
    parser.add_argument("--plots", type=Path, help="folder for figures")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

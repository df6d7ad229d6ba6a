"""The experiments of the paper on focused sampling by random walks (its section 5), on webs with known answers.

    python -m experiments.focused [--quick] [--data FOLDER] [--runs 100] [--plots FOLDER] [--json]

1. *Errors at equal fetches*: topics of synthetic and real webs (`topic_webs`), sampled by our methods and by the
   paper's. A fetch is the first fetch of a page, for whatever reason. Walks start at pages of the topic with many
   in-links. The paper's methods run with one walk, as published, and with eight; the better one is used. *camps* are
   topics of two halves that only pages off topic connect: a hard focus does not cross from one to the other.
2. *Distributions* of out-degrees and domains against the true ones, by the chi-square test of Rao and Scott.
3. *Precision*: pages on topic among the visited and the fetched pages, for topics below a tenth of the web.
4. *Classifiers* (with --data): a keyword rule and a decision tree in place of the true topic.

RMSE is over runs; ratios of RMSE have 95 % bootstrap intervals. The bias of each method follows its RMSE. The output is
Markdown, printed incrementally; with --json it is one object, and the tables go to stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments import focused_report as report
from experiments.chosen_domains import say
from experiments.focused_fits import DistributionFits, fit_distributions, fit_table
from experiments.focused_report import Comparison
from experiments.sampled_runs import SETTINGS, run_samples
from experiments.topic_classifiers import classifier_table, compare_classifiers
from experiments.topic_webs import PAGES, QUICK, TopicWeb, real_topics, synthetic_topics
from surveyor.errors import MissingExtra
from surveyor.kernels.thread_pool import ThreadPool
from surveyor.report.svg import alone


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all experiments, and print the tables."""
    options = _options(arguments)
    runs, out = options.runs or (20 if options.quick else 100), sys.stderr if options.json else sys.stdout
    comparisons: list[Comparison] = []
    fits: list[DistributionFits] = []
    with ThreadPool() as pool:
        print(f"# Errors at equal fetches, {runs} runs\n", file=out, flush=True)
        for web in _webs(options):
            topic = f"{int(web.topic.sum()):,} of {web.graph.pages:,} pages on topic ({web.topic.mean():.1%})"
            components = (
                f"{web.target.sum() / web.topic.sum():.0%} in one component, {_hard(web):.0%} with a hard focus"
            )
            print(f"## {web.name}: {topic}, {components}\n", file=out, flush=True)
            for fetches in web.fetches[-1:] if options.quick else web.fetches:
                comparisons.append(compare(web, fetches, runs, pool))
                print(report.error_table(comparisons[-1]), file=out, flush=True)
            fits += fit_distributions(web, max(runs // 2, 10), pool)
            say(f"{web.name}: distributions done")
        for ours in ("trial", "mixture"):
            title = f"# RMSE of {ours} relative to the best of the paper's methods"
            print(
                f"{title}\n\n{report.ratio_table(comparisons, ours)}\n{report.statistic_table(comparisons, ours)}",
                file=out,
            )
        print(f"# Overall\n\n{report.overall_table(comparisons)}", file=out)
        print("\n\n".join(report.verdict(comparisons, ours) for ours in ("trial", "mixture")) + "\n", file=out)
        print(
            f"# Distributions\n\n{fit_table(fits)}\n# Precision\n\n{report.precision_table(comparisons)}",
            file=out,
            flush=True,
        )
        if options.plots is not None:
            _draw(options.plots, fits, comparisons)
        classifiers = compare_classifiers(options.data, max(runs // 3, 10), pool) if options.data else []
    if classifiers:
        print(f"# Classifiers\n\n{classifier_table(classifiers)}", file=out, flush=True)
    if options.json:
        results = {
            "errors": [one.to_dict() for one in comparisons],
            "distributions": [one.to_dict() for one in fits],
            "classifiers": [one.to_dict() for one in classifiers],
        }
        print(json.dumps({"schema": 1, "runs": runs, **results}, indent=1))


def compare(web: TopicWeb, fetches: int, runs: int, pool: ThreadPool) -> Comparison:
    """Run every method on one topic."""
    started = time.monotonic()
    done = tuple(run_samples(web, method, walks, fetches, runs, pool) for method, walks in SETTINGS)
    say(f"{web.name}, {fetches:,} fetches: {len(done)} methods in {time.monotonic() - started:.1f} s")
    return Comparison(web, fetches, done)


def _hard(web: TopicWeb) -> float:
    return float(web.component("hard").sum() / web.topic.sum())


def _webs(options: argparse.Namespace) -> Iterator[TopicWeb]:
    yield from synthetic_topics(QUICK if options.quick else PAGES)
    if options.data is None:
        say("no --data folder of real graphs: only the synthetic web is used")
    else:
        yield from real_topics(options.data, quick=options.quick)


def _draw(folder: Path, fits: Sequence[DistributionFits], comparisons: Sequence[Comparison]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for one in fits:
            name = re.sub(r"\W+", "-", f"focused {one.web.name} {one.of}")
            (folder / f"{name}.svg").write_text(alone(report.distribution_plot(one)), "utf-8")
        (folder / "focused-subtopics.svg").write_text(alone(report.subtopic_plot(comparisons)), "utf-8")
    except MissingExtra as missing:
        say(str(missing))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small web, 20 runs")
    parser.add_argument("--data", type=Path, help="folder of real graphs")
    parser.add_argument("--runs", type=int, help="samples per topic and method  [100]")
    parser.add_argument("--plots", type=Path, help="folder for figures")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, tables to stderr")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

"""Fit the token estimate of `surveyor.web.tokens` to two vocabularies, and measure its error on other pages.

    pip install rs-bpe mistral-common
    python -m experiments.tokens FOLDER... --pages 200

The folders hold HTML files. Their main texts in Markdown are divided at random: the weights are fitted on one half
(least squares of the relative errors), and all errors are measured on the other half, with the weights in the source as
well. An error is estimate / count - 1. The budget row sums pages in random order up to a
budget, as an export with `--until tokens=` does.
"""

from __future__ import annotations

import argparse
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.arrays import FloatArray
from surveyor.web import tokens
from surveyor.web.page_text import read_text

SHORTEST, LONGEST = 200, 300_000  # characters of a text, bytes of a page
BUDGETS = (10_000, 100_000)


def counters() -> dict[str, Any]:
    """Return functions from text to the number of tokens."""
    o200k = import_module("rs_bpe.bpe").openai.o200k_base()
    mistral = import_module("mistral_common")
    data = Path(mistral.__file__ or "").parent / "data" / "tekken_240911.json"
    tekken = import_module("mistral_common.tokens.tokenizers.tekken").Tekkenizer.from_file(data)
    return {
        "o200k_base": lambda text: len(o200k.encode(text)),
        "Tekken": lambda text: len(tekken.encode(text, bos=False, eos=False)),
    }


def texts(folder: Path, count: int, rng: random.Random) -> list[str]:
    """Return main texts of random pages of a folder, in Markdown."""
    paths = sorted(path for kind in ("html", "xml") for path in folder.rglob(f"*.{kind}"))
    rng.shuffle(paths)
    found: list[str] = []
    for path in paths:
        if len(found) == count:
            break
        if path.stat().st_size > LONGEST:
            continue
        page = read_text(path.read_bytes(), "https://example.org/", {"content-type": "text/html"})
        if page is not None and len(page.markdown) >= SHORTEST:
            found.append(page.markdown)
    return found


def fitted(rows: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the weights with the least relative squared error."""
    return np.asarray(np.linalg.lstsq(rows / counts[:, None], np.ones(counts.size))[0], np.float64)


def errors(rows: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the relative error of each page."""
    found: FloatArray = rows @ weights / counts - 1
    return found


def main() -> None:
    """Print the weights and the errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=200, help="pages of each folder")
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    rng = random.Random(given.rng)  # noqa: S311  # not for secrets
    sources = {str(folder): texts(folder, given.pages, rng) for folder in given.folders}
    pages = [text for found in sources.values() for text in found]
    names = [name for name, found in sources.items() for _ in found]
    rows = np.array([tokens.features(text) for text in pages])
    counts = {name: np.array([count(text) for text in pages], np.float64) for name, count in counters().items()}
    half = np.random.default_rng(given.rng).permutation(len(pages)) < len(pages) // 2
    mean: FloatArray = sum(counts.values(), np.zeros(len(pages))) / len(counts)
    fit = fitted(rows[half], mean[half])
    print(f"{len(pages)} pages, {int(mean.sum()):,} tokens; half of them fitted\n")
    for name, weight, own in zip(tokens.FEATURES, fit, tokens.WEIGHTS, strict=True):
        print(f"{name:<36}{weight:8.3f}  in the source {own:.3f}")
    print("\n| vocabulary | weights | all pages together | page: median, 5 %, 95 % | worst |\n|---|---|--:|--:|--:|")
    test = ~half
    for name, exact in counts.items():
        for label, weights in (("fitted", fit), ("source", tokens.WEIGHTS)):
            found = errors(rows[test], exact[test], weights)
            total = (rows[test] @ weights).sum() / exact[test].sum() - 1
            low, middle, high = np.quantile(found, [0.05, 0.5, 0.95])
            worst = found[np.abs(found).argmax()]
            print(f"| {name} | {label} | {total:+.1%} | {middle:+.1%}, {low:+.1%}, {high:+.1%} | {worst:+.1%} |")
    print("\n| source | pages | " + " | ".join(counts) + " |\n|---|--:|" + "--:|" * len(counts))
    for source in sources:
        own = test & np.array([name == source for name in names])
        if own.any():
            cells = [(rows[own] @ tokens.WEIGHTS).sum() / exact[own].sum() - 1 for exact in counts.values()]
            print(f"| {Path(source).name} | {own.sum()} | " + " | ".join(f"{cell:+.1%}" for cell in cells) + " |")
    print("\n| budget | vocabulary | exact tokens, 5 % to 95 % of 200 orders |\n|--:|---|--:|")
    for budget in BUDGETS:
        for name, exact in counts.items():
            print(f"| {budget:,} | {name} | {_budgets(rows[test] @ tokens.WEIGHTS, exact[test], budget)} |")


def _budgets(estimates: FloatArray, exact: FloatArray, budget: int) -> str:
    rng = np.random.default_rng(1)
    used = []
    for _ in range(200):
        order = rng.permutation(estimates.size)
        last = int(np.searchsorted(np.cumsum(estimates[order]), budget, side="right"))
        if 0 < last < order.size:
            used.append(exact[order[:last]].sum() / estimates[order[:last]].sum())
    if not used:
        return "fewer tokens in all"
    low, high = np.quantile(used, [0.05, 0.95])
    return f"{low:.2f} to {high:.2f} times the estimate"


if __name__ == "__main__":
    main()

"""Near-duplicate pages by sketches, against brute force over all shingles of real pages.

    python -m experiments.near_duplicates FOLDER... --pages 400

The pages are HTML files drawn uniformly, per folder. Brute force compares the sets of shingles of each page with those
of the first page of every earlier group, and so finds the same groups if no sketch errs. Pages that only one of both
joins to a group are listed with their exact similarity to its first page: sketches may decide either way within four
standard errors of the threshold, 0.9.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from surveyor.web.near_duplicates import SHINGLE, SIMILAR, SIZE, NearDuplicates, sketch
from surveyor.web.page_text import read_text

HEADERS = {"content-type": "text/html; charset=utf-8"}
FEWEST = 20  # words of a page
CLOSE = 4 * (SIMILAR * (1 - SIMILAR) / SIZE) ** 0.5  # from the threshold, within which either answer is right


def texts(folder: Path, count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Return names and texts of pages of a folder, drawn uniformly."""
    paths = sorted(folder.rglob("*.html"))
    rng.shuffle(paths)
    found: list[tuple[str, str]] = []
    for path in paths:
        page = read_text(path.read_bytes(), "https://example.org/page", HEADERS, is_markdown=False)
        if page and len(page.text.split()) >= FEWEST:
            found.append((path.relative_to(folder.parent).as_posix(), page.text))
        if len(found) == count:
            break
    return found


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Return all runs of four words."""
    words = text.lower().split()
    return frozenset(zip(*(words[at:] for at in range(SHINGLE)), strict=False))


def exact(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    """Return the Jaccard similarity of two sets."""
    if min(len(first), len(second)) < SIMILAR / 2 * max(len(first), len(second)):
        return 0.0  # below the threshold by far
    common = len(first & second)
    return common / (len(first) + len(second) - common)


def by_brute_force(sets: list[frozenset[tuple[str, ...]]]) -> list[int]:
    """Return the page that represents each page."""
    first: list[int] = []
    leaders: list[int] = []
    for own in sets:
        leader = next((one for one in leaders if exact(sets[one], own) >= SIMILAR), len(first))
        leaders += [leader] if leader == len(first) else []
        first.append(leader)
    return first


def main() -> None:
    """Print the counts, and the pages on which both disagree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=400, help="pages of each folder")
    parser.add_argument("--rng", type=int, default=7)
    given = parser.parse_args()
    rng = random.Random(given.rng)  # noqa: S311  # not for secrets
    pages = [page for folder in given.folders for page in texts(folder, given.pages, rng)]
    index, sketched, at = NearDuplicates(), list[int](), time.process_time()
    for _, text in pages:
        sketched.append(index.add(sketch(text)))
    seconds, at = time.process_time() - at, time.process_time()
    sets = [shingles(text) for _, text in pages]
    brute = by_brute_force(sets)
    both = sum(number not in (one, other) for number, (one, other) in enumerate(zip(sketched, brute, strict=True)))
    print(f"{len(pages):,} pages of {', '.join(folder.name for folder in given.folders)}")
    print(f"near-duplicates by brute force: {sum(one != at for at, one in enumerate(brute)):,}; by both: {both:,}")
    print(f"CPU seconds: sketches {seconds:.1f}, brute force {time.process_time() - at:.1f}")
    wrong = 0
    for number, (name, _) in enumerate(pages):
        one, other = sketched[number], brute[number]
        if (one == number) == (other == number):
            continue
        leader, who = (other, "brute force") if one == number else (one, "sketches")
        share = exact(sets[leader], sets[number])
        wrong += abs(share - SIMILAR) > CLOSE
        print(f"only {who}: {name} and {pages[leader][0]}, similarity {share:.3f}")
    print(f"disagreements more than {CLOSE:.2f} from {SIMILAR}: {wrong}")


if __name__ == "__main__":
    main()

"""`surveyor search`: pages of a survey by their words and their importance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options
from surveyor.cli.options import current_command

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.report.tables import Table
    from surveyor.search.result import FoundPage, SearchResult

RANKS = ("local", "opic", "global", "domain", "none")
KEYS = ("position", "score", "id", "url", "title", "language", "copies", "snippet")


@options.command(
    "search",
    table=True,
    epilog=options.examples(
        "surveyor search docs.example.org.survey 'sea level'",
        "surveyor search docs.example.org.survey '\"sea level\" -ice' --weight 0.5 --explain",
    ),
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.argument("words", nargs=-1, required=True, metavar="WORDS")
@options.top(10, "Results to list, at most 1000.")
@options.choice(
    "--rank", RANKS, "Importance: of the survey, OPIC, global or domain from a file, or none.", default="local"
)
@click.option("--weight", type=float, metavar="W", help="0: words only; 1: importance only.  [0.2]")
@options.path("--ranks", "FILE", "Global ranks by URL, or scores by domain.")
@click.option("--host", default="", metavar="HOST", help="Only pages of this host.")
@click.option("--language", default="", metavar="CODE", help="Only pages in this language, such as en.")
@click.option("--since", default="", metavar="TIME", help="Only pages fetched since (2026-11-18, 12h, 7d, 2w).")
@options.path("--folder", "PATH", "Only pages below a path such as /guide/, or a URL.", default="")
@options.flag("--explain", "Show what each score consists of.")
def command(output: Output, *, survey: str, words: tuple[str, ...], explain: bool, **given: Any) -> int:
    """Search the pages of SURVEY for WORDS: "quoted words" as a phrase, -words left out.

    The index, in the folder of the survey, is brought up to date first, also while a crawl is running.
    docs/how-to/search-a-survey.md has the formula of the score.
    """
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened, output.progress() as meter:
        found = opened.search(" ".join(words), progress=meter, **given)
    output.object("search", {"survey": survey, **found.to_dict()})
    if output.mode == "csv":
        output.table(_table(found))
        return 0
    output.info(*found.notes)
    _print(output, found, explain=explain)
    if found.pages:
        steps = {} if explain else {"what the scores consist of": current_command("--explain")}
        steps["who links to the first"] = ["surveyor", "explain", survey, found.pages[0].url]
        output.next_steps(steps)
    return 0


def _print(output: Output, found: SearchResult, *, explain: bool) -> None:
    if not found.pages:
        output.line(f"none of {found.indexed:,} pages matches")
        return
    for page in found.pages:
        output.line(f"{page.position:>3}. {' '.join(page.title.split()) or page.url}")
        copies = f" (+{page.copies:,} near-duplicates)" if page.copies else ""
        output.line(f"     {page.url}{copies}")
        if page.snippet:
            output.line(f"     {' '.join(page.snippet.split())}")
        if explain:
            output.lines(f"     {line}" for line in _explanation(page))
    output.line()
    output.line(f"{len(found.pages):,} of {found.total:,} results among {found.indexed:,} pages")


def _explanation(page: FoundPage) -> list[str]:
    parts = page.explanation
    known = parts["importance"]
    importance = "unknown" if known is None else f"{known:.3g}"
    lines = [
        f"score {page.score:.4f} = {parts['relative_words']:.4f}^{1 - parts['weight']:.3g}"
        f" x {parts['relative_importance']:.4f}^{parts['weight']:.3g}",
        f"words {parts['bm25f']:.3f}, importance {importance}, length {parts['length']:.2f} of the mean",
    ]
    for word, part in parts["words"].items():
        fields = ", ".join(f"{name} {count}" for name, count in part["fields"].items())
        adds, idf = part["adds"], part["idf"]
        lines.append(f"{word}: {adds:.3f} = idf {idf:.3f} x {adds / idf:.3f} ({fields})")
    return lines


def _table(found: SearchResult) -> Table:
    from surveyor.report.tables import Table

    records = [tuple(getattr(page, key) for key in KEYS) for page in found.pages]
    return Table(KEYS, [[str(cell) for cell in row] for row in records], KEYS, records)

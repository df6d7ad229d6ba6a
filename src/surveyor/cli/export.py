"""`surveyor export`: a survey for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output

FORMATS = ("parquet", "csv", "jsonl", "gexf", "graphml", "warc")
TABLES = ("pages", "links", "ranks", "hosts", "visits", "robots", "events")


@options.command(
    "export",
    epilog="\b\nsurveyor export my.survey --out pages.csv --top 1000\n"
    "surveyor export my.survey --out tables/ --format parquet\n"
    "surveyor export my.survey --out hosts.gexf --level hosts --top 100\n"
    "surveyor export my.survey --out index.cdxj",
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.option("--out", type=click.Path(), required=True, metavar="FILE|DIR", help="File, or folder for Parquet.")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    metavar="NAME",
    help="parquet, csv, jsonl, gexf, graphml or warc.  [by the ending; a folder is parquet]",
)
@click.option(
    "--table",
    type=click.Choice(TABLES),
    default="pages",
    show_default=True,
    help="For a file of Parquet, CSV or JSON lines; pages come with their ranks.",
)
@click.option(
    "--top",
    "-n",
    type=options.Whole(1),
    metavar="N",
    help="Only the best N pages, or hosts of a graph.  [all; 500 in a graph]",
)
@click.option(
    "--level",
    type=click.Choice(("pages", "hosts")),
    default="pages",
    show_default=True,
    help="What the nodes of a graph are.",
)
@click.option("--raw", is_flag=True, help="CSV: leave text that a spreadsheet would take for a formula as it is.")
@click.option("--replace", is_flag=True, help="Write over what exists.")  # fmt: skip
def command(output: Output, *, survey: str, out: str, **settings: Any) -> int:
    """Write SURVEY for other programs.

    parquet, csv and jsonl hold tables, as `surveyor sql` has them (a folder of Parquet files holds five). gexf and
    graphml hold the best pages or hosts and the links between them, to be drawn. warc is an index (CDXJ) of where in
    the WARC files of the survey the record of each page lies.
    """
    from surveyor.report.numbers import size
    from surveyor.survey.export import export
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened, output.timed() as seconds:
        paths = export(opened, out, **settings)
    sizes = {str(path): path.stat().st_size for path in paths}
    output.object("export", {
        "survey": survey, "files": [{"path": path, "bytes": taken} for path, taken in sizes.items()],
        "seconds": round(seconds[0], 3),
    })  # fmt: skip
    output.summary({"written": "", **{f"  {path}": size(taken) for path, taken in sizes.items()}} if len(sizes) > 1
                   else {"written": f"{paths[0]}, {size(sizes[str(paths[0])])}"})  # fmt: skip
    return 0

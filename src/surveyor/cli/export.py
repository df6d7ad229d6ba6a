"""`surveyor export`: write a survey in the formats of other programs."""

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
@options.path("--out", "FILE|DIR", "File, or folder for Parquet.", required=True)
@options.choice(
    "--format",
    FORMATS,
    "Output format: parquet, csv, jsonl, gexf, graphml, warc.  [by the suffix; parquet for a folder]",
    metavar="NAME",
)
@options.choice(
    "--table", TABLES, "Table in a Parquet, CSV or JSON lines file; pages include their ranks.", default="pages"
)
@click.option(
    "--top",
    "-n",
    type=options.Whole(1),
    metavar="N",
    help="Number of top pages, or of hosts in a graph, to write.  [all; 500 in a graph]",
)
@options.choice("--level", ("pages", "hosts"), "Nodes of a graph.", default="pages")
@options.flag("--raw", "CSV: do not escape text that spreadsheets would treat as a formula.")
@options.flag("--replace", "Overwrite existing files.")
def command(output: Output, *, survey: str, out: str, **settings: Any) -> int:
    """Export SURVEY for other programs.

    parquet, csv and jsonl contain tables, as in `surveyor sql`; for a folder, Parquet writes five tables. gexf and
    graphml contain the top pages or hosts and the links between them, for drawing. warc writes a CDXJ index of the
    WARC files in the survey.
    """
    from surveyor.report.numbers import size
    from surveyor.survey.export import ExportOptions, export
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened, output.timed() as seconds:
        paths = export(opened, out, ExportOptions(**settings))
    sizes = {str(path): path.stat().st_size for path in paths}
    files = [{"path": path, "bytes": bytes_} for path, bytes_ in sizes.items()]
    output.object("export", {"survey": survey, "files": files, "seconds": round(seconds[0], 3)})
    listed = {f"  {path}": size(bytes_) for path, bytes_ in sizes.items()}
    first = {"written": f"{paths[0]}, {size(sizes[str(paths[0])])}"}
    output.summary({"written": "", **listed} if len(sizes) > 1 else first)
    return 0

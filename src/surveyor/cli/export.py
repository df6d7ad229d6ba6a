"""`surveyor export`: write a survey in the formats of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output
    from surveyor.survey.export import ExportedContent

FORMATS = ("parquet", "csv", "jsonl", "xlsx", "markdown", "llms.txt", "sitemap", "gexf", "graphml", "warc")
TABLES = ("pages", "text", "links", "anchors", "ranks", "hosts", "visits", "robots", "events")


class TokenLimit(click.ParamType[int]):
    """A limit such as tokens=100k."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the limit."""
        if isinstance(value, int):
            return value
        name, equals, amount = str(value).partition("=")
        if name.strip() != "tokens" or not equals:
            self.fail(f"must be tokens=N, such as tokens=100k, got {value!r}.", param, ctx)
        tokens = options.Amount().convert(amount, param, ctx)
        if tokens < 1:
            self.fail(f"must be at least tokens=1, got {value!r}.", param, ctx)
        return tokens


@options.command(
    "export",
    epilog="\b\nsurveyor export my.survey --out pages.csv --top 1000\n"
    "surveyor export my.survey --out - --format jsonl | jq .url\n"
    "surveyor export my.survey --out tables/ --format parquet\n"
    "surveyor export my.survey --out site.md --until tokens=100k\n"
    "surveyor export my.survey --out texts.jsonl --table text\n"
    "surveyor export my.survey --out sitemap.xml\n"
    "surveyor export my.survey --out hosts.gexf --level hosts --top 100\n"
    "surveyor export my.survey --out index.cdxj",
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@options.out("FILE|DIR", "File, or folder for Parquet; - is stdout, as CSV unless --format is given.", required=True)
@options.choice(
    "--format",
    FORMATS,
    "Output format: parquet, csv, jsonl, xlsx, markdown, llms.txt, sitemap, gexf, graphml, warc.  [by the suffix; "
    "parquet for a folder]",
    metavar="NAME",
)
@options.choice(
    "--table", TABLES, "Table in a Parquet, CSV, JSON lines or Excel file; pages include their ranks.", default="pages"
)
@click.option(
    "--top",
    "-n",
    type=options.Whole(1),
    metavar="N",
    help="Number of top pages, texts, or hosts in a graph, to write.  [all; 500 in a graph]",
)
@click.option(
    "--until",
    "tokens",
    type=TokenLimit(),
    metavar="tokens=N",
    help="Texts: stop at N tokens in total, by estimate; the most important pages come first.  [all]",
)
@options.flag("--duplicates", "Texts: keep pages whose text is nearly that of a more important one.")
@options.flag("--markdown", "Texts in a table: write Markdown, not plain text.")
@options.choice("--level", ("pages", "hosts"), "Nodes of a graph.", default="pages")
@options.flag("--raw", "CSV: do not escape text that spreadsheets would treat as a formula.")
@options.flag("--replace", "Overwrite existing files.")
def command(output: Output, *, survey: str, out: str, **settings: Any) -> int:
    """Export SURVEY for other programs.

    parquet, csv, jsonl and xlsx contain tables, as in `surveyor sql`; for a folder, Parquet writes five tables.
    markdown, llms.txt and the table text contain the main texts of the pages, most important first, one of each
    group of similar ones. sitemap lists the pages with priorities from their importance. gexf and graphml contain the
    top pages or hosts and the links between them, for drawing. warc writes a CDXJ index of the WARC files.
    """
    from surveyor.report.numbers import size
    from surveyor.survey.export import ExportedContent, ExportOptions, export, export_text
    from surveyor.survey.survey import Survey

    if out == "-" and output.mode == "json":
        raise click.UsageError("--out - and --json both write to stdout.", click.get_current_context())
    chosen = ExportOptions(**settings)
    with Survey(survey) as opened, output.progress() as meter, output.timed() as seconds:
        about = ExportedContent(meter)
        if out == "-":
            export_text(opened, output.stream(), chosen, about=about)
        else:
            paths = export(opened, out, chosen, about=about)
    if out == "-":
        output.info(*(f"{name}  {value}" for name, value in _content(about).items()))
        return 0
    sizes = {str(path): path.stat().st_size for path in paths}
    files = [{"path": path, "bytes": bytes_} for path, bytes_ in sizes.items()]
    output.object("export", {"survey": survey, "files": files, "seconds": round(seconds[0], 3), **about.to_dict()})
    listed = {f"  {path}": size(bytes_) for path, bytes_ in sizes.items()}
    first = {"written": f"{paths[0]}, {size(sizes[str(paths[0])])}"}
    output.summary({**({"written": "", **listed} if len(sizes) > 1 else first), **_content(about)})
    return 0


def _content(about: ExportedContent) -> dict[str, str]:
    """Return lines about the texts or the sitemap of an export."""
    facts: dict[str, str] = {}
    if texts := about.texts:
        facts["texts"] = f"{texts.pages:,} pages, about {texts.tokens:,} tokens, {texts.share:.1%} of the importance"
        left_out = {
            "near-duplicates": texts.duplicates,
            "without text": texts.empty,
            "not archived": texts.not_archived,
            "could not be read": texts.unreadable,
            "cut": texts.cut - texts.incomplete,
            "archived in part": texts.incomplete,
            "beyond the limit": texts.remaining,
        }
        facts["others"] = ", ".join(f"{count:,} {name}" for name, count in left_out.items() if count) or "none"
    if sitemap := about.sitemap:
        facts["sitemap"] = f"{len(sitemap.entries):,} URLs of {sitemap.origin}"
        left_out = {"of other origins": sitemap.other_origins, "with noindex": sitemap.noindex}
        facts["left out"] = ", ".join(f"{count:,} {name}" for name, count in left_out.items() if count) or "none"
    if about.cells_cut:
        facts["cut"] = f"{about.cells_cut:,} texts, to the 32,767 characters of an Excel cell"
    return facts

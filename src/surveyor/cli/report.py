"""`surveyor report`: a survey as one HTML file, to keep or to send."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.cli.suggestions import current_command

if TYPE_CHECKING:
    from surveyor.cli.output import Output

PATIENCE = 20_000  # visits that are gone over in a few seconds


@options.command(
    "report",
    epilog="\b\nsurveyor report docs.example.org.survey --open\n"
    "surveyor report docs.example.org.survey --out report.html --json",
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.option("--out", type=click.Path(), metavar="FILE", help="Where to write it.  [report.html in the survey]")
@click.option("--open", "show", is_flag=True, help="Show it in the browser.")
def command(output: Output, *, survey: str, out: str | None, show: bool) -> int:
    """Write SURVEY as one HTML file: coverage, best pages, hosts, what could not be read, and how it was made.

    The file needs no network and no script, prints well, and stays small however large the survey is. A crawl may
    be going on meanwhile.
    """
    from surveyor.cli.crawl import headline
    from surveyor.report.accounts import interval
    from surveyor.report.numbers import counted, size
    from surveyor.report.survey_html import NO_PLOTS, can_plot, write_report
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        if opened.visits > PATIENCE:
            output.info(f"going over {counted(opened.visits, 'visit')}, which takes a while")
        path = write_report(opened, Path(out) if out is not None else None)
        told = {**headline(opened), "report": str(path), "bytes": path.stat().st_size, "plots": can_plot()}
        output.object("report", told)
        output.line(f"{path}   {size(told['bytes'])}")
        output.info(f"{counted(opened.pages_fetched, 'page')} read, {interval(opened.coverage)}.")
        if not can_plot():
            output.info(NO_PLOTS)
        if show:
            _show(output, path)
        else:
            output.next_steps({"look at it": current_command("--open")})
    return 0


def _show(output: Output, path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        output.warn(f"there is no browser here; open {path.absolute()} in one")

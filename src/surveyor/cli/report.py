"""`surveyor report`: write the report of a survey as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.cli.options import current_command

if TYPE_CHECKING:
    from surveyor.cli.output import Output

MANY_VISITS = 20_000  # processed in a few seconds


@options.command(
    "report",
    epilog="\b\nsurveyor report docs.example.org.survey --open\n"
    "surveyor report docs.example.org.survey --out report.html --json",
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@options.out("FILE", "HTML file to write.  [report.html in the survey]")
@options.flag("--open", "show", "Open it in the browser.")
def command(output: Output, *, survey: str, out: str | None, show: bool) -> int:
    """Write the report of SURVEY as one HTML file: coverage, top pages, hosts, blocked pages, settings.

    The file needs no network, can be printed, and has a bounded size. Its script only sorts and filters tables. It can
    be written during a crawl.
    """
    from surveyor.cli.crawl import headline
    from surveyor.report.numbers import both_bounds, counted, size
    from surveyor.report.survey_html import write_report
    from surveyor.report.svg import NO_PLOTS, can_plot
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        if opened.visits > MANY_VISITS:
            output.info(f"processing {counted(opened.visits, 'visit')}, which takes a while")
        path = write_report(opened, Path(out) if out is not None else None)
        fields = {**headline(opened), "report": str(path), "bytes": path.stat().st_size, "plots": can_plot()}
        output.object("report", fields)
        output.line(f"{path}   {size(fields['bytes'])}")
        output.info(f"{counted(opened.pages_fetched, 'page')} fetched, {both_bounds(opened.coverage, opened.sampled)}.")
        if not can_plot():
            output.info(NO_PLOTS)
        if show:
            _show(output, path)
        else:
            output.next_steps({"open it": current_command("--open")})
    return 0


def _show(output: Output, path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        output.warn(f"no browser found; open {path.absolute()} in one")

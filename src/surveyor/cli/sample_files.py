"""The files that `surveyor sample` writes: pages, curves and a report."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.cli.samples import Found, Told
    from surveyor.report.sample_plots import Drawn


def check(*, pages: str | None, plots: str | None, report: str | None, recall: str | None) -> None:
    """Refuse what cannot be written, before the work is done."""
    from surveyor.report.column_files import check_file
    from surveyor.report.scores import check_place
    from surveyor.report.svg import check_plots

    taken: dict[Path, str] = {}
    for name, place in {"--pages": pages, "--plots": plots, "--report": report, "--recall": recall}.items():
        if place and (other := taken.setdefault(Path(place).resolve(), name)) != name:
            raise UsageError(f"{other} and {name} name the same file, {place}", hint="give each a name of its own")
    if pages:
        if not pages.lower().endswith((".csv", ".csv.gz", ".parquet")):
            raise UsageError(f"the name {pages} tells no format", hint="end it in .csv, .csv.gz or .parquet")
        check_file(pages)
    for place in filter(None, (pages, report)):
        check_place(place)
    if plots:
        check_plots()
        _check_folder(Path(plots))


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="--plots takes the name of a folder")
    above = folder if folder.is_dir() else folder.parent
    if not above.is_dir():
        raise UsageError(f"{folder} cannot be made: there is no folder {above}", hint="make it first, with mkdir")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(
            f"{folder} cannot be written: the folder {above} takes no files from you",
            hint="choose another folder, or change its permissions",
        )


def _draw(output: Output, folder: Path, figures: Mapping[str, Drawn]) -> None:
    """Write each figure to a file of its own."""
    from surveyor.graph.formats.streams import aside
    from surveyor.report.svg import alone

    if not figures:
        output.warn(f"no curves were drawn into {folder}: no step is on topic")
        return
    folder.mkdir(exist_ok=True)
    for name, drawn in figures.items():
        with aside(folder / f"{name}.svg") as draft:
            draft.write_text(alone(drawn.svg), "utf-8")
    output.say(f"curves written to {folder}: {', '.join(f'{name}.svg' for name in figures)}")


def keep(
    output: Output, found: Found, told: Told, *, pages: str | None, plots: str | None, report: str | None
) -> None:  # fmt: skip
    """Write what was asked for; each file appears when it is complete."""
    from surveyor.report.survey_html import NO_PLOTS, can_plot

    sample = found.sample
    if pages:
        from surveyor.report.sample_files import write_pages

        write_pages(sample, pages)
        output.say(f"sampled pages written to {pages}")
    if not plots and not report:
        return
    from surveyor.report.sample_plots import all_figures

    figures = all_figures(sample, told.statistics, told.breakdowns) if can_plot() else {}
    if plots:
        _draw(output, Path(plots), figures)
    if report:
        from surveyor.report.sample_html import SampleReport, write_report

        again = shlex.join(["surveyor", *(click.get_current_context().obj or ())])
        page = SampleReport(
            sample, found.source, again, told.statistics, told.breakdowns, told.draws or (), figures, told.failed
        )
        write_report(page, Path(report))  # as a draft first
        output.say(f"report written to {report}")
        if not can_plot():
            output.say(NO_PLOTS)

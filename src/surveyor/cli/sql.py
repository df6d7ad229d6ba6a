"""`surveyor sql`: SQL queries over a survey."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output

EXAMPLE = "select host, sum(share) s from pages join ranks using (id) group by 1 order by s desc"


@options.command("sql", table=True, epilog=f'\b\nsurveyor sql my.survey "{EXAMPLE}"\nsurveyor sql my.survey')
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.argument("query", default="", metavar="[QUERY]")
@options.top(40, "Rows to print; --json and --csv print all.")
@click.option("--seconds", type=float, default=60.0, metavar="S", help="Time limit of the query.")
@options.choice("--engine", ("duckdb", "sqlite"), "SQL engine.  [duckdb if installed]")
def command(output: Output, *, survey: str, query: str, top: int, seconds: float, engine: Any) -> int:
    """Run QUERY, one SELECT over the tables of SURVEY; without QUERY, list the tables. QUERY - is read from stdin.

    The query cannot write, and can read nothing but the survey: no files, no network, no extensions.
    """
    text = sys.stdin.read() if query == "-" and not sys.stdin.isatty() else query.removeprefix("-")
    if not text.strip():
        return show_tables(output, survey)
    from surveyor.report.survey_tables import query_table
    from surveyor.survey.survey import Survey

    with Survey(survey) as opened:
        found = opened.sql(text, seconds=seconds, engine=engine, limit=top if output.mode == "text" else None)
    fields = {"engine": found.engine, "columns": list(found.columns), "rows": found.rows}
    output.object("sql", {"survey": survey, **fields, "seconds": round(found.seconds, 4)})
    output.table(query_table(found))
    if not found.rows:
        output.info("The result is empty.")
    if found.more:
        output.info(f"These are the first {top} rows; -n prints more, --csv and --json print all.")
    return 0


def show_tables(output: Output, survey: str) -> int:
    """List the tables and their columns."""
    from surveyor.report.survey_tables import tables_table
    from surveyor.store.directory import SurveyFolder
    from surveyor.survey.tables import TABLES

    SurveyFolder.open(Path(survey), write=False).close()  # raises if it is not a survey
    output.object("sql", {"survey": survey, "tables": {name: list(columns) for name, columns in TABLES.items()}})
    output.table(tables_table(TABLES))
    output.next_steps({"most important hosts": ["surveyor", "sql", survey, EXAMPLE]})
    return 0

"""`surveyor config list`: all settings there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.cli import options, settings

if TYPE_CHECKING:
    from dataclasses import Field

    from surveyor.cli.output import Output

KEYS = ("setting", "kind", "default", "flag", "variable", "example", "meaning")


@options.command("list", table=True, kernels=False)
def command(output: Output) -> int:
    """List all settings of a crawl: kind, default, meaning, flag, variable and example.

    In files they stand under the same names: in surveyor.toml, in [tool.surveyor] of pyproject.toml, and in the
    user's own file.
    """
    from surveyor.config import FIELDS
    from surveyor.report.tables import Table

    rows = [entry(name, field) for name, field in FIELDS.items()]
    output.object("config list", {"settings": rows})
    if output.mode == "csv":
        records = [tuple(row[key] for key in KEYS) for row in rows]
        output.table(Table(KEYS, [], KEYS, records))
    for row in rows:
        output.line(f"{row['setting']}  ({row['kind']})")
        output.line(f"    {row['meaning']}")
        where = ", ".join(word for word in (row["flag"], row["variable"], "surveyor.toml") if word)
        usual = f"default {row['default']}, such as" if row["default"] else "such as"
        output.line(f"    {usual} {row['example']}")
        output.line(f"    {where}")
    output.next_steps({"what holds here": ["surveyor", "config", "show"]})
    return 0


def entry(name: str, field: Field[Any]) -> dict[str, str]:
    """Describe a setting."""
    from surveyor.config import TABLE
    from surveyor.report.survey_tables import format_setting

    kind = field.metadata["kind"]
    flag = "URL..., --seeds FILE" if name == "seeds" else "" if name in settings.NO_OPTIONS else f"--{name}"
    return {
        "setting": name,
        "kind": kind.what,
        "default": "" if kind is TABLE else format_setting(field.default),
        "flag": flag.replace("_", "-"),
        "variable": "" if kind is TABLE else f"SURVEYOR_{name.upper()}",
        "example": str(field.metadata["example"]),
        "meaning": field.metadata["help"],
    }

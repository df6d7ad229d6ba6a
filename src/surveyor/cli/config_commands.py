"""`surveyor config`: show settings with their origins, list them, and trust the files that set them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field

    from surveyor.cli.output import Output
    from surveyor.config import Settings

NO_CONTACT = "none: a contact is required"
KEYS = ("setting", "kind", "default", "flag", "variable", "example", "meaning")


@options.command(
    "show",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor config show --delay 2\nsurveyor config show docs.example.org.survey",
)
@click.argument("survey", type=click.Path(), metavar="[SURVEY]", required=False)
@settings.all_options
def show(output: Output, *, survey: str | None, **given: Any) -> int:
    """Show every setting of a crawl started here, or those stored in SURVEY, and their origins.

    Passwords and headers are hidden. The options are those of `surveyor crawl`, to show their effect.
    """
    flags = settings.given(given)
    if survey is not None:
        return _show_survey(output, survey, flags)
    from surveyor import config

    chosen, origins = config.load(flags)
    _show(output, chosen.shown(), origins, {"user_agent": user_agent(chosen), "files": _files()})
    steps = {"what they mean": ["surveyor", "config", "list"]}
    if not Path("surveyor.toml").exists():
        steps["write a file"] = ["surveyor", "init"]
    output.next_steps(steps)
    return 0


def _show_survey(output: Output, survey: str, flags: Mapping[str, object]) -> int:
    from surveyor.config import Settings
    from surveyor.survey.survey import Survey

    if flags:
        name = "--" + next(iter(flags)).replace("_", "-")
        raise click.UsageError(f"{name} cannot be combined with a survey.", click.get_current_context())
    with Survey(survey) as opened:
        manifest, path = opened.manifest, opened.folder / layout.MANIFEST
    values = {"seeds": list(manifest.seeds), **manifest.settings, "rng": manifest.rng}
    agent = user_agent(Settings(contact=str(manifest.settings.get("contact", ""))))
    files = [{"path": str(path), "state": "read"}]
    _show(output, values, manifest.origins, {"survey": survey, "user_agent": agent, "files": files})
    output.info("\nLogins, headers, the proxy and certificates are not stored in a survey.")
    return 0


def _show(output: Output, values: Mapping[str, Any], origins: Mapping[str, str], more: Mapping[str, Any]) -> None:
    from surveyor.report.survey_tables import values_table

    rows = [{"setting": name, "value": value, "origin": origins.get(name, "")} for name, value in values.items()]
    output.object("config show", {"settings": rows, **more})
    output.table(values_table(values, origins))
    output.line()
    files = {f"file {number}": f"{file['path']} ({file['state']})" for number, file in enumerate(more["files"], 1)}
    output.facts({"User-Agent": more["user_agent"] or NO_CONTACT, **files})


def user_agent(chosen: Settings) -> str:
    """Return the User-Agent header; empty without a contact, as no request is sent then."""
    from surveyor.crawler.start import http_settings

    return http_settings(replace(chosen, ca_file="")).user_agent if chosen.contact else ""  # the file may be missing


def _files() -> list[dict[str, str]]:
    """Return the settings files and their states, in increasing precedence."""
    from surveyor.config import mentions, user_file

    own, project = Path("surveyor.toml"), Path("pyproject.toml")
    states = {path: "read" if path.is_file() else "missing" for path in (user_file(), project, own)}
    if project.is_file():
        hidden = "not read: surveyor.toml exists" if own.is_file() else ""
        states[project] = hidden or ("read" if mentions(project, b"surveyor") else "no [tool.surveyor] table")
    return [{"path": str(path.absolute()), "state": state} for path, state in states.items()]


@options.command("list", table=True, kernels=False)
def list_settings(output: Output) -> int:
    """List all settings of a crawl: kind, default, meaning, flag, variable and example.

    Files use the same names: surveyor.toml, [tool.surveyor] in pyproject.toml, and the user's own file.
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
        places = ", ".join(word for word in (row["flag"], row["variable"], "surveyor.toml") if word)
        default = f"default {row['default']}, such as" if row["default"] else "such as"
        output.line(f"    {default} {row['example']}")
        output.line(f"    {places}")
    output.next_steps({"current values": ["surveyor", "config", "show"]})
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


@options.command(
    "trust",
    kernels=False,
    epilog="\b\nsurveyor config trust\nsurveyor config trust docs.example.org.survey",
)
@click.argument("survey", type=click.Path(), metavar="[SURVEY]", required=False)
def trust(output: Output, *, survey: str | None) -> int:
    """Trust surveyor.toml (or pyproject.toml) in this folder, or all settings of SURVEY.

    Without trust, a settings file or a survey from elsewhere cannot allow private networks, override robots.txt, set
    the contact or send secrets. Read it first. The strategy class of a survey is never imported, trusted or not.
    """
    if survey is not None:
        return _trust_survey(output, Path(survey))
    from surveyor.config import project_file, trust_file
    from surveyor.errors import UsageError

    name, table = project_file(Path())
    if not Path(name).is_file() or (not table and name == "pyproject.toml"):
        raise UsageError(
            "this folder has no settings file to trust", hint="`surveyor init` writes a surveyor.toml and trusts it"
        )
    recorded = trust_file(Path(name))
    output.object("config trust", {"path": str(Path(name).resolve()), "recorded_in": str(recorded)})
    output.line(f"{name} in this folder is trusted from now on")
    output.info(f"recorded in {recorded}")
    return 0


def _trust_survey(output: Output, path: Path) -> int:
    from surveyor.config import user_folder
    from surveyor.errors import SurveyError
    from surveyor.store.directory import SurveyFolder

    with SurveyFolder.open(path) as folder:
        folder.sign()
        if not folder.manifest.signature:
            raise SurveyError(
                f"{path} cannot be signed: there is no key", hint=f"make {user_folder()[0]} a folder you can write to"
            )
    output.object("config trust", {"path": str(path.resolve()), "recorded_in": str(path / layout.MANIFEST)})
    output.line(f"{path} is trusted from now on, unless its {layout.MANIFEST} is changed elsewhere")
    return 0

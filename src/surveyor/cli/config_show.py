"""`surveyor config show`: every setting that holds, here or in a survey, and where it came from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.config import Settings

NOBODY = "none: it needs a contact"


@options.command(
    "show",
    table=True,
    kernels=False,
    epilog="\b\nsurveyor config show --delay 2\nsurveyor config show docs.example.org.survey",
)
@click.argument("survey", type=click.Path(), metavar="[SURVEY]", required=False)
@settings.all_options
def command(output: Output, *, survey: str | None, **given: Any) -> int:
    """Show every setting that would hold for a crawl begun here, or those that SURVEY keeps, and their origins.

    Passwords and headers are hidden. Options are those of `surveyor crawl`, to see what they would change.
    """
    flags = settings.given(given)
    if survey is not None:
        return _of_survey(output, survey, flags)
    from surveyor import config

    chosen, origins = config.load(flags)
    _show(output, chosen.shown(), origins, {"user_agent": user_agent(chosen), "files": _files()})
    output.next_steps({
        "what they mean": ["surveyor", "config", "list"],
        **({} if Path("surveyor.toml").exists() else {"write a file": ["surveyor", "init"]}),
    })  # fmt: skip
    return 0


def _of_survey(output: Output, survey: str, flags: Mapping[str, object]) -> int:
    from surveyor.config import Settings
    from surveyor.survey.survey import Survey

    if flags:
        name = "--" + next(iter(flags)).replace("_", "-")
        raise click.UsageError(f"{name} does not go with a survey.", click.get_current_context())
    with Survey(survey) as opened:
        manifest, path = opened.manifest, opened.folder / layout.MANIFEST
    values = {"seeds": list(manifest.seeds), **manifest.settings, "rng": manifest.rng}
    agent = user_agent(Settings(contact=str(manifest.settings.get("contact", ""))))
    files = [{"path": str(path), "state": "read"}]
    _show(output, values, manifest.origins, {"survey": survey, "user_agent": agent, "files": files})
    output.say("\nLogins, headers, the proxy and certificates are not kept in a survey.")
    return 0


def _show(output: Output, values: Mapping[str, Any], origins: Mapping[str, str], more: Mapping[str, Any]) -> None:
    from surveyor.report.survey_tables import values_table

    rows = [{"setting": name, "value": value, "origin": origins.get(name, "")} for name, value in values.items()]
    output.object("config show", {"settings": rows, **more})
    output.table(values_table(values, origins))
    output.line()
    output.facts({
        "User-Agent": more["user_agent"] or NOBODY,
        **{f"file {number}": f"{file['path']} ({file['state']})" for number, file in enumerate(more["files"], 1)},
    })  # fmt: skip


def user_agent(chosen: Settings) -> str:
    """Return what sites see; empty if there is no contact, without which nobody is asked for anything."""
    from surveyor.crawler.start import http_settings

    return http_settings(replace(chosen, ca_file="")).user_agent if chosen.contact else ""  # the file may be missing


def _files() -> list[dict[str, str]]:
    """Return the files that settings are looked for in, those that count less first."""
    from surveyor.config import mentions, user_file

    own, project = Path("surveyor.toml"), Path("pyproject.toml")
    states = {path: "read" if path.is_file() else "not there" for path in (user_file(), project, own)}
    if project.is_file():
        speaks = mentions(project, b"surveyor")
        hidden = "not read: there is a surveyor.toml" if own.is_file() else ""
        states[project] = hidden or ("read" if speaks else "says nothing of surveyor")
    return [{"path": str(path.absolute()), "state": state} for path, state in states.items()]

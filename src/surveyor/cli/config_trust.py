"""`surveyor config trust`: vouch for the settings file of this folder, or for a survey."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options
from surveyor.store import layout

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command(
    "trust",
    kernels=False,
    epilog="\b\nsurveyor config trust\nsurveyor config trust docs.example.org.survey",
)
@click.argument("survey", type=click.Path(), metavar="[SURVEY]", required=False)
def command(output: Output, *, survey: str | None) -> int:
    """Trust surveyor.toml (or pyproject.toml) in this folder, or all settings of SURVEY.

    A settings file or a survey that came from elsewhere cannot open private networks, pass by robots.txt, set who asks
    or send secrets. Read it first. The strategy of a survey is never imported, trusted or not.
    """
    if survey is not None:
        return _survey(output, Path(survey))
    from surveyor.config import project_file, trust_file
    from surveyor.errors import UsageError

    name, table = project_file(Path())
    if not Path(name).is_file() or (not table and name == "pyproject.toml"):
        raise UsageError("there is no settings file in this folder", hint="`surveyor init` writes one, and trusts it")
    listed = trust_file(Path(name))
    output.object("config trust", {"path": str(Path(name).resolve()), "recorded_in": str(listed)})
    output.line(f"{name} in this folder is trusted from now on")
    output.say(f"recorded in {listed}")
    return 0


def _survey(output: Output, path: Path) -> int:
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
    output.line(f"{path} is trusted from now on, unless someone else changes its {layout.MANIFEST}")
    return 0

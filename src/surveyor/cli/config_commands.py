"""`surveyor config` and `surveyor init`: show, list and trust settings and their files, and write such a file."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options, settings
from surveyor.store import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from dataclasses import Field

    from surveyor.cli.output import Output
    from surveyor.config import Settings

NO_CONTACT = "none: a contact is required"
KEYS = ("setting", "kind", "default", "flag", "variable", "example", "meaning")
TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {  # description, settings
    "site": ("one site: the hosts of the seeds", {"scope": "host", "until": ["coverage=0.95"]}),
    "folder": ("a part of a site: the folders of the seeds", {"scope": "prefix", "until": ["coverage=0.95"]}),
    "domain": ("all hosts of a domain", {"scope": "domain", "until": ["coverage=0.95", "pages=10000"]}),
    "topic": ("everything linked from the seeds", {"scope": "any", "until": ["coverage=0.8", "pages=5000"]}),
}
FILE = Path("surveyor.toml")


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
    values = {"seeds": manifest.written_seeds, **manifest.settings, "rng": manifest.rng}
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
        default = f"default {row['default']}, for example" if row["default"] else "for example"
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
    "trust", kernels=False, epilog="\b\nsurveyor config trust\nsurveyor config trust docs.example.org.survey"
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


@options.command(
    "init",
    kernels=False,
    epilog="\b\nsurveyor init --seed https://docs.example.org --contact me@example.org && surveyor crawl\n\b\n"
    + "\n".join(f"{name:<8} {about}" for name, (about, _) in TEMPLATES.items()),
)
@options.choice("--template", tuple(TEMPLATES), "What to crawl; see below.  [site]")
@click.option("--seed", "seeds", multiple=True, metavar="URL", help="Seed URL; may be repeated.")
@click.option("--contact", metavar="TEXT", help="E-mail address or URL sent with every request.")
@options.many("--until", "RULE", "When to stop, such as coverage=0.95 or pages=5000.  [by the template]")
@click.option("--delay", type=float, metavar="X", help="Seconds between two requests to a host, at least.  [1]")
@options.flag("--yes", "-y", "Do not prompt; use the options and the template.")
@options.flag("--replace", "Replace an existing surveyor.toml.")
def init(output: Output, *, template: str | None, yes: bool, replace: bool, **given: Any) -> int:
    """Write surveyor.toml in this folder; on a terminal, prompt for missing values.

    `surveyor crawl` then needs no options. All other settings are included as comments with their defaults.
    """
    from surveyor.errors import UsageError

    if FILE.exists() and not replace:
        raise UsageError(
            f"{FILE} already exists", hint="--replace replaces it; `surveyor config show` prints its values"
        )
    prompts = not yes and not output.quiet and output.mode == "text" and sys.stdin.isatty() and sys.stderr.isatty()
    values = {name: value for name, value in given.items() if value is not None and value != ()}
    chosen = _prompted(values, template) if prompts else _filled(values, template or "site")
    write(chosen, replace=replace)
    output.object("init", {"path": str(FILE), "settings": chosen})
    output.line(f"{FILE} written")
    if _hides_pyproject():
        output.warn("[tool.surveyor] in pyproject.toml is ignored from now on: surveyor.toml takes precedence")
    missing = [name for name in ("seeds", "contact") if not chosen.get(name)]
    if missing and not (missing == ["contact"] and _known_contact()):
        output.info(f"It has no {' and no '.join(missing)} yet; a crawl needs them.")
    output.next_steps({"start": ["surveyor", "crawl"], "current settings": ["surveyor", "config", "show"]})
    return 0


def write(values: Mapping[str, Any], *, replace: bool = False) -> None:
    """Write the file atomically and trust it, as the user has just chosen its values."""
    from surveyor.config import trust_file
    from surveyor.errors import UsageError
    from surveyor.store.disk import write_atomically

    text = as_toml(values)
    try:
        if replace:
            write_atomically(FILE, text)
        else:
            with FILE.open("x", encoding="utf-8") as file:
                file.write(text)
    except FileExistsError:
        raise UsageError(f"{FILE} already exists", hint="--replace replaces it") from None
    with suppress(UsageError):  # without a home folder it stays untrusted, which a crawl reports if it matters
        trust_file(FILE)


def as_toml(values: Mapping[str, Any]) -> str:
    """Return TOML of the settings with their descriptions, and of all others as comments."""
    from surveyor.config import FIELDS, TABLE
    from surveyor.store.manifest import toml

    lines = ["# Settings of `surveyor crawl` in this folder. Flags and SURVEYOR_… variables take precedence.", ""]
    plain = [name for name in FIELDS if FIELDS[name].metadata["kind"] is not TABLE]
    for name in [name for name in plain if name in values]:
        lines += [f"# {FIELDS[name].metadata['help']}", toml({name: values[name]}).strip(), ""]
    lines += ["# Everything below is a default or an example; remove the # to change it.", ""]
    for name in [name for name in plain if name not in values]:
        lines += [f"# {FIELDS[name].metadata['help']}", f"# {toml({name: _example(name)}).strip()}", ""]
    for name in [name for name in FIELDS if name not in plain]:
        facts = FIELDS[name].metadata
        lines += [f"# {facts['help']}", f"# [{name}]", f"# {facts['example']}", ""]
    return "\n".join(lines)


def _example(name: str) -> Any:
    """Return the default of a setting, or an example if the default is empty."""
    from surveyor.config import FIELDS, LIST

    field = FIELDS[name]
    if field.default not in (None, "", ()):
        return field.default
    kind, text = field.metadata["kind"], field.metadata["example"]
    value = kind.accept(kind.parse(text))
    return list(value) if kind is LIST else value


def _filled(values: Mapping[str, Any], template: str) -> dict[str, Any]:
    """Return the settings of a template and the options, validated as for a crawl."""
    from surveyor.config import Settings
    from surveyor.crawler.seed_pages import SeedPages, written
    from surveyor.stopping import parse_rule

    made = {**TEMPLATES[template][1], **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}}
    if made.get("seeds"):
        pages = SeedPages.of(made["seeds"])
        weights = {**{url: weight or 1.0 for url, weight in pages.weights.items()}, **dict.fromkeys(pages.listed, 0.0)}
        made["seeds"] = [written(url, weight) for url, weight in weights.items()]
    parse_rule(Settings(**made).until)
    return {name: made[name] for name in ("seeds", "contact", "scope", "until", "delay") if name in made}


def _prompted(values: Mapping[str, Any], template: str | None) -> dict[str, Any]:
    """Prompt for missing values; invalid input is prompted for again."""
    answers = dict(values)
    if template is None:
        for name, (about, _) in TEMPLATES.items():
            click.echo(f"  {name:<8} {about}", err=True)
        template = click.prompt("what to crawl", default="site", type=click.Choice(tuple(TEMPLATES)), err=True)
    defaults = TEMPLATES[template][1]
    if "seeds" not in answers:
        answers["seeds"] = _prompt("pages to start from (URLs)", None, "seeds", str.split)
    if "contact" not in answers and not _known_contact():
        answers["contact"] = _prompt("contact (e-mail or URL)", None, "contact", str.strip)
    if "until" not in answers:
        answers["until"] = _prompt("until", ", ".join(defaults["until"]), "until", _split)
    if "delay" not in answers:
        answers["delay"] = _prompt("seconds between two requests to a host", "1", "delay", float)
    return _filled(answers, template)


def _prompt(question: str, default: str | None, name: str, read: Callable[[str], Any]) -> Any:
    from surveyor.errors import SurveyorError

    def check(text: str) -> Any:
        try:
            value = read(text)
            _filled({name: value}, "site")
        except ValueError:
            raise click.UsageError(f"{text!r} is not a number.") from None
        except SurveyorError as error:
            raise click.UsageError(f"{error.problem}; {error.hint}.") from None
        return value

    return click.prompt(question, default=default, value_proc=check, err=True)


def _split(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",")]


def _known_contact() -> str:
    """Return the contact that is set outside of this folder, whose file may be replaced."""
    from surveyor.config import load

    return load(folder=FILE)[0].contact  # there is no such folder


def _hides_pyproject() -> bool:
    from surveyor.config import mentions

    return mentions(Path("pyproject.toml"), b"[tool.surveyor")

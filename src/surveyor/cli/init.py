"""`surveyor init`: write a surveyor.toml with an explanation of every line."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from surveyor.cli.output import Output

TEMPLATES: dict[str, tuple[str, dict[str, Any]]] = {  # description, settings
    "site": ("one site: the hosts of the seeds", {"scope": "host", "until": ["coverage=0.95"]}),
    "folder": ("a part of a site: the folders of the seeds", {"scope": "prefix", "until": ["coverage=0.95"]}),
    "domain": ("all hosts of a domain", {"scope": "domain", "until": ["coverage=0.95", "pages=10000"]}),
    "topic": ("everything linked from the seeds", {"scope": "any", "until": ["coverage=0.8", "pages=5000"]}),
}
FILE = Path("surveyor.toml")


@options.command(
    "init",
    kernels=False,
    epilog="\b\nsurveyor init --seed https://docs.example.org --contact me@example.org && surveyor crawl\n\b\n"
    + "\n".join(f"{name:<8} {about}" for name, (about, _) in TEMPLATES.items()),
)
@click.option("--template", type=click.Choice(tuple(TEMPLATES)), help="What to crawl; see below.  [site]")
@click.option("--seed", "seeds", multiple=True, metavar="URL", help="Seed URL; may be repeated.")
@click.option("--contact", metavar="TEXT", help="E-mail address or URL sent with every request.")
@click.option(
    "--until",
    multiple=True,
    metavar="RULE",
    help="When to stop, such as coverage=0.95 or pages=5000.  [by the template]",
)
@click.option("--delay", type=float, metavar="X", help="Seconds between two requests to a host, at least.  [1]")
@click.option("--yes", "-y", is_flag=True, help="Do not prompt; use the options and the template.")
@click.option("--replace", is_flag=True, help="Replace an existing surveyor.toml.")
def command(output: Output, *, template: str | None, yes: bool, replace: bool, **given: Any) -> int:
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
    from surveyor.crawler.start import clean_seeds
    from surveyor.stopping import parse_rule

    made = {**TEMPLATES[template][1], **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}}
    if made.get("seeds"):
        made["seeds"] = clean_seeds(made["seeds"])
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

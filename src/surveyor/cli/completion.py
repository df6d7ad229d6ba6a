"""`surveyor completion`: the completion script of a shell."""

from __future__ import annotations

import sys

import click

from surveyor.cli.lazy import SETTINGS, surveyor


@click.command(
    "completion",
    context_settings=SETTINGS,
    epilog="\b\n"
    "surveyor completion bash > ~/.local/share/bash-completion/completions/surveyor\n"
    "surveyor completion fish > ~/.config/fish/completions/surveyor.fish\n"
    "surveyor completion zsh > ~/.zfunc/_surveyor    (any folder of $fpath)",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None, "click supports the three shells"  # noqa: S101
    sys.stdout.write(script(surveyor, {}, "surveyor", "_SURVEYOR_COMPLETE").source() + "\n")

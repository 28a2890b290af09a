"""``speedlint completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from speedlint.cli import COMPLETE, NAME


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints a script that makes SHELL complete commands, options, formats, files and the codes of rules.

    \b
    bash: add to ~/.bashrc     eval "$(speedlint completion bash)"
    zsh:  add to ~/.zshrc      eval "$(speedlint completion zsh)", after compinit
    fish: run once             speedlint completion fish > ~/.config/fish/completions/speedlint.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, NAME, COMPLETE).source()
    click.echo(script.replace('string split ","', 'string split --max 1 ","'))  # fish: codes have commas between

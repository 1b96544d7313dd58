"""`paritrace completion`: the script that makes a shell complete paritrace's commands and options."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from paritrace.cli.entry import PROGRAM, paritrace
from paritrace.cli.output import write_text

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command()
@click.argument("shell", type=click.Choice(sorted(SHELLS)))
def completion(shell: str) -> None:
    """Print the completion script of SHELL.

    Load it once with `eval "$(paritrace completion bash)"`, or put that line into the shell's start-up file.
    """
    write_text(SHELLS[shell](paritrace, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())

"""The command line is frozen: a changed command, argument or option shows as a changed golden file (surface.md)."""

from collections.abc import Iterator

import click

from paritrace.automation.__main__ import PROGRAM, tools
from paritrace.cli.entry import COMMANDS, load_command
from tests.conftest import Golden


def describe(parameter: click.Parameter) -> str:
    words = [" ".join((*parameter.opts, *parameter.secondary_opts))]
    if isinstance(parameter, click.Argument):
        words = [parameter.make_metavar(click.Context(click.Command("x")))]
    elif not isinstance(parameter, click.Option) or not parameter.is_flag:
        words.append(
            parameter.type.name.upper() if not isinstance(parameter.type, click.Choice) else _choices(parameter.type)
        )
    words += [word for word, holds in (("repeatable", parameter.multiple), ("required", parameter.required)) if holds]
    return "  ".join(words)


def _choices(choice: click.Choice[object]) -> str:
    return "{" + ",".join(str(getattr(c, "value", c)) for c in choice.choices) + "}"


def lines(command: click.Command, path: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from lines(child, f"{path} {name}")
        return
    yield path
    for parameter in command.params:
        yield f"    {describe(parameter)}"


def test_synopsis_is_what_was_agreed(golden: Golden) -> None:
    commands = [(load_command(name), f"paritrace {name}") for name in COMMANDS]
    text = "\n".join(line for command, path in [*commands, (tools, PROGRAM)] for line in lines(command, path))
    golden("synopsis.txt", text + "\n")

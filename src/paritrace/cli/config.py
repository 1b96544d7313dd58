"""`paritrace config`: every setting of every command, its value and where the value comes from (SU-1)."""

import json
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from paritrace.cli.entry import COMMANDS, load_command
from paritrace.cli.invocation import Invocation
from paritrace.cli.options import json_option, options_by_key
from paritrace.cli.output import write_json, write_text
from paritrace.cli.settings_file import SettingsFile, defaults_of, read_nearest, table_of

SOURCES = {ParameterSource.ENVIRONMENT: "environment", ParameterSource.DEFAULT_MAP: "file"}


class Setting(Struct, frozen=True):
    """One option of one command outside any command line: a flag would come before `source`."""

    command: str
    key: str
    value: object
    source: str  # environment | file | default
    environment: str


@click.group()
def config() -> None:
    """Show settings: a flag comes first, then the environment, then the settings file, then the default."""


@config.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Print every setting with its value and its source; a wrong value or an unknown key is refused."""
    settings = read_nearest(Path.cwd())
    found = sorted(_settings(ctx.find_root(), settings), key=lambda setting: (setting.command, setting.key))
    if as_json:
        write_json({"file": None if settings.path is None else str(settings.path), "settings": found})
        return
    write_text(f"settings file: {settings.path or 'none'}")
    for setting in found:
        write_text(
            f"{setting.source:12}{setting.command} --{setting.key} = {json.dumps(setting.value)}"
            f"  ({setting.environment})"
        )


def _settings(root: click.Context, settings: SettingsFile) -> Iterator[Setting]:
    for name in COMMANDS:
        command = load_command(name)
        defaults = defaults_of(command, table_of(settings, name), path=settings.path)
        parent = click.Context(root.command, info_name=root.info_name)
        parent.default_map = {name: defaults}
        yield from _settings_of(command, name, parent=parent)


def _settings_of(command: click.Command, name: str, *, parent: click.Context) -> Iterator[Setting]:
    if isinstance(command, click.Group):
        group_context = click.Context(command, info_name=name, parent=parent)
        for child_name, child in command.commands.items():
            yield from _settings_of(child, child_name, parent=group_context)
        return
    options = options_by_key(command)
    outside = click.Command(
        name, params=[_never_required(option) for option in options.values()], add_help_option=False
    )
    context = outside.make_context(name, [], parent=parent, obj=Invocation())
    for key, option in options.items():
        yield Setting(
            command=context.command_path.partition(" ")[2],
            key=key,
            value=msgspec.to_builtins(context.params[str(option.name)], enc_hook=str),
            source=SOURCES.get(context.get_parameter_source(str(option.name)) or ParameterSource.DEFAULT, "default"),
            environment=_variable(option),
        )


def _never_required(option: click.Option) -> click.Option:
    relaxed = copy(option)
    relaxed.required = False
    relaxed.expose_value = True
    return relaxed


def _variable(option: click.Option) -> str:
    return option.envvar if isinstance(option.envvar, str) else " or ".join(option.envvar or ())

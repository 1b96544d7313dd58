"""Settings from `paritrace.toml` or `[tool.paritrace]`: found, read and refused by name when unknown (SU-1).

A table is named as its command (`[compare]`, `[runs.ls]`), a key as its option without the dashes in front. Click reads
the result as the defaults of the command, so that a flag and an environment variable come first.
"""

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import NamedTuple

import click

from paritrace.cli.options import options_by_key
from paritrace.cli.settings_places import OWN_FILE, settings_files
from paritrace.errors import RequestError

Value = str | int | float | bool | date | time | list["Value"] | dict[str, "Value"]
Table = Mapping[str, Value]


class SettingsFile(NamedTuple):
    """The tables of the nearest settings file; without one `path` is None and `tables` empty."""

    path: Path | None
    tables: Table


def read_nearest(start: Path) -> SettingsFile:
    """Read the settings file of `start` or of the nearest folder above it.

    A `pyproject.toml` that nowhere names paritrace is passed over unread.

    Raises RequestError (Refused) when the nearest file is not valid TOML or `[tool.paritrace]` is not a table.
    """
    for path in settings_files(start):
        tables = _parse(path) if path.name == OWN_FILE else _shared_tables(path)
        if tables is not None:
            return SettingsFile(path, tables)
    return SettingsFile(None, {})


def _shared_tables(path: Path) -> Table | None:
    tool = _parse(path).get("tool")
    section = tool.get("paritrace") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise _refused(path, "tool.paritrace is not a table", fix="write settings as [tool.paritrace.COMMAND] tables")
    return section


def _parse(path: Path) -> dict[str, Value]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refused(path, f"not valid TOML: {error}", fix=f"correct {path}") from error


def table_of(settings: SettingsFile, name: str) -> Table:
    """The table of one command, empty when the file has none."""
    table = settings.tables.get(name)
    return table if isinstance(table, dict) else {}


def check_command_names(settings: SettingsFile, *, known: Iterable[str]) -> None:
    """Refuse a table that no command has."""
    known = list(known)
    for name, value in settings.tables.items():
        if name not in known or not isinstance(value, dict):
            raise _refused(settings.path, f"no command has settings named {name!r}", fix=_one_of("a table", known))


def defaults_of(command: click.Command, table: Table, *, path: Path | None) -> dict[str, object]:
    """The `default_map` of one command from its table; every key must be one of its options.

    Raises RequestError (Refused) that names the first unknown key or value of a wrong kind.
    """
    if isinstance(command, click.Group):
        return _defaults_of_group(command, table, path=path)
    options = options_by_key(command)
    for key, value in table.items():
        if key not in options:
            raise _refused(path, f"`{command.name}` has no setting {key!r}", fix=_one_of("one of", options))
        _check_kind(key, value, option=options[key], path=path)
    return {str(options[key].name): _as_default(value, options[key]) for key, value in table.items()}


def _defaults_of_group(group: click.Group, table: Table, *, path: Path | None) -> dict[str, object]:
    defaults: dict[str, object] = {}
    for name, value in table.items():
        if name not in group.commands or not isinstance(value, dict):
            raise _refused(path, f"`{group.name}` has no command {name!r}", fix=_one_of("a table", group.commands))
        defaults[name] = defaults_of(group.commands[name], value, path=path)
    return defaults


def _check_kind(key: str, value: Value, *, option: click.Option, path: Path | None) -> None:
    scalars = (str, int, float, bool)
    if isinstance(value, scalars):
        fits = not option.is_flag or isinstance(value, bool)
    else:
        fits = isinstance(value, list) and option.multiple and all(isinstance(item, scalars) for item in value)
    if not fits:
        wanted = "true or false" if option.is_flag else "a list of values" if option.multiple else "one value"
        raise _refused(path, f"{key} = {value!r} is not {wanted}", fix=f"give {key} {wanted}")


def _as_default(value: Value, option: click.Option) -> Value:
    return [value] if option.multiple and not isinstance(value, list) else value


def _one_of(what: str, names: Iterable[str]) -> str:
    return f"use {what}: {', '.join(names)}"


def _refused(path: Path | None, message: str, *, fix: str) -> RequestError:
    return RequestError(f"{path}: {message}", code="settings_file", fix=fix)

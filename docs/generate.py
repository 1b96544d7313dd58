"""Writes the reference pages that are made from the code: `python -m docs.generate`, with `--check` only compares."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import click

from docs.figures import with_figures, with_peers, with_placed
from docs.protocol import protocol_page, protocol_schemas
from docs.session_api import document_text, session_api_page
from paritrace.cli.entry import COMMANDS, PROGRAM, load_command, paritrace
from paritrace.cli.options import options_by_key
from paritrace.cli.schema import FORMATS, schema_text
from paritrace.reports.attempts.vocabulary import CLAIMS, GAPS, REQUEST_STATES, STATES
from paritrace.reports.wording import CLASSES, GROUPS, REASONS

Word = TypeVar("Word", bound=StrEnum)

REFERENCE = Path(__file__).parent / "reference"
README = Path(__file__).parents[1] / "README.md"
PLANTED = Path(__file__).parent / "explanation" / "planted-faults.md"
PEERS = Path(__file__).parent / "explanation" / "peers.md"
SCHEMAS = Path(__file__).parent.parent / "schemas"
WIDTH = 100
HEAD = """# Command line

<!-- made by docs/generate.py from the code: do not edit -->

Exit statuses. `run` returns the workload's own status (125: a failure of ours before the workload started). Every other
command returns

| status | means |
|---|---|
| 0 | done; with `--exit-code`: no difference, and the evidence is complete |
| 1 | with `--exit-code`: a difference |
| 2 | trouble: usage, input or output, corrupt or incompatible evidence, a fault of paritrace |
| 3 | with `--exit-code`: undetermined or incomplete, so "no difference" is not supported |
| 130 | interrupted |
| 141 | whoever read the output went away |

When several apply, 2 comes before 1, 1 before 3, 3 before 0.

With `--json` exactly one JSON document goes to stdout and everything else to stderr; an error is the document
`{"ok": false, "error": {"code", "kind", "message", "fix"}}`, `kind` being `refused` (nothing changed) or `failed`
(state changed; the message says what it is now). Codes are explained in [errors](../errors.md).

Every option can also be set by its environment variable and in a settings file: `paritrace.toml`, or the table
`[tool.paritrace]` of `pyproject.toml`, in the working directory or the nearest folder above it. There a command is a
table and an option a key, for example `[compare]` and `exit-code = true`. A flag comes before the environment, the
environment before the file, the file before the default; `paritrace config show` prints what holds and why. An unknown
key is refused by name.
"""


def command_line_page() -> str:
    """The whole page `reference/cli.md`."""
    root = click.Context(
        paritrace, info_name=PROGRAM, terminal_width=WIDTH, max_content_width=WIDTH, **paritrace.context_settings
    )
    sections = [HEAD, _section(paritrace, root)]
    for name in COMMANDS:
        sections.extend(_sections(load_command(name), name, parent=root))
    return "\n".join(sections)


def _sections(command: click.Command, name: str, *, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)
    yield _section(command, context)
    if isinstance(command, click.Group):
        for child_name, child in command.commands.items():
            yield from _sections(child, child_name, parent=context)


def _section(command: click.Command, context: click.Context) -> str:
    text = f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    return text if isinstance(command, click.Group) else text + _settings_table(command)


def _settings_table(command: click.Command) -> str:
    rows = [f"| `{key}` | `{_variable(option)}` |" for key, option in options_by_key(command).items()]
    if not rows:
        return ""
    return "\n".join(["", "| key in a settings file | environment variable |", "|---|---|", *rows, ""])


def _variable(option: click.Option) -> str:
    return option.envvar if isinstance(option.envvar, str) else "` or `".join(option.envvar or ())


VOCABULARY_HEAD = """# Vocabulary

<!-- made by docs/generate.py from the code: do not edit -->

The closed lists that results are written in: the word in JSON and Parquet, and what it says.
"""


def vocabulary_page() -> str:
    """The whole page `reference/vocabulary.md`."""
    return VOCABULARY_HEAD + "".join(
        f"\n## {title}\n\n| word | means |\n|---|---|\n"
        + "".join(f"| `{word}` | {meaning} |\n" for word, meaning in words.items())
        for title, words in VOCABULARY.items()
    )


def _plain(words: Mapping[Word, str]) -> dict[str, str]:
    return {str(word): meaning for word, meaning in words.items()}


VOCABULARY: dict[str, dict[str, str]] = {
    "Classes of difference": _plain(CLASSES),
    "Where a difference comes from": _plain(GROUPS),
    "Why a call has no counterpart": _plain(REASONS),
    "States of attempts": _plain(STATES),
    "States of requests": _plain(REQUEST_STATES),
    "Gaps of attempts": _plain(GAPS),
    "Claims about configurations": _plain(CLAIMS),
}


def pages() -> dict[Path, str]:
    """Every generated page with its text; the published JSON Schemas and the figures of the README too."""
    schemas = {SCHEMAS / f"{name}.json": schema_text(name) for name in FORMATS}
    readme = with_figures(README.read_text(encoding="utf-8"))
    return {
        REFERENCE / "cli.md": command_line_page(),
        REFERENCE / "vocabulary.md": vocabulary_page(),
        REFERENCE / "protocol.md": protocol_page(),
        REFERENCE / "session-api.md": session_api_page(),
        REFERENCE / "session-api.json": document_text(),
        README: readme,
        PLANTED: with_placed(PLANTED.read_text(encoding="utf-8")),
        PEERS: with_peers(PEERS.read_text(encoding="utf-8")),
        **schemas,
        **{SCHEMAS / name: text for name, text in protocol_schemas().items()},
    }


def main() -> int:
    """Write the pages, or with `--check` name those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page differs from the code")
    checking: bool = parser.parse_args().check
    stale = [path for path, text in pages().items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if not checking:
            path.write_text(pages()[path], encoding="utf-8")
        sys.stdout.write(f"{'differs from the code, make docs writes it' if checking else 'written'}: {path}\n")
    return 1 if checking and stale else 0


if __name__ == "__main__":
    sys.exit(main())

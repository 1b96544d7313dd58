"""Commands that return the status of what they run: a failure of ours before that is 125 (SU-3)."""

from collections.abc import Sequence
from typing import Any

import click

from paritrace.cli.output import note
from paritrace.errors import OUR_FAILURE, Outcome

RETURN_THE_WORKLOADS = frozenset({"run", "record"})


def status_before_workload(status: int, words: Sequence[str]) -> int:
    """Return the exit status of a failure of ours in the command `words`: one that no workload's can be taken for."""
    command = next((word for word in words if not word.startswith("-")), "")
    return OUR_FAILURE if command in RETURN_THE_WORKLOADS else status


class OwnStatusCommand(click.Command):
    """A usage error ends with 125 here: any other status would be taken for the workload's."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            note(f"{Outcome.REFUSED.value}: {' '.join(error.format_message().split())} [usage]")
            note(f"    fix: see `paritrace {info_name} --help`")
            raise click.exceptions.Exit(OUR_FAILURE) from None

"""Runs one child in our place: its input and output are ours, our signals are its own, its status becomes ours."""

from collections.abc import Mapping, Sequence

from paritrace.process.commands import Start, run_command


def run_in_our_place(command: Sequence[str], *, environment: Mapping[str, str], silent: bool = False) -> int:
    """Run `command` to its end, without a deadline: it is the user's job.

    `silent`: what it prints on standard output is thrown away.

    Returns its exit status, 128 + n where signal n ended it. Must be called on the main thread.

    Raises:
        RequestError: Refused, code `no_launcher`: there is no such program, or it cannot be started.
    """
    return run_command(command, Start(environment, silent=silent)).status

"""Runs one child in our place: its input and output are ours, our signals are its own, its status becomes ours."""

from collections.abc import Callable, Mapping, Sequence

from paritrace.process.commands import Start, Watch, run_command
from paritrace.process.guarding import guarded


def run_in_our_place(command: Sequence[str], *, environment: Mapping[str, str], silent: bool = False) -> int:
    """Run `command` to its end, without a deadline: it is the user's job.

    When this process is killed, which it cannot see coming, a guard tells the command and all that it started to end
    and, after `ending.GRACE_SECONDS`, kills what has not.

    `silent`: what it prints on standard output is thrown away.

    Returns its exit status, 128 + n where signal n ended it. Must be called on the main thread.

    Raises:
        RequestError: Refused, code `no_launcher`: there is no such program, or it cannot be started.
        HostError: Refused, code `child_not_started`: the guard cannot be started.
    """
    with guarded() as guard:
        return run_command(command, Start(environment, silent=silent), watch=_Guarded(guard)).status


class _Guarded(Watch):
    """Tells the guard of a command once it runs."""

    def __init__(self, guard: Callable[[int], None]) -> None:
        self._guard = guard

    def started(self, pid: int) -> None:
        self._guard(pid)

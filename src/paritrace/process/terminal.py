"""The terminal of a job: whose it is, and lending it to the process group of a child."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def terminal_lent_to(group: int) -> Generator[int]:
    """The terminal's descriptor while it belongs to `group`; -1 where we own none."""
    terminal = our_terminal()
    if terminal < 0:
        yield terminal
        return
    own(terminal, group)
    try:
        yield terminal
    finally:
        own(terminal, os.getpgrp())


def our_terminal() -> int:
    """The terminal's descriptor where it is ours now, else -1."""
    try:
        return 0 if os.tcgetpgrp(0) == os.getpgrp() else -1
    except OSError:  # no terminal
        return -1


def own(terminal: int, group: int) -> None:
    """Make a group the terminal's foreground; a background process that does so is stopped unless it ignores that."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:
        pass  # the group has ended already, or the terminal has gone
    finally:
        signal.signal(signal.SIGTTOU, before)

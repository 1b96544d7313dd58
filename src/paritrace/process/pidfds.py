"""The end of a process as a descriptor to wait for, beside pipes that its descendants may hold open (RS-6)."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def end_of(pid: int) -> Generator[int | None]:
    """A descriptor that becomes readable when a child of ours ends, whoever has its pipes; it takes no wait status.

    None where the platform has none, or the child was waited for already.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or refused by a sandbox: its pipes alone tell
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)

"""Linux calls that Python does not wrap: being a child subreaper (RS-6), ending with a parent (SE-16)."""

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


def become_subreaper() -> None:
    """Make the calling process adopt the orphans of its descendants; kept across exec, not handed to children.

    Changes the workload's world: the adopter must wait for what it adopts. So it is opt-in, and recorded.

    Raises:
        OSError: not Linux, or the kernel refused.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_subreaper() -> None:
    """Adopt no more orphans; those adopted stay children. Raises OSError: not Linux."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def is_subreaper() -> bool:
    """Whether the calling process adopts orphans.

    Raises:
        OSError: not Linux.
    """
    answer = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def end_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when the *thread* that started it ends; lost at a change of user.

    Raises:
        OSError: not Linux.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, argument: int) -> None:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(ctypes.c_int(option), ctypes.c_ulong(argument), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "prctl")

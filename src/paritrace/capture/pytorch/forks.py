"""Who is told when this process forks; the interpreter is asked once, since that cannot be undone (CA-10, N-10)."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An observer that forks concern."""

    def child_after_fork(self) -> None:
        """Called in the forked child."""

    def parent_after_fork(self) -> None:
        """Called in the process that forked."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()
_registered = False


def tell_of_forks(observer: Forked) -> None:
    """Tell an observer of forks for as long as it lives."""
    global _registered
    _told.add(observer)
    if not _registered:
        _registered = True
        os.register_at_fork(after_in_child=_child, after_in_parent=_parent)


def _child() -> None:
    for observer in list(_told):
        observer.child_after_fork()


def _parent() -> None:
    for observer in list(_told):
        observer.parent_after_fork()

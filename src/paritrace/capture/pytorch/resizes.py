"""Storages that are given other memory without any operator: FSDP2 frees and allocates so (CA-32, CA-35).

`UntypedStorage.resize_` runs unchanged, with the arguments it was given; it is put back when the capture stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NAME = "resize_"


class ResizeObserver:
    """Stands before `UntypedStorage.resize_`."""

    def __init__(self, resized: Callable[[torch.UntypedStorage, int], None]) -> None:
        """`resized` is told the storage, resized already, and how many bytes it had before."""
        self._resized = resized
        self._installed = False
        self._own: Any = None  # what the class itself had: torch's is inherited from C++

    def install(self) -> None:
        if self._installed:
            return
        self._installed = True
        self._own = vars(torch.UntypedStorage).get(NAME)
        resized, original = self._resized, torch.UntypedStorage.resize_

        def resize_(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
            before = self.nbytes()
            result = original(self, *args, **kwargs)
            resized(self, before)
            return result

        resize_.__doc__ = original.__doc__
        setattr(torch.UntypedStorage, NAME, resize_)

    def remove(self) -> None:
        """Put back what was there."""
        if not self._installed:
            return
        self._installed = False
        if self._own is None:
            delattr(torch.UntypedStorage, NAME)
        else:
            setattr(torch.UntypedStorage, NAME, self._own)

"""What shows that a collective has completed: the functions of torch that return only when it has (CA-31).

Each runs unchanged, with the arguments it was given; they are put back when the capture stops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any, Protocol

import torch

from paritrace.capture.arrival import WhenImported

MODULE = "torch.distributed.distributed_c10d"
# They launch collectives from C++ and wait for them before they return.
_WAITING = ("_broadcast_coalesced", "_verify_params_across_processes")
_VARARGS = 0x04
_HOOK_ARGUMENTS = 2  # a state and a bucket
_ENGINE: CodeType = vars(torch.autograd.graph)["_engine_run_backward"].__code__


class WorkListener(Protocol):
    """Told what was seen of collectives' works."""

    def work_waited(self, work: object) -> None: ...
    def future_taken(self) -> None: ...
    def waiting_begins(self) -> int: ...
    def waiting_ended(self, serial: int, normally: bool) -> None: ...


class WorkObserver:
    """Stands before `Work.wait`, `Work.get_future` and the functions that wait by themselves."""

    def __init__(self, listener: WorkListener) -> None:
        self._listener = listener
        self._originals: list[tuple[Any, str, Any]] = []
        self._arrival = WhenImported(MODULE, self._patch)
        self._installed = False

    def install(self) -> None:
        if not self._installed:
            self._installed = True
            self._arrival.install()

    def remove(self) -> None:
        self._arrival.remove()
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)
        self._originals.clear()
        self._installed = False

    def _patch(self, module: ModuleType) -> None:
        work = vars(module).get("Work")
        package = sys.modules["torch.distributed"]
        if work is None:  # a torch that was built without it
            return
        self._replace(work, "wait", self._waits)
        self._replace(work, "get_future", self._takes_future)
        for name in _WAITING:
            self._replace(package, name, self._blocks)
        reducer = vars(package).get("Reducer")
        if reducer is not None:
            self._replace(reducer, "_rebuild_buckets", self._blocks)

    def _replace(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        original = vars(owner).get(name)
        if original is None:
            return
        bound = getattr(owner, name)
        made = around(bound)
        made.__name__, made.__qualname__ = bound.__name__, getattr(bound, "__qualname__", bound.__name__)
        made.__doc__, made.__module__ = bound.__doc__, getattr(bound, "__module__", None)
        self._originals.append((owner, name, original))
        setattr(owner, name, made)

    def _waits(self, original: Any) -> Any:
        listener = self._listener

        def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if result:
                listener.work_waited(self)
            return result

        return wait

    def _takes_future(self, original: Any) -> Any:
        listener = self._listener

        def get_future(self: Any, *args: Any, **kwargs: Any) -> Any:
            listener.future_taken()
            return original(self, *args, **kwargs)

        return get_future

    def _blocks(self, original: Any) -> Any:
        return _waiting_function(self._listener, original)


def _waiting_function(listener: WorkListener, original: Any) -> Any:
    def blocking(*args: Any, **kwargs: Any) -> Any:
        serial = listener.waiting_begins()
        try:
            result = original(*args, **kwargs)
        except BaseException:
            listener.waiting_ended(serial, False)
            raise
        listener.waiting_ended(serial, True)
        return result

    return blocking


# The code of every such function: what C++ dispatches inside is called from its frame.
_CODES = [constant for constant in _waiting_function.__code__.co_consts if isinstance(constant, CodeType)]


def from_waiting(frame: FrameType | None) -> bool:
    """Whether C++ that launches collectives and waits for them was called from this frame."""
    return frame is not None and frame.f_code in _CODES


def from_engine(frame: FrameType | None) -> bool:
    """Whether C++ that autograd's engine runs was called from this frame, with no Python in between."""
    return frame is not None and frame.f_code is _ENGINE


@dataclass(frozen=True, slots=True)
class Launch:
    """Who launches a collective. `reducer`: DDP's, itself or by a hook; `bucket`: what the hook was given."""

    reducer: bool
    bucket: Any = None


BY_OTHERS = Launch(False)


def launch_of(frame: FrameType | None) -> Launch:
    """Who launches the collective of this frame. The reducer waits for what it launches and for what its hooks return;
    a hook is handed a bucket."""
    inner: FrameType | None = None
    while frame is not None:
        if frame.f_code is _ENGINE:
            if inner is None:
                return Launch(True)
            bucket = _bucket_given(inner)
            return BY_OTHERS if bucket is None else Launch(True, bucket)
        inner, frame = frame, frame.f_back
    return BY_OTHERS


def _bucket_given(frame: FrameType) -> Any:
    code = frame.f_code
    varargs = bool(code.co_flags & _VARARGS)
    if code.co_argcount < _HOOK_ARGUMENTS and not varargs:
        return None
    cls: Any = vars(sys.modules["torch.distributed"])["GradBucket"]
    given = frame.f_locals
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + varargs]:
        value = given.get(name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, cls):
                return item
    return None

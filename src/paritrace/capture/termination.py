"""SIGTERM of a process with a black box: first the box is written, then what would have happened happens (CA-36).

The workload sees its own handler, sets another, or has none, as without us. Python runs handlers only between two
bytecodes of the main thread; where that is stuck in a call, a collective for instance, the default action would have
ended the process at once, so a thread of ours does that after `STUCK_SECONDS`.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from paritrace.clock import SYSTEM, Clock

TERM = signal.SIGTERM
STUCK_SECONDS = 2.0  # launchers wait 30 s between SIGTERM and SIGKILL; a main thread that is alive takes milliseconds
AGAIN_SECONDS = 0.01  # the signal found us at work on the journal: it is sent again
MAX_AGAIN = 300  # 3 s: no work of ours takes so long unless the disk is stuck
POLL_SECONDS = 0.05
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# What must not be entered twice: their frames on the stack mean that a record is half on its way.
_BUSY = frozenset(
    _HERE + name for name in ("blackbox.py", "definitions.py", "recorder.py", "ring.py", "session.py", "writer.py")
)


class Termination:
    """Stands before the handler of SIGTERM. `act` writes the box; it is called at most once and does not raise."""

    def __init__(self, act: Callable[[], None], *, clock: Clock = SYSTEM) -> None:
        self._act = act
        self._clock = clock
        self._pid = os.getpid()
        self._theirs: Any = None
        self._original: tuple[Any, Any] = (signal.signal, signal.getsignal)
        self._pipe: tuple[int, int] | None = None
        self._watcher: threading.Thread | None = None
        self._heard = 0  # handlers run: the main thread is alive
        self._again = 0
        self._acted = False
        self._installed = False

    def install(self) -> str:
        """Stand before the handler; why that cannot be, or ""."""
        if threading.current_thread() is not threading.main_thread():
            return "sigterm: the capture did not begin on the main thread"
        theirs = signal.getsignal(TERM)
        if theirs is None:
            return "sigterm: it has a handler that is not Python's"
        self._theirs = theirs
        self._installed = True
        signal.signal, signal.getsignal = self._signal, self._getsignal
        self._set_handler()
        self._watch()
        _tell_of_forks(self)
        return ""

    def remove(self) -> None:
        """Leave everything as the workload has it."""
        if not self._installed or os.getpid() != self._pid:
            return
        self._installed = False
        self._restore()
        if self._pipe is not None and self._watcher is not None:
            os.write(self._pipe[1], b"\0")  # the watching thread reads it, and closes the pipe
            self._watcher.join(STUCK_SECONDS)

    # --- what the workload calls -----------------------------------------------------------------------------------

    def _signal(self, signalnum: Any, handler: Any) -> Any:
        """`signal.signal`: the workload's handler of SIGTERM is kept, and called after ours."""
        if signalnum != TERM or not self._installed:
            return self._original[0](signalnum, handler)
        self._original[0](TERM, handler)  # raises what it would raise
        before, self._theirs = self._theirs, self._original[1](TERM)
        self._set_handler()
        return before

    def _getsignal(self, signalnum: Any) -> Any:
        return self._theirs if signalnum == TERM and self._installed else self._original[1](signalnum)

    def _set_handler(self) -> None:
        if self._theirs is not signal.SIG_IGN:  # a signal that is ignored ends nothing
            self._original[0](TERM, self._arrived)

    def _restore(self) -> None:
        if signal.signal == self._signal:
            signal.signal, signal.getsignal = self._original
        if threading.current_thread() is threading.main_thread():
            if self._original[1](TERM) == self._arrived:
                self._original[0](TERM, self._theirs)
            self._give_wakeup_back()

    def _give_wakeup_back(self) -> None:
        if self._pipe is not None:
            before = signal.set_wakeup_fd(-1)
            if before not in (-1, self._pipe[1]):  # the workload has set its own in the meantime
                signal.set_wakeup_fd(before)

    # --- when it comes ---------------------------------------------------------------------------------------------

    def _arrived(self, signalnum: int, frame: FrameType | None) -> None:
        self._heard += 1
        if not self._acted and _is_busy(frame) and self._again < MAX_AGAIN:
            self._again += 1
            _thread.start_new_thread(self._send_again, ())  # `threading` has locks that the main thread may hold
            return
        self._act_once()
        if callable(self._theirs):
            self._theirs(signalnum, frame)
        else:
            self._original[0](TERM, signal.SIG_DFL)
            os.kill(os.getpid(), TERM)

    def _act_once(self) -> None:
        if not self._acted and os.getpid() == self._pid:
            self._acted = True
            self._act()

    def _send_again(self) -> None:
        self._clock.sleep(AGAIN_SECONDS)
        os.kill(self._pid, TERM)

    # --- where the main thread is stuck ----------------------------------------------------------------------------

    def _watch(self) -> None:
        read, write = os.pipe()
        os.set_blocking(write, False)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        if before != -1:  # the workload's: it stays the workload's, and nobody watches
            signal.set_wakeup_fd(before)
            os.close(read)
            os.close(write)
            return
        self._pipe = (read, write)
        self._watcher = threading.Thread(target=self._wait, name="paritrace-termination", daemon=True)
        self._watcher.start()

    def _wait(self) -> None:
        assert self._pipe is not None
        read, write = self._pipe
        came = os.read(read, 512)
        while b"\0" not in came:  # what `remove` writes; signals have numbers from 1
            if TERM in came and not self._is_alive():
                self._end_stuck()
            came = os.read(read, 512)
        os.close(read)
        os.close(write)

    def _is_alive(self) -> bool:
        """Whether the main thread runs the handler in time."""
        before, deadline = self._heard, self._clock.monotonic_ns() + int(STUCK_SECONDS * 1e9)
        while self._clock.monotonic_ns() < deadline:
            if self._heard != before or self._acted:
                return True
            self._clock.sleep(POLL_SECONDS)
        return False

    def _end_stuck(self) -> None:
        """The main thread is in a call that does not return: nothing of ours is half done, for ours return."""
        self._act_once()
        if not callable(self._theirs) and self._theirs is not signal.SIG_IGN:
            ctypes.CDLL(None).signal(int(TERM), None)  # Python sets handlers on the main thread only
            os.kill(os.getpid(), TERM)

    def in_child(self) -> None:
        """A forked child has the workload's handler, and no thread of ours."""
        if not self._installed:
            return
        self._installed = False
        self._restore()
        if self._pipe is not None:
            for end in self._pipe:
                os.close(end)
            self._pipe = None


def _is_busy(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename in _BUSY:
            return True
        frame = frame.f_back
    return False


_watching: weakref.WeakSet[Termination] = weakref.WeakSet()
_forks_are_told = False


def _tell_of_forks(termination: Termination) -> None:
    """Registered with the interpreter once, since it cannot be undone."""
    global _forks_are_told
    _watching.add(termination)
    if not _forks_are_told:
        _forks_are_told = True
        os.register_at_fork(after_in_child=_child)


def _child() -> None:
    for termination in list(_watching):
        termination.in_child()

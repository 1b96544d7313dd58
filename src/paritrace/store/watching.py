"""A deadline for a target that does not answer: it is watched while a thread of its own waits for it (ST-16, P5)."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

from paritrace.errors import HostError, Outcome
from paritrace.store.targets import Entry, Put, Target
from paritrace.store.throttle import Throttle

STUCK_SECONDS = 660.0  # longer than an upload of the node's other ranks is waited for; a hung mount says nothing itself
LOOK_SECONDS = 0.2  # so late an end is seen; a stopped process counts one look, however long it was stopped
Result = TypeVar("Result")


class Step:
    """One thing that is waited for; every next one is another object."""

    def __init__(self, what: str) -> None:
        self.what = what


class Watch:
    """What the target is asked for at the moment. One thread works, another one looks at `step`."""

    def __init__(self) -> None:
        self.step: Step | None = None

    @contextmanager
    def waiting(self, what: str) -> Generator[None, None, None]:
        """The target has to answer meanwhile."""
        self.step = Step(what)
        try:
            yield
        finally:
            self.step = None

    @contextmanager
    def resting(self) -> Generator[None, None, None]:
        """It is not the target that is waited for; afterwards it is again, from the beginning."""
        before, self.step = self.step, None
        try:
            yield
        finally:
            self.step = None if before is None else Step(before.what)


class WatchedTarget:
    """A target whose every answer is watched; as `Target` says in all else."""

    def __init__(self, target: Target, watch: Watch) -> None:
        self._target = target
        self._watch = watch

    @property
    def label(self) -> str:
        return self._target.label

    def list(self, prefix: str, /) -> Iterator[Entry]:
        """As `Target` says."""
        return _watched_items(self._target.list(prefix), self._watch, f"list {self.label}")

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        """As `Target` says; waiting for the rate is not waiting for the target."""
        paced = _Resting(throttle, self._watch)
        with self._watch.waiting(f"publish {name}"):
            return self._target.put_if_absent(name, source, sha256=sha256, throttle=paced, checksum=checksum)

    def read(self, name: str, /) -> Iterator[bytes]:
        """As `Target` says."""
        return _watched_items(self._target.read(name), self._watch, f"read {name}")

    def drop_leftovers(self, folder: str, /) -> None:
        """As `Target` says."""
        with self._watch.waiting(f"remove the leftovers of {folder}"):
            self._target.drop_leftovers(folder)

    def probe(self) -> None:
        """As `Target` says."""
        with self._watch.waiting(f"try {self.label} out"):
            self._target.probe()


class _Resting(Throttle):
    def __init__(self, throttle: Throttle, watch: Watch) -> None:
        super().__init__(None)
        self._inner = throttle
        self._watch = watch

    def take(self, num_bytes: int) -> None:
        with self._watch.resting():
            self._inner.take(num_bytes)


Item = TypeVar("Item")


def _watched_items(items: Iterator[Item], watch: Watch, what: str) -> Iterator[Item]:
    while True:
        with watch.waiting(what):
            item = next(items, None)
        if item is None:
            return
        yield item


class _Work(Generic[Result]):
    """An act in a thread of its own, which the end of the process does not wait for."""

    def __init__(self, act: Callable[[], Result]) -> None:
        self._act = act
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self.thread = Thread(target=self._run, name="paritrace-watched", daemon=True)

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._act())
        except BaseException as error:  # noqa: BLE001  the thread that waits raises it
            self._error = error


def watched(act: Callable[[], Result], watch: Watch, *, seconds: float = STUCK_SECONDS) -> Result:
    """Return what `act` returns, or raise what it raises; give it up when one step of the target does not end.

    The thread of what was given up stays behind: while the kernel keeps it, only the end of the process ends it.

    Raises:
        HostError: Failed, code `sync_stuck`.
    """
    work = _Work(act)
    work.thread.start()
    silent, last = 0.0, None
    while True:
        work.thread.join(LOOK_SECONDS)
        if not work.thread.is_alive():
            return work.result()
        now = watch.step
        silent = silent + LOOK_SECONDS if now is not None and now is last else 0.0
        last = now
        if now is not None and silent >= seconds:
            raise HostError(
                f"{now.what}: no answer for {seconds:g} s",
                code="sync_stuck",
                fix="see whether the target is mounted and answers; `paritrace store sync --final` publishes the rest",
                outcome=Outcome.FAILED,
            )

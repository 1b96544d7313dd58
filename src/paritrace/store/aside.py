"""SHA-256 of bytes while they are read, in a thread of its own: hashing lets go of the interpreter (ADR 0054)."""

import hashlib
from queue import SimpleQueue
from threading import BoundedSemaphore, Thread
from types import TracebackType

Buffer = bytes | memoryview

BATCH_BYTES = 1 << 18  # so much is handed over at once; less than this altogether is hashed where it is
_NUM_WAITING = 3  # batches in memory that are not hashed yet


class AsideDigest:
    """Takes bytes in order, which nobody changes afterwards. The block that opens it owns its thread.

    `hexdigest` is asked once, after the last bytes.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._batch: list[Buffer] = []
        self._size = 0
        self._queue: SimpleQueue[list[Buffer]] = SimpleQueue()
        self._room = BoundedSemaphore(_NUM_WAITING)
        self._thread: Thread | None = None

    def __enter__(self) -> "AsideDigest":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._finish()

    def update(self, data: Buffer) -> None:
        """Take more bytes; waits where hashing is far behind, which bounds the memory."""
        self._batch.append(data)
        self._size += len(data)
        if self._size >= BATCH_BYTES:
            self._hand_over()

    def hexdigest(self) -> str:
        """Return the digest of everything that was taken."""
        self._finish()
        return self._digest.hexdigest()

    def _hand_over(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="paritrace-sha256", daemon=True)
            self._thread.start()
        self._room.acquire()
        self._queue.put(self._batch)
        self._batch, self._size = [], 0

    def _finish(self) -> None:
        rest, self._batch, self._size = self._batch, [], 0
        if self._thread is not None:
            self._queue.put([])
            self._thread.join()  # ends: at most three batches are left to hash
            self._thread = None
        for data in rest:
            self._digest.update(data)

    def _work(self) -> None:
        while batch := self._queue.get():
            for data in batch:
                self._digest.update(data)
            self._room.release()

"""Any order of writing, rotating, replacing, removing, syncing and being killed: what is published is true (ST-15).

A model keeps what each journal was flushed with. After every step: bundles are 1 to n in one chain, what the segments
of a stream join to is a beginning of what its file held and ends in a newline, and the checkpoint is not ahead. A final
sync has everything complete exactly once.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paritrace.errors import ParitraceError
from paritrace.store.checkpoint import FORMAT as CHECKPOINT_FORMAT
from paritrace.store.checkpoint import Checkpoint
from paritrace.store.documents import read_canonical
from paritrace.store.verifying import StoreVerdict, verify_store
from paritrace.testing.faults import Fault, FaultyFiles, Stopped
from tests.store.places import Place
from tests.store.reading import streams

pytestmark = pytest.mark.slow
NAMES = ("a.jsonl", "b.jsonl", "deep/c.ndjson")
BATCH_BYTES = 60  # several syncs per journal, and records that are larger


class Publishing(RuleBasedStateMachine):
    """`held`: everything that the file of each inode and life was ever flushed with, newest last."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="paritrace-model-"))
        self.place = Place(self.folder)
        self.lives: list[bytes] = []
        self.alive: dict[str, int] = {}
        self.number = 0
        self.rewritten = False

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize()
    def first(self) -> None:
        self.write("a.jsonl", b"")

    def write(self, name: str, data: bytes) -> None:
        if name not in self.alive:
            self.alive[name] = len(self.lives)
            self.lives.append(b"")
        self.lives[self.alive[name]] += data
        self.place.append(name, data)

    def record(self) -> bytes:
        self.number += 1
        return b'{"n":%d}' % self.number

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 6))
    def append(self, name: str, count: int) -> None:
        self.write(name, b"".join(self.record() + b"\n" for _ in range(count)))

    @rule(name=st.sampled_from(NAMES))
    def begin_a_line(self, name: str) -> None:
        self.write(name, self.record())

    @rule(name=st.sampled_from(NAMES), size=st.sampled_from([58, 59, 60, 61]))
    def long_record(self, name: str, size: int) -> None:
        self.write(name, b"x" * size + b"\n")

    @rule(name=st.sampled_from(NAMES), keep=st.floats(0, 0.9))
    def truncate(self, name: str, keep: float) -> None:
        if name in self.alive:
            held = self.lives[self.alive[name]]
            cut = held[: int(len(held) * keep)]
            with (self.place.originals / name).open("r+b") as file:
                file.truncate(len(cut))
            self.new_life(name, cut)

    @rule(name=st.sampled_from(NAMES))
    def truncate_and_regrow_past_the_end(self, name: str) -> None:
        if name in self.alive:
            held = len(self.lives[self.alive[name]])
            data = b""
            while len(data) <= held:
                data += self.record() + b"\n"
            with (self.place.originals / name).open("r+b") as file:
                file.truncate(0)
                file.write(data)
            self.new_life(name, data)

    @rule(name=st.sampled_from(NAMES))
    def copy_and_truncate(self, name: str) -> None:
        if name in self.alive:
            copy = f"{name}.{len(self.lives)}"
            self.write(copy, self.lives[self.alive[name]])
            with (self.place.originals / name).open("r+b") as file:
                file.truncate(0)
            self.new_life(name, b"")

    @rule(name=st.sampled_from(NAMES))
    def rotate_by_renaming(self, name: str) -> None:
        if name in self.alive:
            new = f"{name}.{len(self.lives)}"
            (self.place.originals / name).rename(self.place.originals / new)
            self.alive[new] = self.alive.pop(name)

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 4))
    def replace_atomically(self, name: str, count: int) -> None:
        if name in self.alive:
            data = b"".join(self.record() + b"\n" for _ in range(count))
            beside = self.place.write(".paritrace-beside.tmp", data)
            beside.rename(self.place.originals / name)
            self.new_life(name, data)

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name in self.alive:
            (self.place.originals / name).unlink()
            del self.alive[name]

    def new_life(self, name: str, data: bytes) -> None:
        self.alive[name] = len(self.lives)
        self.lives.append(data)

    @rule(final=st.booleans())
    def sync(self, final: bool) -> None:
        if final:
            self.place.final(batch_bytes=BATCH_BYTES)
        else:
            self.place.once(batch_bytes=BATCH_BYTES)

    @rule(at=st.integers(25, 80), fault=st.sampled_from([Fault.STOP, Fault.DONE_THEN_STOP, Fault.TEAR_AND_STOP]))
    def killed_sync(self, at: int, fault: Fault) -> None:
        """A sync with something to publish has some eighty operations; the first 27 only read."""
        self.write("a.jsonl", self.record() + b"\n")
        files = FaultyFiles(at=at, fault=fault)
        try:
            self.place.syncer(files=files, batch_bytes=BATCH_BYTES).once()
        except (Stopped, ParitraceError):
            pass
        finally:
            files.faulty.release()

    @invariant()
    def published_is_a_true_prefix(self) -> None:
        for stream in self.published().values():
            assert stream.endswith(b"\n") or not stream
            assert any(life.startswith(stream) for life in self.lives)
        sequences = [name.sequence for name in self.place.bundles()]
        assert sequences == list(range(1, len(sequences) + 1))
        if self.place.staged.checkpoint.exists():
            data = self.place.staged.checkpoint.read_bytes()
            checkpoint = read_canonical(data, Checkpoint, format_name=CHECKPOINT_FORMAT, name="checkpoint")
            assert checkpoint.progress.bundles <= len(sequences)

    def published(self) -> dict[tuple[str, int], bytes]:
        return streams(self.place) if self.place.store.exists() else {}

    @precondition(lambda self: bool(self.alive))
    @rule()
    def everything_complete_is_there_once(self) -> None:
        report = self.place.final(batch_bytes=BATCH_BYTES)
        assert report.waiting_bytes == 0
        published = sorted(stream for stream in self.published().values())
        for index in self.alive.values():
            whole = complete(self.lives[index])
            assert whole in published
        if published:
            assert verify_store(self.place.target()).verdict is StoreVerdict.INTACT


def complete(data: bytes) -> bytes:
    """The records of a journal up to the first that is larger than a bundle, where it stops."""
    taken = b""
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n") or len(line) > BATCH_BYTES:
            break
        taken += line
    return taken


TestPublishing = Publishing.TestCase
TestPublishing.settings = settings(
    max_examples=10, stateful_step_count=16, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)

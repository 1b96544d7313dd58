"""Real kill -9 of the syncing process while a writer appends all the time: nothing flushed lost, none twice (ST-15)."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paritrace.store.verifying import StoreVerdict, verify_store
from tests.store.drilling import JOURNAL, check_visible, record
from tests.store.places import Place
from tests.store.reading import streams

KILLS = 200
START_SECONDS = 120.0
SYNCING = """
import os, sys
from pathlib import Path
from paritrace.store.layout import StagedRank
from paritrace.store.syncing import Host, Syncer, SyncSettings
from paritrace.store.targets.directory import DirectoryTarget
from paritrace.store.throttle import Throttle
from tests.store.places import process_of
place = StagedRank(Path(sys.argv[1]), "r", "n0", 0)
target = DirectoryTarget(Path(sys.argv[2]))
parent = os.getpid()
while line := sys.stdin.readline():  # one child for each line, so that a kill costs no start of an interpreter
    child = os.fork()
    if child == 0:
        host, settings = Host(process=process_of()), SyncSettings(batch_bytes=4000)
        os.write(1, b"begun\\n")
        while os.getppid() == parent:
            Syncer(place, target, host=host, throttle=Throttle(None), settings=settings).once()
    os.write(1, b"%d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"ended\\n")
"""


class Writer(threading.Thread):
    """Appends records one by one until it is told to end; `told` is what was flushed."""

    def __init__(self, place: Place) -> None:
        super().__init__(daemon=True)
        self.ending = threading.Event()
        self.told = 0
        self._place = place

    def run(self) -> None:
        path = self._place.originals / JOURNAL
        with path.open("ab", buffering=0) as file:
            while not self.ending.wait(0.0005):
                file.write(record(self.told))
                self.told += 1


def wait_for_more(place: Place, published: int) -> None:
    """Until a bundle more is there: kills alone would leave no time for any on a busy machine."""
    until = time.monotonic() + START_SECONDS
    while len(place.bundles()) <= published:
        assert time.monotonic() < until, "nothing is published"
        time.sleep(0.001)


@contextmanager
def syncing(place: Place) -> "Generator[subprocess.Popen[bytes], None, None]":
    command = [sys.executable, "-c", SYNCING, str(place.staged.staging), str(place.store)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env=environment) as child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    place = Place(tmp_path)
    writer = Writer(place)
    with syncing(place) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        writer.start()
        for number in range(KILLS):
            child.stdin.write(b"go\n")
            child.stdin.flush()
            told = {child.stdout.readline(), child.stdout.readline()}
            (pid,) = (int(line) for line in told if line != b"begun\n")
            published = len(place.bundles())
            if number % 6 == 0:
                wait_for_more(place, published)
            writer.ending.wait(0.0005 * (number % 60))  # kills fall on every part of a sync
            os.kill(pid, signal.SIGKILL)
            assert child.stdout.readline() == b"ended\n"
            assert len(place.bundles()) >= published
            if number % 20 == 0:
                check_visible(place)
    writer.ending.set()
    writer.join(timeout=60)
    assert writer.told > KILLS
    place.final()
    assert streams(place)[JOURNAL, 1] == b"".join(map(record, range(writer.told)))
    assert verify_store(place.target()).verdict is StoreVerdict.INTACT
    assert len(place.bundles()) > 20

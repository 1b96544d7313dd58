"""PF-15: a snapshot of a process tree, against psutil, among 100 and 5,000 other processes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from benchmarks.measuring import Cost, Row, in_turn, print_table
from paritrace.process.observing import TreeObserver, observed_host, this_machine
from paritrace.process.resources import ResourceSnapshot

MEMBERS = 10  # a host, as a test runner or a training rank has, with its workers
FEW, MANY = 100, 5000
CALLS = 10
OURS, PSUTIL = "paritrace", "psutil"

FORKS = """
import os, signal
for _ in range({count}):
    if os.fork() == 0:
        signal.pause()
print(flush=True)
signal.pause()
"""


@contextmanager
def processes(count: int) -> Iterator[int]:
    """One process that has forked so many; they sleep, and end with it."""
    program = [sys.executable, "-S", "-E", "-c", FORKS.format(count=count)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        children = psutil.Process(parent.pid).children()
        yield parent.pid
        for child in children:
            child.kill()
        parent.kill()


def costs(host: int) -> dict[str, Cost]:
    """What one look at the tree of `host` costs."""
    table = this_machine()
    watching = TreeObserver(table, observed_host(table, host, subject="benchmark"))

    def ours() -> int:
        found = watching.snapshot()
        assert isinstance(found, ResourceSnapshot)
        assert found.process_count == MEMBERS
        return MEMBERS

    def theirs() -> int:
        top = psutil.Process(host)
        members = [top, *top.children(recursive=True)]
        assert sum(member.memory_info().rss for member in members) > 0
        assert len(members) == MEMBERS
        return len(members)

    return in_turn({OURS: ours, PSUTIL: theirs}, calls=CALLS)


def main() -> None:
    """Print the table of PF-15."""
    with processes(MEMBERS - 1) as host:
        with processes(FEW):
            few = costs(host)
        with processes(MANY):
            many = costs(host)
    rows = [
        Row(f"psutil, {FEW} other processes", few[PSUTIL].cpu / few[OURS].cpu, "a snapshot", (">=", 4.0)),
        Row(f"psutil, {MANY} other processes", many[PSUTIL].cpu / many[OURS].cpu, "a snapshot"),
        Row(f"a snapshot among {MANY}", many[OURS].cpu / few[OURS].cpu, f"among {FEW}", ("<=", 1.3)),
        Row(f"psutil among {MANY}", many[PSUTIL].cpu / few[PSUTIL].cpu, f"among {FEW}"),
    ]
    note = f"CPU time; a snapshot of {MEMBERS} processes takes {few[OURS].cpu * 1e3:.2f} ms here."
    print_table("PF-15", rows, (note,))


if __name__ == "__main__":
    main()

"""What a text of `py-spy dump` shows: the frames of each thread, the main one first: pure (RS-13).

Its head names the process with its whole command line, which may hold what is nobody's business, and is not kept (P7).
"""

import re
from collections.abc import Sequence

from msgspec import Struct

MAIN = "MainThread"
_PROCESS = re.compile(r"Process (\d+): ")
_THREAD = re.compile(r"Thread (0x[0-9A-Fa-f]+|\d+)(?: \((?P<state>[^)]*)\))?(?:: \"(?P<name>.*)\")?\s*$")


class StackText(Struct, frozen=True):
    """One dump. `pid` None: the text does not say. `frames`: innermost first, under a line with their thread's name."""

    pid: int | None
    frames: tuple[str, ...]


def stack_text(lines: Sequence[str]) -> StackText | None:
    """Return the threads of a dump; None where this is no text of `py-spy dump`."""
    pid: int | None = None
    threads: list[tuple[str, list[str]]] = []
    for line in lines:
        if (process := _PROCESS.match(line)) is not None:
            pid = int(process.group(1))
        elif (thread := _THREAD.match(line)) is not None:
            state = thread.group("state")
            title = thread.group("name") or thread.group(1)
            threads.append((title, [f"thread {title}" + (f" ({state})" if state else "")]))
        elif threads and line.startswith(" ") and line.strip():
            threads[-1][1].append(line.strip())
    if not threads:
        return None
    ordered = sorted(threads, key=lambda one: one[0] != MAIN)
    return StackText(pid, tuple(line for _, said in ordered for line in said))

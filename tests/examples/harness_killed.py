"""Runs the harness and kills it at one write to its journal: `harness_killed.py N before|torn|after ARG…`."""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import count


def dying(at: int, how: str) -> Callable[[int, bytes], int]:
    number = count(1)

    def write(descriptor: int, data: bytes) -> int:
        if next(number) != at:
            return os.write(descriptor, data)
        if how != "before":
            os.write(descriptor, data if how == "after" else data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return write


if __name__ == "__main__":
    sys.exit(import_module("paritrace_harness.__main__").main(sys.argv[3:], write=dying(int(sys.argv[1]), sys.argv[2])))

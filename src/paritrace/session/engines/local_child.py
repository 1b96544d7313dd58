"""The life of a rank of the engine `local`: bound to its parent, its stacks on a signal, then `serve` (SE-16)."""

import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from paritrace.process.kernel_calls import end_with_parent
from paritrace.session.engines.layout import stacks_path
from paritrace.session.engines.lines import SocketLine
from paritrace.session.engines.seam import RankSpec
from paritrace.session.engines.stacks import dump_on_signal

CHILD = "from paritrace.session.engines.local_child import main; main({descriptor}, {rank}, {parent}, {serve!r})"
"""What the interpreter of a rank is given; the spec stands in its standard input."""


def main(descriptor: int, rank: int, parent: int, serve: str) -> None:
    """Serve as a rank on this, the main thread, until it leaves; does not return."""
    _end_with(parent)
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=RankSpec)
    _close_stdin()
    dump_on_signal(stacks_path(spec.directory, spec.generation, rank))
    line = SocketLine(socket.socket(fileno=os.dup(descriptor)))  # so that the line ends with the process, not before
    sys.exit(called(serve)(line, spec, rank=rank, local_rank=rank))


def called(path: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = path.partition(":")
    return vars(import_module(module))[name]


def _end_with(parent: int) -> None:
    """Be killed when the coordinator's main thread ends; the end of the line is the second guard."""
    with suppress(OSError, AttributeError):  # not Linux
        end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before we asked
        os._exit(1)


def _close_stdin() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

"""The command by which a launcher starts a Python workload on its ranks, with or without paritrace (CA-1)."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct

from paritrace.errors import RequestError

PARITRACE = "paritrace"
SUPPORTED = "torchrun, python -m torch.distributed.run, accelerate launch, deepspeed, srun, mpirun"
_PYTHON = re.compile(r"^python[0-9.]*$")
_TORCHRUN = frozenset({"torch.distributed.run", "torch.distributed.launch"})
_ACCELERATE = frozenset({"accelerate.commands.launch"})
_WITHOUT_PYTHON = frozenset({"srun", "mpirun", "mpiexec"})  # start any program: the interpreter is ours to name
_OWN_TARGET = frozenset({"-m", "--module", "--no-python", "--no_python"})


class Workload(Struct, frozen=True):
    """What the ranks run: a script by its path or, with `module`, a module by its name; and its arguments."""

    name: str
    arguments: tuple[str, ...]
    module: bool


class LauncherCommand(Struct, frozen=True):
    """A launcher as somebody wrote it, split: `head` ends where the Python target begins."""

    head: tuple[str, ...]
    module_flag: str  # how this launcher is told that its target is a module
    local_rank_argument: bool = False  # it gives each rank `--local_rank=N` before the workload's own arguments

    def of(self, workload: Workload) -> tuple[str, ...]:
        """The command that starts the workload without paritrace."""
        flag = (self.module_flag,) if workload.module else ()
        return (*self.head, *flag, workload.name, *workload.arguments)

    def captured(self, workload: Workload, options: Sequence[str]) -> tuple[str, ...]:
        """The command that starts it under `paritrace run OPTIONS`, on each rank."""
        quiet, told = (("--no_local_rank",), ("--local-rank-argument",)) if self.local_rank_argument else ((), ())
        flag = ("--module",) if workload.module else ()
        own = ("run", *options, "--launcher=", *told, *flag, workload.name, *workload.arguments)
        return (*self.head, *quiet, self.module_flag, PARITRACE, *own)


def launcher_command(text: str, *, python: str) -> LauncherCommand:
    """Split a launcher as written on a command line.

    Args:
        python: the interpreter for launchers that start any program.

    Raises:
        RequestError: Refused, code `bad_launcher`: no words, a quote that does not end, a launcher that is not known,
            or one that names a script or module of its own.
    """
    words = _words(text)
    name = PurePath(words[0]).name
    rest = words[1:]
    if name == "torchrun":
        return _python_launcher(words, rest, flag="-m")
    if name == "accelerate" and rest[:1] == ["launch"]:
        return _python_launcher(words, rest[1:], flag="-m")
    if name == "deepspeed":
        made = _python_launcher(words, rest, flag="--module")
        return LauncherCommand(made.head, made.module_flag, local_rank_argument="--no_local_rank" not in rest)
    if name in _WITHOUT_PYTHON:
        return _any_program(words, python=python)
    if _PYTHON.match(name):
        return _by_module(words)
    raise _bad(f"{words[0]!r} is not a launcher that is known", f"use one of {SUPPORTED}")


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _bad(f"{text!r} cannot be read: {str(error).lower()}", "close every quote in it") from None
    if not words or not words[0]:
        raise _bad("it is empty", f"name one of {SUPPORTED}")
    if any("\0" in word for word in words):
        raise _bad("it holds a zero byte", "leave it out")
    return words


def _by_module(words: list[str]) -> LauncherCommand:
    """`python [options] -m torch.distributed.run …`."""
    at = words.index("-m") if "-m" in words else len(words)
    module = words[at + 1] if at + 1 < len(words) else ""
    if module in _TORCHRUN or module in _ACCELERATE:
        return _python_launcher(words, words[at + 2 :], flag="-m")
    raise _bad(f"{module or words[0]!r} is not a launcher that is known", f"use one of {SUPPORTED}")


def _python_launcher(words: list[str], options: list[str], *, flag: str) -> LauncherCommand:
    own = next((word for word in options if word in _OWN_TARGET), None)
    if own is not None:
        raise _bad(f"it has {own}, and what it starts is the workload", _MOVE)
    _refuse_script(options)
    return LauncherCommand(tuple(words), flag)


def _any_program(words: list[str], *, python: str) -> LauncherCommand:
    _refuse_script(words[1:])
    has_python = len(words) > 1 and _PYTHON.match(PurePath(words[-1]).name) is not None
    return LauncherCommand(tuple(words) if has_python else (*words, python), "-m")


def _refuse_script(options: list[str]) -> None:
    if options and options[-1].endswith(".py"):
        raise _bad(f"it names the script {options[-1]}", _MOVE)


_MOVE = "give the script, or -m MODULE, after the options of `paritrace run`, outside of --launcher"


def _bad(what: str, fix: str) -> RequestError:
    return RequestError(f"--launcher cannot be used: {what}", code="bad_launcher", fix=fix)

"""The life of a forked child as the Python program that it stands for, from its arguments to its exit status."""

import atexit
import importlib
import io
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import NoReturn

from benchmarks.warm.client import FLAGS


def become(arguments: Sequence[str], *, environment: Mapping[str, str], executable: str) -> NoReturn:
    """Be `EXECUTABLE ARGUMENTS`, in the working directory and with the open files that this process has now."""
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    words = list(arguments)
    while words[0] in FLAGS:
        _follow(words.pop(0))
    sys.executable = executable
    sys.orig_argv = [executable, *arguments]
    main = sys.modules["__main__"] = ModuleType("__main__")
    _seed()
    importlib.invalidate_caches()
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        end(lambda: runpy._run_module_as_main(words[1]))  # type: ignore[attr-defined]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        end(lambda: exec(compile(words[1], "<string>", "exec", dont_inherit=True), main.__dict__))
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
    end(lambda: _run_script(os.path.abspath(words[0]), main))


def _follow(flag: str) -> None:
    if flag == "-B":
        sys.dont_write_bytecode = True
    else:
        for name, file in (("stdout", 1), ("stderr", 2)):
            raw = open(file, "wb", buffering=0, closefd=False)  # noqa: SIM115  as long as the process
            setattr(sys, name, io.TextIOWrapper(raw, write_through=True))


def _seed() -> None:
    """A process that begins draws its seeds; Python's own generator does so after a fork."""
    import numpy as np
    import torch

    np.random.seed()
    torch.default_generator.seed()


def _run_script(path: str, main: ModuleType) -> None:
    from importlib.machinery import SourceFileLoader

    main.__dict__.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def end(run: Callable[[], object]) -> NoReturn:
    """Run it, then do what the interpreter does at its end."""
    status = 1
    try:
        status = _status_of(run)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        if status < 0:
            signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
    finally:
        os._exit(status)


def _status_of(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return (stop.code or 0) & 0xFF
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException as error:  # noqa: BLE001  the interpreter prints it
        ours = {__file__}
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in ours:
            frames = frames.tb_next
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0

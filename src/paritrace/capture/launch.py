"""Running somebody's script or module as `__main__`, for good, as the interpreter itself would (CA-18)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import cast

from paritrace.errors import RequestError

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True, kw_only=True)
class Target:
    """A workload that is found and compiled, but not yet run."""

    code: CodeType
    source: bytes
    path: Path
    spec: importlib.machinery.ModuleSpec | None  # None for a script, as the interpreter has it
    package: str | None
    argv: tuple[str, ...]
    search_path: str


def find_script(script: str, arguments: tuple[str, ...]) -> Target:
    """A script by its path. Raises `RequestError` (Refused) when it is missing, unreadable or no Python."""
    path = Path(script).absolute()
    if path.is_dir():
        path = path / "__main__.py"
    try:
        source = path.read_bytes()
    except OSError as error:
        raise RequestError(
            f"cannot read the script {script}: {error.strerror}", code="no_script", fix="give the path of a Python file"
        ) from None
    return Target(
        code=_compiled(source, path, script),
        source=source,
        path=path,
        spec=None,
        package=None,
        argv=(script, *arguments),
        search_path=str(path.parent) if Path(script).is_dir() else os.path.dirname(os.path.realpath(path)),
    )


def find_module(name: str, arguments: tuple[str, ...]) -> Target:
    """A module as `python -m NAME` finds it. Raises `RequestError` (Refused) when there is none."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise RequestError(f"cannot import {name}: {error}", code="no_module", fix="check the name after -m") from None
    finally:
        sys.path.pop(0)
    if spec is None or spec.origin is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        raise RequestError(f"no Python module {name} to run", code="no_module", fix="check the name after -m")
    path = Path(spec.origin).absolute()
    source = path.read_bytes()
    return Target(
        code=_compiled(source, path, name),
        source=source,
        path=path,
        spec=spec,
        package=spec.parent,
        argv=(str(path), *arguments),
        search_path=os.getcwd(),
    )


def run(target: Target, *, failing: Callable[[str], None] | None = None) -> int:
    """Become the workload and run it to its end; returns its exit status. `SystemExit` and errors end here.

    `failing` is told of an end that is no success before anybody is shown it: the error's class, or the exit status.
    """
    main = ModuleType("__main__")
    main.__file__ = str(target.path)
    main.__spec__ = target.spec
    main.__package__ = target.package
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", str(target.path))
    vars(main)["__cached__"] = None
    vars(main)["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    sys.argv = list(target.argv)
    if not sys.flags.safe_path:
        sys.path[0:1] = [target.search_path]
    try:
        exec(target.code, vars(main))  # noqa: S102  running the workload is what was asked for
    except SystemExit as stop:
        status = exit_status(stop)
        if status and failing is not None:
            failing(f"exit status {status}")
        return status
    except BaseException as error:  # noqa: BLE001  shown as the interpreter would show it
        uncaught = error
    else:
        return 0
    if failing is not None:
        failing(type(uncaught).__name__)
    return _shown(uncaught)  # outside of the handler: it is over for the workload's hook, too


def _shown(error: BaseException) -> int:
    """Show an error that nobody caught, and return the status; what the workload's hook does, it does."""
    hide_own_frames(error)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as stop:
        return exit_status(stop)
    except BaseException as second:  # noqa: BLE001  shown as the interpreter would show it
        second.__traceback__ = without_own_frames(second.__traceback__)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def exit_status(stop: SystemExit) -> int:
    """The status that the interpreter would end with for this `SystemExit`, its message printed as it would be."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def hide_own_frames(error: BaseException) -> None:
    """Take the frames of this package out of an error's traceback and out of those of the errors it came from."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = without_own_frames(one.__traceback__)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += cast(BaseExceptionGroup[BaseException], one).exceptions


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package, in place."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN):
        trace = trace.tb_next
    entry = trace
    while entry is not None:
        following = entry.tb_next
        while following is not None and following.tb_frame.f_code.co_filename.startswith(_OWN):
            following = following.tb_next
        entry.tb_next = following
        entry = following
    return trace


def _compiled(source: bytes, path: Path, name: str) -> CodeType:
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise RequestError(
            f"{name} is not valid Python: {error}", code="bad_script", fix="run it without paritrace"
        ) from None

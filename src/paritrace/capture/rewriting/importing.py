"""Rewriting chosen files as they are imported: a finder before the others, a loader that keeps no bytecode (CA-10).

Only files that Python's own path finder and source loader would load are rewritten; whatever another finder brings is
left to it. Neither `.py` nor `.pyc` files are written, and none of the latter is read for a rewritten file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import machinery
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType
from typing import Any

from paritrace.capture.rewriting.tree import CallExpression, Rewritten, Sites, rewritten

NESTED = "nested too deeply"


def _all(_path: str, _source: bytes) -> Sites:
    return None


@dataclass(frozen=True, kw_only=True)
class RewrittenSource:
    """A file that was rewritten: the text that was compiled, and what it became."""

    path: str
    source: bytes
    code: CodeType
    made: Rewritten


# Of the process, not of one capture: code that was rewritten stays loaded, and later captures hear of it, too.
_calls: list[CallExpression] = []
_files: dict[str, RewrittenSource] = {}
_lock = threading.Lock()


def rewritten_before() -> tuple[RewrittenSource, ...]:
    """Each file that was rewritten in this process, as it was the last time."""
    return tuple(_files.values())


class SourceRewriter:
    """Rewrites the files that `wants` names; tells `seen` of each that was, and `left` of each that was not and why.

    `calls` are the rewritten calls of all files of this process, by their number. `sites` says which calls of a source
    are rewritten: those at these lines and columns, all (None), or none, for the reason given.
    """

    def __init__(
        self,
        *,
        wants: Callable[[str], bool],
        seen: Callable[[RewrittenSource], None],
        left: Callable[[str, str], None],
        sites: Callable[[str, bytes], Sites | str] = _all,
    ) -> None:
        self.calls = _calls
        self._wants = wants
        self._seen = seen
        self._left = left
        self._sites = sites
        self._finder = _Finder(self)

    def install(self) -> None:
        """Rewrite what is imported from now on."""
        sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Rewrite no more; what is loaded stays as it is."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)

    def wants(self, path: str) -> bool:
        """Whether this file is to be rewritten."""
        return self._wants(path)

    def code(self, source: bytes, path: str, *, optimize: int = -1) -> CodeType | None:
        """The code of a rewritten file; None where it cannot be rewritten and is to run as it is."""
        only = self._sites(path, source)
        if isinstance(only, str):
            self._left(path, only)
            return None
        with _lock:
            try:
                made = rewritten(source, path, first=len(_calls), only=only)
                code = compile(made.tree, path, "exec", dont_inherit=True, optimize=optimize)
            except (SyntaxError, ValueError):
                return None  # the interpreter says so itself, in its own words
            except (RecursionError, MemoryError):
                self._left(path, NESTED)
                return None
            _calls.extend(made.calls)
            file = _files[path] = RewrittenSource(path=path, source=source, code=code, made=made)
        self._seen(file)
        return code


class _Finder(MetaPathFinder):
    """Stands before Python's path finder; finds nothing itself."""

    def __init__(self, rewriter: SourceRewriter) -> None:
        self._rewriter = rewriter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        finders = list(sys.meta_path)  # from all of them, where a capture that ended has taken this one out by now
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            find: Any = getattr(finder, "find_spec", None)
            spec: machinery.ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                return self._rewriting(spec, fullname)
        return None

    def _rewriting(self, spec: machinery.ModuleSpec, fullname: str) -> machinery.ModuleSpec:
        found = spec.loader
        if type(found) is machinery.SourceFileLoader and self._rewriter.wants(found.path):
            spec.loader = _Loader(fullname, found.path, self._rewriter)
        return spec


class _Loader(machinery.SourceFileLoader):
    """Python's loader of source files, but for what it compiles."""

    def __init__(self, fullname: str, path: str, rewriter: SourceRewriter) -> None:
        super().__init__(fullname, path)
        self._rewriter = rewriter

    def path_stats(self, path: Any) -> Any:
        """Without a time of change, no bytecode is looked for and none is kept."""
        raise OSError("a rewritten file has no bytecode file")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        code = self._rewriter.code(data, str(path), optimize=_optimize)
        return super().source_to_code(data, path, _optimize=_optimize) if code is None else code

"""Rewriting chosen files as they are imported: a finder before the others, a loader that keeps no bytecode (CA-10).

Only files that Python's own path finder and source loader would load are rewritten; whatever another finder brings is
left to it. Neither `.py` nor `.pyc` files are written, and none of the latter is read for a rewritten file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import machinery
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType
from typing import Any

from paritrace.capture.rewriting.tree import CallExpression, Rewritten, rewritten

NESTED = "nested too deeply"


class SourceRewriter:
    """Rewrites the files that `wants` names, and tells `seen` of each: its path, and what it became or why not.

    `calls` are the rewritten calls of all files, by their number.
    """

    def __init__(self, *, wants: Callable[[str], bool], seen: Callable[[str, Rewritten | str], None]) -> None:
        self.calls: list[CallExpression] = []
        self._wants = wants
        self._seen = seen
        self._lock = threading.Lock()
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
        with self._lock:
            try:
                made = rewritten(source, first=len(self.calls))
                code = compile(made.tree, path, "exec", dont_inherit=True, optimize=optimize)
            except (SyntaxError, ValueError):
                return None  # the interpreter says so itself, in its own words
            except RecursionError:
                self._seen(path, NESTED)
                return None
            self.calls += made.calls
        self._seen(path, made)
        return code


class _Finder(MetaPathFinder):
    """Stands before Python's path finder; finds nothing itself."""

    def __init__(self, rewriter: SourceRewriter) -> None:
        self._rewriter = rewriter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
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

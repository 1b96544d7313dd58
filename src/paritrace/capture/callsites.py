"""Level `callsite` of one capture: which files are rewritten as they are loaded, and what the journal says of it."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from paritrace.capture.launch import Target
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting import probes
from paritrace.capture.rewriting.importing import SourceRewriter
from paritrace.capture.rewriting.tree import CallExpression, Rewritten
from paritrace.evidence.callsites import RewrittenFile

NOT_BY_US = "loaded before the capture began, or by an import system of its own"


class CallSites:
    """Rewrites the workload's own files, and those named by `callsite_files`, in memory; writes no file (CA-10)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patterns = recorder.settings.callsite_files
        self._told: set[str] = set()
        self._rewriter = SourceRewriter(wants=self._wants, seen=self._seen)

    @property
    def expressions(self) -> list[CallExpression]:
        """The rewritten calls by their number; grows with every file."""
        return self._rewriter.calls

    def install(self) -> None:
        """Rewrite from now on. Until an observer listens, rewritten code does what it did."""
        probes.be_silent()
        self._rewriter.install()

    def remove(self) -> None:
        """Rewrite no more, and name the workload's files that were loaded without."""
        self._rewriter.remove()
        probes.be_silent()
        for file, digest in sorted(self._recorder.sites.workload_files().items()):
            if file not in self._told:
                self._recorder.emit(RewrittenFile(file, digest, 0, reason=NOT_BY_US))

    def main(self, target: Target) -> Target:
        """The workload with its main script rewritten."""
        code = self._rewriter.code(target.source, str(target.path))
        return target if code is None else replace(target, code=code)

    def _wants(self, path: str) -> bool:
        sites = self._recorder.sites
        return sites.is_workload(path) or any(fnmatchcase(sites.spelled(path), one) for one in self._patterns)

    def _seen(self, path: str, made: Rewritten | str) -> None:
        sites = self._recorder.sites
        file = sites.spelled(path)
        self._told.add(file)
        if isinstance(made, str):
            record = RewrittenFile(file, sites.digest(path), 0, reason=made)
        else:
            record = RewrittenFile(file, sites.digest(path), len(made.calls), made.left_alone)
        self._recorder.emit(record)

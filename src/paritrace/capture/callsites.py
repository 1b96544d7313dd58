"""Level `callsite` of one capture: which files are rewritten as they are loaded, and what the journal says of it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fnmatch import fnmatchcase

from paritrace.capture.launch import Target
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting import probes
from paritrace.capture.rewriting.importing import RewrittenSource, SourceRewriter, rewritten_before
from paritrace.capture.rewriting.tree import CallExpression
from paritrace.evidence.callsites import RewrittenFile

NOT_BY_US = "loaded before the capture began, or by an import system of its own"
EXCLUDED = "excluded"
NO_SOURCE = "not a source file"


class CallSites:
    """Rewrites the workload's own files, and those named by `callsite_files`, in memory; writes no file (CA-10)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patterns = recorder.settings.callsite_files
        self._told: set[str] = set()
        self._rewriter = SourceRewriter(wants=self._wants, seen=self._seen, left=self._left)

    @property
    def expressions(self) -> list[CallExpression]:
        """The rewritten calls by their number; grows with every file."""
        return self._rewriter.calls

    def install(self) -> None:
        """Rewrite from now on. Until an observer listens, rewritten code does what it did.

        Files that a capture before this one rewrote are observed as well.
        """
        probes.be_silent()
        for file in rewritten_before():
            if self._wants(file.path):
                self._seen(file)
        self._rewriter.install()

    def remove(self) -> None:
        """Rewrite no more, and name the workload's files that were loaded without."""
        self._rewriter.remove()
        probes.be_silent()
        for fact in self._recorder.sites.workload_facts():
            if fact.file not in self._told:
                self._tell(RewrittenFile(fact.file, fact.digest, 0, reason=self._reason(fact.file)))

    def main(self, target: Target) -> Target:
        """The workload with its main script rewritten."""
        path = str(target.path)
        if not self._wants(path):
            return target
        with warnings.catch_warnings(action="ignore"):  # it was compiled once, and has said them
            code = self._rewriter.code(target.source, path)
        return target if code is None else replace(target, code=code)

    def _wants(self, path: str) -> bool:
        sites = self._recorder.sites
        file = sites.spelled(path)
        wanted = sites.is_workload(path) or any(fnmatchcase(file, one) for one in self._patterns)
        return wanted and not self._excludes(file)

    def _excludes(self, file: str) -> bool:
        """Whether no call of a file is wanted, so that it is better left as it is."""
        return self._recorder.settings.selection.excludes_file(file)

    def _reason(self, file: str) -> str:
        """Why a file of the workload was loaded as it is."""
        if self._excludes(file):
            return EXCLUDED
        return NOT_BY_US if file.endswith(".py") or file == "<main>" else NO_SOURCE

    def _seen(self, found: RewrittenSource) -> None:
        digest = self._recorder.sites.compiled(found.path, found.source, found.code)
        made = found.made
        self._tell(RewrittenFile(self._recorder.sites.spelled(found.path), digest, len(made.calls), made.left_alone))

    def _left(self, path: str, reason: str) -> None:
        sites = self._recorder.sites
        self._tell(RewrittenFile(sites.spelled(path), sites.digest(path), 0, reason=reason))

    def _tell(self, record: RewrittenFile) -> None:
        self._told.add(record.file)
        self._recorder.emit(record)

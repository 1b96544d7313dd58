"""Level `callsite` of one capture: which files are rewritten as they are loaded, and what the journal says of it."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from fnmatch import fnmatchcase

from paritrace.capture.launch import Target
from paritrace.capture.plans import PlannedSources, changed_files, source_changed
from paritrace.capture.recorder import Recorder
from paritrace.capture.rewriting import probes
from paritrace.capture.rewriting.importing import RewrittenSource, SourceRewriter, rewritten_before
from paritrace.capture.rewriting.tree import CallExpression, Sites
from paritrace.errors import ParitraceError
from paritrace.evidence.callsites import RewrittenFile
from paritrace.evidence.digests import sha256_hex
from paritrace.runs.request import MAIN

NOT_BY_US = "loaded before the capture began, or by an import system of its own"
EXCLUDED = "excluded"
NO_SOURCE = "not a source file"
NOT_PLANNED = "not in the plan"


class CallSites:
    """Rewrites the workload's own files, and those named by `callsite_files`, in memory; writes no file (CA-10).

    With a plan it is the planned call sites of the planned files, each checked against its digest as it is loaded and
    again at the end (AU-19). `loaded`: the planned files of this process, each with the SHA-256 of what was compiled;
    `not_as_planned`: those that were not what the plan says, each with how.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patterns = recorder.settings.callsite_files
        self._plan = recorder.settings.plan
        self._planned = None if self._plan is None else PlannedSources(self._plan)
        self.loaded: dict[str, str] = {}
        self.not_as_planned: dict[str, str] = {}
        self._told: set[str] = set()
        self._rewriter = SourceRewriter(wants=self._wants, seen=self._seen, left=self._left, sites=self._sites)

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
            if self._wants(file.path) and not isinstance(self._sites(file.path, file.source), str):
                self._seen(file)
        self._rewriter.install()

    def remove(self) -> None:
        """Rewrite no more, name the files that were loaded without, and look at the planned ones again."""
        self._rewriter.remove()
        probes.be_silent()
        for fact in self._recorder.sites.workload_facts():
            if fact.file not in self._told:
                self._tell(RewrittenFile(fact.file, fact.digest, 0, reason=self._reason(fact.file)))
        self._check_again()

    def main(self, target: Target) -> Target:
        """The workload with its main script rewritten."""
        path = str(target.path)
        if not self._wants(path):
            return target
        with warnings.catch_warnings(action="ignore"):  # it was compiled once, and has said them
            code = self._rewriter.code(target.source, path)
        return target if code is None else replace(target, code=code)

    def violation(self, rank: int) -> ParitraceError | None:
        """The failure of this capture, where a planned file was not what the plan says."""
        if not self.not_as_planned:
            return None
        return source_changed(self.not_as_planned, when="was, as it was loaded or at the end,", rank=rank)

    def _wants(self, path: str) -> bool:
        sites = self._recorder.sites
        if self._planned is not None:
            below = sites.below_root(path)
            return below is not None and self._planned.has(below)
        file = sites.spelled(path)
        wanted = sites.is_workload(path) or any(fnmatchcase(file, one) for one in self._patterns)
        return wanted and not self._excludes(file)

    def _excludes(self, file: str) -> bool:
        """Whether no call of a file is wanted, so that it is better left as it is."""
        return self._recorder.settings.selection.excludes_file(file)

    def _sites(self, path: str, source: bytes) -> Sites | str:
        """Which calls of a file are rewritten, or why none is: a planned file that is another one is left as it is."""
        file = self._recorder.sites.below_root(path)
        if self._planned is None or file is None:
            return None
        self.loaded[file] = sha256_hex(source)
        found = self._planned.sites(file, source)
        if isinstance(found, str):
            self.not_as_planned[file] = found
        return found

    def _seen(self, found: RewrittenSource) -> None:
        digest = self._recorder.sites.compiled(found.path, found.source, found.code)
        made = found.made
        self._tell(RewrittenFile(self._recorder.sites.spelled(found.path), digest, len(made.calls), made.left_alone))

    def _left(self, path: str, reason: str) -> None:
        sites = self._recorder.sites
        if self._planned is not None:
            self.not_as_planned.setdefault(sites.below_root(path) or path, reason)
        self._tell(RewrittenFile(sites.spelled(path), sites.digest(path), 0, reason=reason))

    def _reason(self, file: str) -> str:
        """Why a file of the workload was loaded as it is, by its name in evidence."""
        below = file if self._plan is None or file != MAIN else self._plan.main
        if self._planned is not None and not self._planned.has(below):
            return NOT_PLANNED
        if self._planned is None and self._excludes(file):
            return EXCLUDED
        reason = NOT_BY_US if file.endswith(".py") or file == MAIN else NO_SOURCE
        if self._planned is not None:
            self.not_as_planned.setdefault(below, reason)
        return reason

    def _check_again(self) -> None:
        if self._plan is None:
            return
        root = self._recorder.sites.root
        now = {one.file: _bytes_of(os.path.join(root, one.file)) for one in self._plan.files}
        for file, how in changed_files(self._plan, now).items():
            if file not in self.not_as_planned:
                self.not_as_planned[file] = f"at the end: {how}"

    def _tell(self, record: RewrittenFile) -> None:
        self._told.add(record.file)
        self._recorder.emit(record)


def _bytes_of(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None

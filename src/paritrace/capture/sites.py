"""Where a call was made: the frames of a stack become interned sites (CA-4, CA-19 of compare: CP-19, CA-26)."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from paritrace.evidence import calls
from paritrace.evidence.gaps import CaptureGap, Gap


class Region(IntEnum):
    """Whose code a frame runs."""

    INTERNAL = 0  # paritrace, torch, the standard library: never a site
    LIBRARY = 1  # an installed package or code without a file
    WORKLOAD = 2  # under the workload's root, the main script included
    CHECKPOINT = 3  # torch's activation checkpointing: internal, but tells recompute from backward


@dataclass(frozen=True, slots=True)
class Place:
    """The two sites of a call, and whether a checkpoint's recompute lies between the call and its engine."""

    site: int
    workload_site: int
    under_checkpoint: bool


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a file is called in evidence and where its text is."""

    kind: calls.SourceKind
    file: str
    digest: str | Gap[CaptureGap]


class Sites:
    """Interns sites of one session and keeps the text of every file they name until it is taken."""

    def __init__(
        self,
        *,
        root: Path,
        main: str | None,
        emit: Callable[[calls.Definition], None],
        keep_sources: bool,
    ) -> None:
        self._root = str(root) + os.sep
        self._main = main
        self._emit = emit
        self._keep_sources = keep_sources
        self._regions: dict[CodeType, Region] = {}
        self._ids: dict[tuple[CodeType, int], int] = {}
        self._files: dict[str, FileFacts] = {}
        self._texts: dict[str, tuple[str, bytes]] = {}
        self._internal = _internal_prefixes()
        self._spellings: list[str] = []
        if main is not None:
            self._facts(main)
        self.nowhere = self._define(calls.SourceKind.OTHER, "<unknown>", (0, -1), "", Gap(CaptureGap.NOT_OBSERVED))

    def place(self, frame: FrameType | None) -> Place:
        """The sites of a call made by `frame` or one of its callers."""
        regions = self._regions
        site = -1
        under_checkpoint = False
        while frame is not None:
            code = frame.f_code
            region = regions.get(code)
            if region is None:
                region = regions[code] = self._region(code.co_filename)
            if region is Region.CHECKPOINT:
                under_checkpoint = True
            elif region is not Region.INTERNAL:
                if site < 0:
                    site = self._site(code, frame.f_lasti)
                    if region is Region.WORKLOAD:
                        return Place(site, site, under_checkpoint or _checkpoint_above(frame, regions))
                elif region is Region.WORKLOAD:
                    return Place(
                        site,
                        self._site(code, frame.f_lasti),
                        under_checkpoint or _checkpoint_above(frame, regions),
                    )
            frame = frame.f_back
        found = site if site >= 0 else self.nowhere
        return Place(found, self.nowhere, under_checkpoint)

    def file(self, site: int) -> str:
        """The file of a site, as it is spelt in evidence."""
        return self._spellings[site]

    def take_texts(self) -> list[tuple[str, str, bytes]]:
        """`(path in evidence, digest, text)` of files first named since the last call (CA-26)."""
        taken = [(file, digest, data) for digest, (file, data) in self._texts.items()]
        self._texts.clear()
        return taken

    def workload_files(self) -> dict[str, str]:
        """Every loaded module's file under the workload's root: name in evidence -> SHA-256 (CA-30)."""
        paths = {self._main} if self._main else set[str]()
        modules: list[ModuleType | None] = list(sys.modules.values())  # None stands for one that must not be imported
        for module in modules:
            path = vars(module).get("__file__") if module is not None else None
            if isinstance(path, str) and self._region(path) is Region.WORKLOAD:
                paths.add(path)
        facts = (self._facts(path) for path in sorted(paths))
        return {fact.file: fact.digest for fact in facts if isinstance(fact.digest, str)}

    def _site(self, code: CodeType, instruction: int) -> int:
        found = self._ids.get((code, instruction))
        if found is not None:
            return found
        facts = self._facts(code.co_filename)
        made = self._define(
            facts.kind,
            facts.file,
            _position(code, instruction),
            code.co_qualname,
            facts.digest,
            path=code.co_filename,
        )
        self._ids[(code, instruction)] = made
        return made

    def _define(
        self,
        kind: calls.SourceKind,
        file: str,
        position: tuple[int, int],
        function: str,
        digest: str | Gap[CaptureGap],
        path: str = "",
    ) -> int:
        made = len(self._spellings)
        self._spellings.append(file)
        self._emit(calls.Site(made, kind, file, position[0], position[1], function, digest, path))
        return made

    def _facts(self, path: str) -> FileFacts:
        found = self._files.get(path)
        if found is None:
            found = self._files[path] = self._read_facts(path)
        return found

    def _read_facts(self, path: str) -> FileFacts:
        kind, file = self._spell(path)
        if not self._keep_sources:
            return FileFacts(kind, file, Gap(CaptureGap.NOT_COLLECTED, "--no-sources"))
        data = _source_bytes(path)
        if data is None:
            return FileFacts(kind, file, Gap(CaptureGap.NOT_OBSERVED, "no source text"))
        digest = hashlib.sha256(data).hexdigest()
        self._texts[digest] = (file, data)
        return FileFacts(kind, file, digest)

    def _spell(self, path: str) -> tuple[calls.SourceKind, str]:
        if self._main is not None and path == self._main:
            return calls.SourceKind.MAIN, "<main>"
        installed = _inside_packages(path)
        if installed is not None:
            return calls.SourceKind.INSTALLED, installed
        if path.startswith(self._root):
            return calls.SourceKind.WORKLOAD, path[len(self._root) :]
        if path.startswith("<"):
            return calls.SourceKind.OTHER, path
        return calls.SourceKind.OTHER, os.path.basename(path)

    def _region(self, path: str) -> Region:
        if path == self._main:
            return Region.WORKLOAD
        if path.endswith("torch/utils/checkpoint.py") and path.startswith(self._internal):
            return Region.CHECKPOINT
        if path.startswith(self._internal):
            return Region.INTERNAL
        if _inside_packages(path) is not None:
            return Region.LIBRARY
        return Region.WORKLOAD if path.startswith((self._root, "<ipython")) else Region.LIBRARY


def workload_root(script: Path) -> Path:
    """The checkout that holds the script (the nearest folder with `.git`), else the script's own folder."""
    for folder in script.parents:
        if (folder / ".git").exists():
            return folder
    return script.parent


def _checkpoint_above(frame: FrameType | None, regions: dict[CodeType, Region]) -> bool:
    while frame is not None:
        if regions.get(frame.f_code) is Region.CHECKPOINT:
            return True
        frame = frame.f_back
    return False


def _internal_prefixes() -> tuple[str, ...]:
    stdlib = sysconfig.get_path("stdlib")
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    found = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen", "<__array_function__"]
    found += [os.path.join(folder, "torch") + os.sep for folder in packages]
    found += [os.path.join(stdlib, entry) for entry in sorted(os.listdir(stdlib)) if "-packages" not in entry]
    return tuple(found)


def _inside_packages(path: str) -> str | None:
    """The path inside an installed package, its import name first; None elsewhere."""
    for marker in ("/site-packages/", "/dist-packages/"):
        before, found, rest = path.rpartition(marker)
        if found and before:
            return rest
    return None


def _position(code: CodeType, instruction: int) -> tuple[int, int]:
    for index, position in enumerate(code.co_positions()):
        if index == instruction // 2:
            line, _, column, _ = position
            return (line or code.co_firstlineno, -1 if column is None else column)
    return (code.co_firstlineno, -1)


def _source_bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return _cached_source(path)


def _cached_source(path: str) -> bytes | None:
    """The text of a notebook cell or of compiled text, where the interpreter still has it."""
    import linecache

    lines = linecache.getlines(path)
    return "".join(lines).encode("utf-8", "surrogatepass") if lines else None

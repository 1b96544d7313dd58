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
from paritrace.evidence.definition import Definition
from paritrace.evidence.gaps import CaptureGap, Gap

_ENGINE_FUNCTION = "_engine_run_backward"
_dictionary: Callable[[object], dict[str, object]] = vars(ModuleType)["__dict__"].__get__


class Region(IntEnum):
    """Whose code a frame runs."""

    INTERNAL = 0  # paritrace, torch, the standard library: never a site
    LIBRARY = 1  # an installed package or code without a file
    WORKLOAD = 2  # under the workload's root, the main script included
    CHECKPOINT = 3  # torch's activation checkpointing: internal, but tells recompute from backward
    ENGINE = 4  # where torch enters its backward engine: internal, and what is above it did not call the operator


@dataclass(frozen=True, slots=True)
class Place:
    """The two sites of a call; `outside` says that a checkpoint's frame lies between the call and its site."""

    site: int
    workload_site: int
    outside: bool = False


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
        emit: Callable[[Definition], None],
        keep_sources: bool,
    ) -> None:
        self._root = os.path.join(root, "")
        self._main = main
        self._emit = emit
        self._keep_sources = keep_sources
        # By identity: code objects of two files are equal when their text and lines are. They are kept, so that no
        # identity comes to mean another one.
        self._regions: dict[int, Region] = {}
        self._ids: dict[tuple[int, int], int] = {}
        self._codes: list[CodeType] = []
        self._compiled: dict[int, FileFacts] = {}  # of code whose text somebody told, again by identity
        self._files: dict[str, FileFacts] = {}
        self._texts: dict[str, tuple[str, bytes]] = {}
        self._internal = _internal_prefixes()
        self._spellings: list[str] = []
        if main is not None:
            self._facts(main)
        self.nowhere = self._define(calls.SourceKind.OTHER, "<unknown>", (0, -1), "", Gap(CaptureGap.NOT_OBSERVED))

    def place(self, frame: FrameType | None) -> Place:
        """The sites of a call made by `frame` or one of its callers."""
        site = -1
        outside = False
        while frame is not None:
            code = frame.f_code
            region = self._regions.get(id(code))
            if region is None:
                region = self._enter(code)
            if region is Region.WORKLOAD:
                found = self._site(code, frame.f_lasti)
                return Place(found if site < 0 else site, found, outside)
            if site < 0:
                if region is Region.LIBRARY:
                    site = self._site(code, frame.f_lasti)
                elif region is Region.CHECKPOINT:
                    outside = True
            frame = frame.f_back
        return Place(site if site >= 0 else self.nowhere, self.nowhere, outside)

    def place_in(self, code: CodeType, instruction: int) -> Place:
        """The sites of a call whose frame is gone: a library's code does not tell who called it."""
        site = self._site(code, instruction)
        region = self._regions.get(id(code))
        if region is None:
            region = self._enter(code)
        return Place(site, site if region is Region.WORKLOAD else self.nowhere)

    def recomputes(self, frame: FrameType | None) -> bool:
        """Whether a call made during a backward pass repeats a checkpointed forward: the checkpoint called it, rather
        than an engine. A reentrant checkpoint runs an engine of its own, and what that calls is backward."""
        while frame is not None:
            region = self._regions.get(id(frame.f_code))
            if region is None:
                region = self._enter(frame.f_code)
            if region is Region.CHECKPOINT or region is Region.ENGINE:
                return region is Region.CHECKPOINT
            frame = frame.f_back
        return False

    @property
    def root(self) -> str:
        """The folder of the workload's own files, with its last separator."""
        return self._root

    def is_library(self, path: str) -> bool:
        """Whether a file is neither the workload's own nor of torch, the standard library or paritrace."""
        return self._region(path) is Region.LIBRARY

    def below_root(self, path: str) -> str | None:
        """The path of one of the workload's own files below its root, the main script's too; None for others."""
        if not self.is_workload(path) or not path.startswith(self._root):
            return None
        return path[len(self._root) :]

    def is_workload(self, path: str) -> bool:
        """Whether a file is one of the workload's own."""
        return self._region(path) is Region.WORKLOAD

    def spelled(self, path: str) -> str:
        """What a file is called in evidence."""
        return self._spell(path)[1]

    def digest(self, path: str) -> str | Gap[CaptureGap]:
        """SHA-256 of a file's text, which is kept with the run as that of a call site is (CA-26)."""
        return self._facts(path).digest

    def compiled(self, path: str, source: bytes, code: CodeType) -> str | Gap[CaptureGap]:
        """Take the text that a file's code was compiled from, whatever stands in the file by now; its SHA-256 (CA-26).

        A file that is loaded again after an edit has code of both texts: each keeps its own.
        """
        facts = self._files[path] = self._kept(*self._spell(path), source)
        self._codes.append(code)
        found = [code]
        while found:
            one = found.pop()
            self._compiled[id(one)] = facts
            found += [part for part in one.co_consts if isinstance(part, CodeType)]
        return facts.digest

    def file(self, site: int) -> str:
        """The file of a site, as it is spelt in evidence."""
        return self._spellings[site]

    def take_texts(self) -> list[tuple[str, str, bytes]]:
        """`(path in evidence, digest, text)` of files first named since the last call (CA-26)."""
        texts, self._texts = self._texts, {}  # another thread may be importing
        return [(file, digest, data) for digest, (file, data) in texts.items()]

    def workload_files(self) -> dict[str, str]:
        """Every loaded module's file under the workload's root: name in evidence -> SHA-256 (CA-30)."""
        return {fact.file: fact.digest for fact in self.workload_facts() if isinstance(fact.digest, str)}

    def workload_facts(self) -> list[FileFacts]:
        """Every loaded module's file under the workload's root, also where its text is not known."""
        paths = {self._main} if self._main else set[str]()
        modules: list[object] = list(sys.modules.values())  # anything may stand there, None too
        for module in modules:
            path = _file_of(module)
            if isinstance(path, str) and self._region(path) is Region.WORKLOAD:
                paths.add(path)
        return [self._facts(path) for path in sorted(paths)]

    def _site(self, code: CodeType, instruction: int) -> int:
        found = self._ids.get((id(code), instruction))
        if found is not None:
            return found
        facts = self._compiled.get(id(code)) or self._facts(code.co_filename)
        made = self._define(
            facts.kind,
            facts.file,
            _position(code, instruction),
            code.co_qualname,
            facts.digest,
            path=code.co_filename,
        )
        self._ids[(id(code), instruction)] = made
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
        return self._kept(kind, file, _source_bytes(path) if self._keep_sources else None)

    def _kept(self, kind: calls.SourceKind, file: str, data: bytes | None) -> FileFacts:
        if not self._keep_sources:
            return FileFacts(kind, file, Gap(CaptureGap.NOT_COLLECTED, "--no-sources"))
        if data is None:
            return FileFacts(kind, file, Gap(CaptureGap.NOT_OBSERVED, "no source text"))
        digest = hashlib.sha256(data).hexdigest()
        self._texts[digest] = (file, data)
        return FileFacts(kind, file, digest)

    def _spell(self, path: str) -> tuple[calls.SourceKind, str]:
        if self._main is not None and path == self._main:
            return calls.SourceKind.MAIN, "<main>"
        installed = inside_packages(path)
        if installed is not None:
            return calls.SourceKind.INSTALLED, installed
        if path.startswith(self._root):
            return calls.SourceKind.WORKLOAD, path[len(self._root) :]
        if path.startswith("<"):
            return calls.SourceKind.OTHER, path
        return calls.SourceKind.OTHER, os.path.basename(path)

    def _enter(self, code: CodeType) -> Region:
        """Meet a code object for the first time."""
        path = code.co_filename
        if code.co_name == _ENGINE_FUNCTION and path.endswith("torch/autograd/graph.py"):
            region = Region.ENGINE
        elif path.endswith("torch/utils/checkpoint.py") and path.startswith(self._internal):
            region = Region.CHECKPOINT
        else:
            region = self._region(path)
        self._codes.append(code)
        self._regions[id(code)] = region
        return region

    def _region(self, path: str) -> Region:
        if path == self._main:
            return Region.WORKLOAD
        if path.startswith(self._internal):
            return Region.INTERNAL
        if inside_packages(path) is not None:
            return Region.LIBRARY
        return Region.WORKLOAD if path.startswith((self._root, "<ipython")) else Region.LIBRARY


def workload_root(script: Path, *, imported_from: Path | None = None) -> Path:
    """The checkout that holds the script (the nearest folder with `.git`), else the folder its imports come from if
    it lies there (`-m package.train`), else its own."""
    for folder in script.parents:
        if (folder / ".git").exists():
            return folder
    return imported_from if imported_from is not None and imported_from in script.parents else script.parent


def _internal_prefixes() -> tuple[str, ...]:
    stdlib = sysconfig.get_path("stdlib")
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    found = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen", "<__array_function__"]
    # torch marks deprecated functions by a wrapper of typing_extensions: the standard library's, for older Pythons.
    names = ("torch" + os.sep, "typing_extensions.py")
    found += [os.path.join(folder, name) for folder in packages for name in names]
    found += [os.path.join(stdlib, entry) for entry in sorted(os.listdir(stdlib)) if "-packages" not in entry]
    return tuple(found)


def inside_packages(path: str) -> str | None:
    """The path inside an installed package, its import name first; None elsewhere."""
    for marker in ("/site-packages/", "/dist-packages/"):
        before, found, rest = path.rpartition(marker)
        if found and before:
            return rest
    return None


def _file_of(module: object) -> object:
    """`__file__` of a module, without running code of its own; None for what is no module."""
    return _dictionary(module).get("__file__") if issubclass(type(module), ModuleType) else None


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
    except ValueError:  # a name that no file can have
        return None


def _cached_source(path: str) -> bytes | None:
    """The text of a notebook cell or of compiled text, where the interpreter still has it."""
    import linecache

    lines = linecache.getlines(path)
    return "".join(lines).encode("utf-8", "surrogatepass") if lines else None

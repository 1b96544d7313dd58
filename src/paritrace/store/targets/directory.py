"""A directory as target: hidden copy, length and digest checked, forced to disk, named last (ST-6, ST-8a, ST-14)."""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, ParitraceError
from paritrace.files import LOCAL, TEMPORARY_PREFIX, Files
from paritrace.store.targets.naming import BUNDLES_FOLDER, checked_name, conflict, is_hidden, names_its_bytes
from paritrace.store.targets.protocol import READ_CHUNK_BYTES, Entry, Put
from paritrace.store.targets.source_check import SourceCheck
from paritrace.store.throttle import CHUNK_BYTES, Throttle

NUM_COPIES = 2  # a copy that could not be forced to disk is made again once; then the target is the problem
LOOKS_SECONDS = (0.05, 0.2, 1.0)  # a name just listed may be seen late on shared storage: 1.25 s in all (EV-12)
_COPY_AGAIN = frozenset({"io_error", "short_copy"})
_NOT_THERE = frozenset({"not_found", "stale_handle", "not_a_folder"})


class DirectoryTarget:
    """A folder that other machines may see as well. Nothing in it is ever replaced, removed or locked."""

    def __init__(self, root: Path, *, label: str = "", files: Files = LOCAL, clock: Clock = SYSTEM) -> None:
        self.root = root
        self.label = label or str(root)
        self._files = files
        self._clock = clock

    def list(self, prefix: str, /) -> Iterator[Entry]:
        """As `Target` says; a folder that is not there is empty, one that vanishes meanwhile ends its part."""
        above = prefix.rpartition("/")[0]
        yield from (entry for entry in self._below(above) if entry.name.startswith(prefix))

    def put_if_absent(self, name: str, source: Path, /, *, sha256: str, throttle: Throttle, checksum: str = "") -> Put:
        """As `Target` says; the source's bytes are checked while they are copied."""
        path = self.root / checked_name(name)
        if self._is_there(name, path, sha256):
            self._files.sync_existing(path)
            return Put.ALREADY_THERE
        for copies_left in reversed(range(NUM_COPIES)):
            try:
                check = SourceCheck(source, sha256=sha256, checksum=checksum)
                self._copy(path, source, check, exclusive=not names_its_bytes(name, sha256), throttle=throttle)
                return Put.PUBLISHED
            except HostError as error:
                if error.code == "already_there" and self._is_there(name, path, sha256):
                    return Put.ALREADY_THERE
                if error.code not in _COPY_AGAIN or not copies_left:
                    raise
        raise AssertionError("the last copy returns or raises")

    def read(self, name: str, /) -> Iterator[bytes]:
        """As `Target` says."""
        path = self.root / checked_name(name)
        begun = False
        for pause in (*LOOKS_SECONDS, None):
            try:
                for chunk in self._files.iter_chunks(path, chunk_bytes=READ_CHUNK_BYTES, follow_links=False):
                    begun = True
                    yield chunk
                return
            except HostError as error:
                if error.code not in _NOT_THERE or begun:
                    raise
                if pause is None:
                    raise self._not_visible(name) from error
            self._look_again(path.parent, pause)

    def drop_leftovers(self, folder: str, /) -> None:
        """As `Target` says."""
        place = self.root / folder
        if not self._files.exists(place):
            return
        for path in self._files.list_all(place):
            if path.name.startswith(TEMPORARY_PREFIX) and path.suffix == ".tmp":
                self._files.remove(path)

    def probe(self) -> None:
        """As `Target` says; the trial's file is removed again."""
        path = self.root / f".paritrace-probe-{secrets.token_hex(8)}"
        self._files.publish(path, (b"probe",), num_bytes=5, exclusive=True)
        try:
            self._files.publish(path, (b"other",), num_bytes=5, exclusive=True)
        except HostError as error:
            if error.code != "already_there":
                raise
        else:
            raise HostError(
                f"{self.label} accepts a second file under one name",
                code="overwriting_target",
                fix="choose a target whose file system has hard links, or an S3 bucket with conditional writes",
            )
        finally:
            with suppress(ParitraceError):
                self._files.remove(path)

    def _copy(self, path: Path, source: Path, check: SourceCheck, *, exclusive: bool, throttle: Throttle) -> None:
        num_bytes = self._files.size(source)
        self._files.publish(path, self._paced(source, check, throttle), num_bytes=num_bytes, exclusive=exclusive)

    def _paced(self, source: Path, check: SourceCheck, throttle: Throttle) -> Iterator[bytes]:
        """The source's bytes at the rate; ends in an error, before the copy gets its name, when they are others."""
        for chunk in self._files.iter_chunks(source, chunk_bytes=CHUNK_BYTES):
            throttle.take(len(chunk))
            check.update(chunk)
            yield chunk
        check.require()

    def _is_there(self, name: str, path: Path, sha256: str) -> bool:
        if not self._files.exists(path):
            return False
        digest = hashlib.sha256()
        for chunk in self._files.iter_chunks(path):
            digest.update(chunk)
        if digest.hexdigest() != sha256:
            raise conflict(self.label, name, found=digest.hexdigest(), wanted=sha256)
        return True

    def _below(self, folder: str) -> Iterator[Entry]:
        try:
            names = self._files.list_all(self.root / folder if folder else self.root)
        except HostError as error:
            if error.code in _NOT_THERE:
                return
            raise
        found = [(path, self._is_folder(path)) for path in names]
        for path, is_folder in sorted(found, key=lambda pair: pair[0].name + "/" * bool(pair[1])):
            name = f"{folder}/{path.name}" if folder else path.name
            if is_hidden(path.name) and not (is_folder and path.name == BUNDLES_FOLDER):
                continue
            if is_folder:
                yield from self._below(name)
            elif is_folder is not None:
                yield from self._entry(name, path)

    def _is_folder(self, path: Path) -> bool | None:
        """None where the name is gone meanwhile."""
        try:
            return self._files.is_folder(path)
        except HostError as error:
            if error.code in _NOT_THERE:
                return None
            raise

    def _entry(self, name: str, path: Path) -> Iterator[Entry]:
        try:
            yield Entry(name, self._files.size(path))
        except HostError as error:
            if error.code not in _NOT_THERE:
                raise
            yield Entry(name, 0)  # a dangling link is no bundle, and is found to be none by its bytes

    def _look_again(self, folder: Path, pause: float) -> None:
        self._clock.sleep(pause)
        with suppress(HostError):
            self._files.list_all(folder)  # makes a network file system ask its server again

    def _not_visible(self, name: str) -> HostError:
        return HostError(
            f"{self.label}: {name} cannot be found from here after {sum(LOOKS_SECONDS):g} s",
            code="not_visible_here",
            fix="it may be published and not visible on this machine yet: try again later, or from another machine",
        )

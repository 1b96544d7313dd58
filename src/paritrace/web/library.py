"""Opens what the shelf holds when a page asks for it, and keeps open what has not changed since (SU-10)."""

import threading
from collections import OrderedDict
from contextlib import AbstractContextManager
from pathlib import Path

from paritrace.attempts.loading import Loaded, load
from paritrace.compare.checks_result import Checked
from paritrace.errors import EvidenceError, ParitraceError, RequestError
from paritrace.evidence.digests import sha256_of
from paritrace.files import LOCAL
from paritrace.reports.keeping import MANIFEST, NAMES
from paritrace.reports.shelf import Result, Shelf, key_of, open_shelved, shelf_of
from paritrace.reports.shelf_others import StorePage, read_check, store_page
from paritrace.runs.reading import Run, open_run
from paritrace.web.calls_database import CallsDatabase

OPEN_TABLES = 8  # databases that stay open; each is small until it is asked

Stamp = tuple[int, int, int]


class Library:
    """Everything at the path that `paritrace view` was given. Pages ask from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock = threading.RLock()
        self._places: dict[str, Path] = {}
        self._run_ids: dict[str, str] = {}
        self._results: OrderedDict[str, tuple[tuple[Stamp, ...], Result]] = OrderedDict()
        self._tables: OrderedDict[str, tuple[Stamp, CallsDatabase]] = OrderedDict()

    def shelf(self) -> Shelf:
        """Look again at what there is."""
        found = shelf_of(self.path)
        runs = {one.key: Path(one.line.path) for one in found.runs}
        with self._lock:
            self._run_ids = {one.key: one.line.run_id for one in found.runs}
            self._places = runs | {one.key: Path(one.path) for one in found.comparisons}
            self._places |= {key_of(Path(one.path)): Path(one.path) for one in found.troubles}
            self._places |= {one.key: Path(one.path) for one in found.checks}
            self._places |= {one.key: Path(one.path) for one in found.manifests}
            self._places |= {one.key: Path(one.path) for one in found.stores}
            self._places |= {one.key: Path(one.path) for one in found.sessions}
        return found

    def run(self, key: str) -> AbstractContextManager[Run]:
        """Open a run; the caller closes it."""
        return open_run(self._place(key))

    def check(self, key: str) -> Checked:
        """Return a kept check; raises as `shelf_others.read_check`."""
        return read_check(self._place(key), files=LOCAL)

    def manifest(self, key: str) -> Loaded:
        """Return a manifest of attempts; raises as `attempts.loading.load`."""
        return load(self._place(key))

    def store(self, key: str) -> StorePage:
        """Return the status of a store; raises as `shelf_others.store_page`."""
        return store_page(self._place(key), files=LOCAL)

    def session(self, key: str) -> Path:
        """Return the directory of a resident session."""
        return self._place(key)

    def result(self, key: str) -> Result:
        """Return a comparison as it is now.

        Raises:
            RequestError: Refused, `no_such_page`.
            EvidenceError: Refused, `damaged_result`.
        """
        place = self._place(key)
        watched = (place / MANIFEST, place / NAMES["json"]) if place.is_dir() else (place,)
        stamps = tuple(stamp_of(path) for path in watched)
        with self._lock:
            known = self._results.get(key)
            if known is None or known[0] != stamps:
                known = (stamps, open_shelved(place))
                self._results[key] = known
                while len(self._results) > OPEN_TABLES:
                    self._results.popitem(last=False)
            return known[1]

    def calls(self, key: str) -> CallsDatabase:
        """Return the table of calls of a comparison, after its bytes were held to the manifest.

        Raises:
            RequestError: Refused, `no_calls_table`: a document alone, or a result kept without it.
            EvidenceError: Refused, `damaged_result`: missing, or not what the manifest says.
        """
        result = self.result(key)
        path = _table_of(result)
        stamp = stamp_of(path)
        with self._lock:
            known = self._tables.get(key)
            if known is None or known[0] != stamp:
                _require_as_stated(result, path)
                known = (stamp, CallsDatabase(path))
                self._tables[key] = known
                while len(self._tables) > OPEN_TABLES:
                    self._tables.popitem(last=False)
            self._tables.move_to_end(key)
            return known[1]

    def has_calls(self, result: Result, /) -> str:
        """Return why there is no table of calls; "" where there is one."""
        try:
            _table_of(result)
        except ParitraceError as error:
            return f"{error.message}. {error.fix}"
        return ""

    def comparison_keys(self) -> tuple[str, ...]:
        """Return the keys of all readable comparisons, looked up anew."""
        return tuple(one.key for one in self.shelf().comparisons)

    def key_of_run(self, run_id: str, /, *, path: Path) -> str:
        """Return the key of a run of the shelf with this id, "" without one; the path decides between several."""
        if not self._places:
            self.shelf()
        with self._lock:
            found = [key for key, known in self._run_ids.items() if known == run_id]
        return key_of(path) if key_of(path) in found else next(iter(found), "")

    def _place(self, key: str) -> Path:
        with self._lock:
            known = self._places.get(key)
        if known is None:
            self.shelf()
            with self._lock:
                known = self._places.get(key)
        if known is None:
            raise RequestError("there is no such page", code="no_such_page", fix="begin at the first page, /")
        return known


def stamp_of(path: Path) -> Stamp:
    """What changes when a file is written anew; zeros where there is none."""
    if not LOCAL.exists(path):
        return (0, 0, 0)
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _table_of(result: Result) -> Path:
    stated = () if result.kept is None else tuple(one.path for one in result.kept.manifest.files)
    if result.kept is None or NAMES["parquet"] not in stated:
        raise RequestError(
            "this result was kept without its table of calls"
            if result.kept
            else "this comparison is a document alone, without its table of calls",
            code="no_calls_table",
            fix="run paritrace compare BASE CAND -o FOLDER: the folder keeps calls.parquet beside the document",
        )
    path = result.kept.calls_path()
    if not LOCAL.exists(path):
        raise _damaged(f"{path} is missing")
    return path


def _require_as_stated(result: Result, path: Path) -> None:
    """Hash the table once for each time it was written: what a page shows is what the manifest names (P3)."""
    stated = [one for one in result.kept.manifest.files if one.path == path.name] if result.kept else []
    found = sha256_of(LOCAL.iter_chunks(path))
    if [(one.size, one.sha256) for one in stated] != [(found.num_bytes, found.sha256)]:
        raise _damaged(f"{path} is not what its manifest says")


def _damaged(message: str) -> EvidenceError:
    return EvidenceError(
        message,
        code="damaged_result",
        fix="run paritrace compare again; results can always be made anew from their runs",
    )

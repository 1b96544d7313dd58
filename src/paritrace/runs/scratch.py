"""A private folder for what is unpacked or put together to be read, gone when it is no longer held (ST-25)."""

from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from weakref import finalize

from paritrace.files.faults import translated


class Scratch:
    """A private folder that goes away when it is removed, when nobody holds it any more, or at exit."""

    def __init__(self, below: Path | None) -> None:
        with translated(below or gettempdir(), "make a private folder in"):
            self.folder = Path(mkdtemp(prefix="paritrace-", dir=below))
        self.run_folder = self.folder  # where in it the run is
        self._finalizer = finalize(self, rmtree, self.folder, ignore_errors=True)

    def remove(self) -> None:
        self._finalizer()

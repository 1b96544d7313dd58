"""The files into which the streams of a store are gathered, at their last places where these are free (ST-11)."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from paritrace.errors import HostError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import Files
from paritrace.store.aside import Buffer
from paritrace.store.chain import Chain, StreamKey
from paritrace.store.layout import RankKey, folders_of
from paritrace.store.placing import Placed
from paritrace.store.records import Manifest, Segment

SPACE_KEPT_FREE_BYTES = 64 << 20  # so that restoring never fills a file system to its last byte
_STREAMS = ".streams"


class StreamName(Struct, frozen=True):
    """A stream among those of all ranks."""

    key: RankKey
    stream: StreamKey


class StreamWriter:
    """Writes the bytes of every stream into a file of its own, below a folder that nobody sees.

    Which stream a path belongs to in the end is known when the last bundle was read. The first stream of a path is
    written there, others into a folder for them; `settle` moves the few that came to lie elsewhere than they belong.
    """

    def __init__(self, folder: Path, *, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._places: dict[StreamName, str] = {}
        self._taken: set[str] = set()
        self._made: set[str] = set()  # folders

    @property
    def streams(self) -> frozenset[StreamName]:
        """Everything of which bytes were written."""
        return frozenset(self._places)

    def begin(self, chain: Chain, manifest: Manifest, /) -> None:
        """Make sure of the space for one bundle.

        Raises:
            HostError: Refused, code `disk_full`.
        """
        due = sum(segment.length for segment in manifest.segments) + SPACE_KEPT_FREE_BYTES
        free = self._files.free_bytes(self._folder)
        if due > free:
            raise HostError(
                f"restoring needs {due} more bytes in {self._folder.parent}, {free} are free",
                code="disk_full",
                fix="free space, or restore to another place",
            )

    def take(self, chain: Chain, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        name = StreamName(chain.key, StreamKey(segment.origin, segment.version))
        place = self._places.get(name)
        is_new = place is None
        if place is None:
            place = self._place_of(name, segment.path)
        self._files.extend_scratch(self._folder / place, chunks, new=is_new)

    def settle(self, placed: list[Placed]) -> None:
        """Give every stream its last place."""
        belongs = {StreamName(one.key, one.stream): one.to for one in placed}
        elsewhere = [name for name, place in self._places.items() if belongs[name] != place]
        for name in elsewhere:
            self._move(name, _gathered(name))
        for name in elsewhere:
            self._clear(belongs[name])
            self._move(name, belongs[name])
        if _STREAMS in self._made:
            self._files.remove_folder(self._folder / _STREAMS)

    def make_folder(self, folder: str) -> None:
        """Make a folder with those above it, unless a file lies there."""
        if folder not in self._made and self._has_room(folder):
            self._files.mkdir(self._folder / folder)
            self._made |= {folder, *folders_of(folder)}

    def _place_of(self, name: StreamName, path: str) -> str:
        place = f"rank-{name.key.rank}/{path}"
        if place in self._taken or place in self._made or not self._has_room(place.rpartition("/")[0]):
            place = _gathered(name)
        self._enter(name, place)
        return place

    def _has_room(self, folder: str) -> bool:
        """Say whether no file lies where a folder or one above it is due."""
        return folder in self._made or self._taken.isdisjoint((folder, *folders_of(folder)))

    def _enter(self, name: StreamName, place: str) -> None:
        self.make_folder(place.rpartition("/")[0])
        self._taken.add(place)
        self._places[name] = place

    def _move(self, name: StreamName, to: str) -> None:
        place = self._places[name]
        if place == to:
            return
        self._taken.discard(place)
        self._enter(name, to)
        self._files.rename(self._folder / place, self._folder / to)

    def _clear(self, place: str) -> None:
        """Remove the folders at a file's last place: what lay in them went to the older versions."""
        emptied = {folder for folder in self._made if folder == place or folder.startswith(f"{place}/")}
        for folder in sorted(emptied, reverse=True):
            self._files.remove_folder(self._folder / folder)
        self._made -= emptied


def _gathered(name: StreamName) -> str:
    """Return where a stream lies that is not at its last place: a digest, since paths may be long and nested."""
    told = f"{name.key.node_id}\0{name.key.rank}\0{name.stream.version}\0{name.stream.origin}"
    return f"{_STREAMS}/{sha256_hex(told.encode('utf-8'))}"

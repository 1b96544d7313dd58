"""What a store holds, put together by the plainest means: for tests."""

from collections import defaultdict
from collections.abc import Iterator

from paritrace.store.aside import Buffer
from paritrace.store.bundle_reading import BundleReader
from paritrace.store.problems import Problem
from paritrace.store.records import Manifest, Segment
from tests.store.places import Place


class Kept:
    """A sink that keeps everything in memory."""

    def __init__(self) -> None:
        self.contents: list[tuple[Segment, bytes]] = []

    def accept(self, manifest: Manifest, /) -> Iterator[Problem]:
        return iter(())

    def take(self, segment: Segment, chunks: Iterator[Buffer], /) -> None:
        self.contents.append((segment, b"".join(chunks)))


def contents(place: Place) -> Iterator[tuple[Manifest, list[tuple[Segment, bytes]]]]:
    for name in place.bundles():
        kept = Kept()
        reader = BundleReader(name, place.target().read(str(name)))
        reader.read(kept)
        assert reader.problems == []
        assert reader.manifest is not None
        yield reader.manifest, kept.contents


def manifests(place: Place) -> list[Manifest]:
    return [manifest for manifest, _ in contents(place)]


def streams(place: Place) -> dict[tuple[str, int], bytes]:
    """Return the published bytes of each stream, by origin and version; pieces must join."""
    found: defaultdict[tuple[str, int], bytes] = defaultdict(bytes)
    for _, pieces in contents(place):
        for segment, data in pieces:
            key = (segment.origin, segment.version)
            assert len(found[key]) == segment.offset
            found[key] += data
    return dict(found)

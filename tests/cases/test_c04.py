"""C-04: a journal that is copied and truncated, and has grown past the old offset, is no continuation of itself."""

from pathlib import Path

from paritrace.store.records import RemarkKind
from tests.store.places import Place
from tests.store.reading import streams


def test_truncated_and_regrown_between_two_syncs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    old = b"".join(b"old %d\n" % number for number in range(100))
    new = b"".join(b"new %d\n" % number for number in range(120))
    path = place.write("a.jsonl", old)
    place.once()
    place.write("a.jsonl.1", path.read_bytes())
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(new)
    report = place.final()
    assert streams(place) == {("a.jsonl", 1): old, ("a.jsonl", 2): new, ("a.jsonl.1", 1): old}
    (replaced,) = report.remarks
    assert (replaced.kind, replaced.path, replaced.offset) == (RemarkKind.REPLACED, "a.jsonl", len(old))
    assert not isinstance(replaced.length, int)  # lines between the last sync and the truncation: not known

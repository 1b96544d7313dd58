"""C-15: only a newline ends a record; U+2028, U+2029, U+0085, VT, FF and FS are ordinary characters."""

from pathlib import Path

from paritrace.evidence import codec
from paritrace.evidence.calls import Name
from paritrace.evidence.journal import JournalReader
from paritrace.testing.strategies import HEADER
from tests.store.places import Place
from tests.store.reading import manifests, streams

ODD = "x\u2028y\u2029\u0085\x0b\x0c\x1cz"


def test_a_record_with_them_is_one_record() -> None:
    lines = codec.encode_mark(HEADER) + codec.encode_mark(Name(0, ODD)) + codec.encode_mark(Name(1, "b"))
    items = [item for item in JournalReader([lines], name="j") if isinstance(item, Name)]
    assert items == [Name(0, ODD), Name(1, "b")]


def test_a_store_counts_it_as_one_and_never_cuts_inside(tmp_path: Path) -> None:
    place = Place(tmp_path)
    record = b'{"t":"x\xe2\x80\xa8y\xc2\x85\x0b\x0c\x1c"}\n{"b":1}\n'
    place.write("a.jsonl", record + b'{"t":"\xe2\x80\xa8')
    place.once()
    assert streams(place) == {("a.jsonl", 1): record}
    assert [segment.records for manifest in manifests(place) for segment in manifest.segments] == [2]

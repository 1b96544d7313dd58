"""Our own reader: a trace that is torn, changed or foreign is refused by name; parts that were put together are not."""

from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

from paritrace.errors import EvidenceError
from paritrace.files import LOCAL
from paritrace.reports.formats import Cut
from paritrace.reports.traces.verifying import read_back
from tests.traces.making import call, write

CALLS = [(("calls", "main"), call(number, start=10 * number, duration=9)) for number in range(40)]


def refused(path: Path) -> str:
    with pytest.raises(EvidenceError) as raised:
        read_back(path, files=LOCAL)
    assert str(path) in raised.value.message
    return raised.value.code


def test_su8_what_is_there_is_what_was_written(tmp_path: Path) -> None:
    tally = write(tmp_path / "a.pftrace", 0, CALLS, cut=Cut(max_events=30))
    (whole,) = read_back(tmp_path / "a.pftrace", files=LOCAL)
    assert (whole.slices, whole.summed_ns) == (tally.slices, tally.summed_ns) == (30, 270)
    assert whole.left_out == tally.left_out == {"beyond_max_events": 10}


def test_su8_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.pftrace", 0, CALLS)
    data = (tmp_path / "a.pftrace").read_bytes()
    torn = tmp_path / "torn.pftrace"
    for length in (*range(0, len(data), 23), *range(len(data) - 20, len(data))):
        torn.write_bytes(data[:length])
        assert refused(torn) == "torn_trace"


def test_su8_a_file_changed_anywhere_is_refused_or_says_the_same(tmp_path: Path) -> None:
    write(tmp_path / "a.pftrace", 0, CALLS)
    data = (tmp_path / "a.pftrace").read_bytes()
    chunk = len(data) - 600  # the compressed chunk; behind it stands the last packet
    changed = tmp_path / "changed.pftrace"
    for place in range(3, chunk, 29):
        changed.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert refused(changed) in ("damaged_trace", "torn_trace", "foreign_trace")


def test_su8_files_put_together_are_whole_and_one_of_them_torn_is_not(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path / f"{rank}.pftrace", rank, CALLS)
    parts = [(tmp_path / f"{rank}.pftrace").read_bytes() for rank in (0, 1)]
    both = tmp_path / "both.pftrace"
    both.write_bytes(b"".join(parts))
    assert [part.slices for part in read_back(both, files=LOCAL)] == [40, 40]
    both.write_bytes(parts[0] + parts[1][:-700])
    assert refused(both) == "torn_trace"


def test_su8_a_foreign_trace_is_named_as_that(tmp_path: Path) -> None:
    trace = messages.Trace()
    trace.packet.add().timestamp = 1
    (tmp_path / "a.pftrace").write_bytes(trace.SerializeToString())
    assert refused(tmp_path / "a.pftrace") == "foreign_trace"
    (tmp_path / "empty.pftrace").write_bytes(b"")
    assert refused(tmp_path / "empty.pftrace") == "torn_trace"


def test_su8_the_same_source_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, 0, CALLS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

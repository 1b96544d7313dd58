"""B-01: a control byte inside a profiler's event name: the file is kept and registered, the parse failure is placed."""

import hashlib
from pathlib import Path

import pytest
from msgspec import Struct

from paritrace.errors import EvidenceError
from paritrace.evidence import codec
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind, Availability
from paritrace.runs.opening import begin_session
from paritrace.runs.reading import open_run
from paritrace.runs.rows import attachment_row
from paritrace.runs.verify import verify
from tests.runs.making import another_process, request

TRACE = b'{"traceEvents":[{"ph":"X","name":"\x01<module>","ts":1,"dur":1,"pid":1,"tid":1}]}'


class Event(Struct):
    name: str


class Trace(Struct, rename={"trace_events": "traceEvents"}):
    trace_events: list[Event]


def test_the_parse_failure_names_the_byte() -> None:
    with pytest.raises(EvidenceError) as caught:
        codec.decode_document(TRACE, Trace, name="trace.json")
    at = TRACE.index(b"\x01")
    assert caught.value.message == f"trace.json: line 1, byte {at}: control_character: 0x01 in a string"


def test_the_file_is_kept_as_it_is_and_registered_unparsed(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(TRACE)
    session = begin_session(tmp_path / "run", request(process=another_process()))
    made = session.attach_reference(Reference(AttachmentKind.PROFILER_TRACE, "trace", path="../trace.json"))
    run = open_run(tmp_path / "run")
    row = attachment_row(run.envelope, made)
    assert row is not None
    assert (row.availability, row.num_bytes) == (Availability.AVAILABLE, len(TRACE))
    assert row.sha256 == hashlib.sha256(TRACE).hexdigest()
    assert run.attachment(made) == TRACE
    assert verify(run).counts["intact"] == 1

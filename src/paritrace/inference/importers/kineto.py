"""Traces of the torch profiler (Kineto), JSON or gzip: streamed, in integer nanoseconds, with what was lost (IN-10)."""

from collections.abc import Mapping
from pathlib import Path

from paritrace.files import LOCAL
from paritrace.inference.clock_marks import Marks
from paritrace.inference.importers.kineto_account import account_of, loss_events
from paritrace.inference.importers.kineto_categories import Group
from paritrace.inference.importers.kineto_contexts import TraceContexts, uuids_of
from paritrace.inference.importers.kineto_emitting import Emitting
from paritrace.inference.importers.kineto_facts import TraceFacts
from paritrace.inference.importers.kineto_text import TraceText
from paritrace.inference.importers.kineto_window import GZIP_MAGIC
from paritrace.inference.importing import Asked, Events, Imported, Reader, SourceKind, attachment_id_of
from paritrace.runs.attaching import Reference
from paritrace.runs.envelope import AttachmentKind

JSON_MEDIA_TYPE = "application/json"
GZIP_MEDIA_TYPE = "application/gzip"
RANGE_OPTION, UUID_OPTION, HOST_OPTION, OPERATORS_OPTION = "range", "device-uuid", "host", "operators"
YES = "yes"
_HEAD_BYTES = 256
_SUFFIXES = (".json", ".json.gz")
_AT_ONCE = (Group.DEVICE, Group.RANGE)


def recognises(path: Path, /) -> bool:
    """Say whether a file is JSON by its first bytes, or compressed under a name of JSON."""
    head = b"".join(LOCAL.iter_chunks(path, length=_HEAD_BYTES))
    if head.startswith(GZIP_MAGIC) or not head.strip():
        return path.name.lower().endswith(_SUFFIXES)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def open_trace(asked: Asked, /) -> Imported:
    """Open a trace; nothing is read of it before its events are drawn.

    Raises:
        RequestError: Refused, `bad_device_uuid`.
    """
    uuids = uuids_of(asked.options.get(UUID_OPTION, ""))
    attachment_id = attachment_id_of("kineto", asked.path)
    reference = Reference(
        kind=AttachmentKind.PROFILER_TRACE,
        title=asked.path.name,
        path=str(asked.path.resolve()),
        media_type=GZIP_MEDIA_TYPE if asked.path.name.lower().endswith(".gz") else JSON_MEDIA_TYPE,
        attachment_id=attachment_id,
    )
    return Imported(attachments=(reference,), events=_events(asked, attachment_id=attachment_id, uuids=uuids))


def _events(asked: Asked, *, attachment_id: str, uuids: Mapping[str, str]) -> Events:
    text = TraceText(LOCAL.iter_chunks(asked.path))
    facts = TraceFacts(pattern=asked.options.get(RANGE_OPTION))
    contexts = TraceContexts(
        asked.scope, attachment_id=attachment_id, members=text.members, host=asked.options.get(HOST_OPTION), uuids=uuids
    )
    emitting = Emitting(contexts, pattern=asked.options.get(RANGE_OPTION))
    at_once = (*_AT_ONCE, Group.HOST) if asked.options.get(OPERATORS_OPTION) == YES else _AT_ONCE
    marks = Marks()
    place = 0
    for batch in text.batches():
        for event in batch:
            group, span = facts.see(event)
            if group is Group.RANGE and span is not None and span.start_ns is not None:
                marks.see(event.name, thread=f"{event.pid}/{event.tid}", start_ns=span.start_ns)
            if span is not None and group in at_once:
                yield from emitting.of(event, group, span, place=place)
            place += 1
    yield from emitting.launches(facts)
    yield from contexts.base_time(text.members)
    yield from contexts.read_beside(marks.measured())
    yield from loss_events(text, facts, contexts=contexts)
    return account_of(text, facts)


KINETO = Reader(
    name="kineto",
    kind=SourceKind.TRACE,
    reads="a trace of the torch profiler (Kineto), JSON or gzip",
    recognises=recognises,
    open=open_trace,
    options=(
        (RANGE_OPTION, "annotations named like this mark iterations too, as in file names (step-*)"),
        (OPERATORS_OPTION, f"{YES}: operators on host threads are activities too, and not only counted"),
        (UUID_OPTION, "which device an ordinal of the trace is: 0=GPU-…, several with commas"),
        (HOST_OPTION, "the host that was traced, where the trace does not name it"),
    ),
)

"""The calls of a run as columns of an Arrow table (SU-14)."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from paritrace.compare.load import Recorded, load
from paritrace.compare.settings import Settings
from paritrace.runs.reading import Run

_WORD = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("session_id", _WORD),
        ("rank", pa.int32()),
        ("record_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("step", pa.int64()),
        ("microbatch", pa.int32()),
        ("phase", _WORD),
        ("level", _WORD),
        ("function", _WORD),
        ("file", _WORD),
        ("line", pa.int32()),
        ("module", _WORD),
        ("started_ns", pa.int64()),
        ("duration_ns", pa.int64()),
    ]
)
ROOT = ""  # scope 0 is the root module and is not written


def run_columns(run: Run, /) -> pa.Table:
    """Returns every recorded call, session by session, in order of execution."""
    batches = [_batch(load(run, view, settings=Settings())) for view in run.sessions]
    return pa.Table.from_batches(batches, schema=SCHEMA)


def _batch(of: Recorded) -> pa.RecordBatch:
    rows = list(_rows(of))
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA.names)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def _rows(of: Recorded) -> Iterator[tuple[Any, ...]]:
    session, rank = of.session.session_id, of.session.rank
    modules = {scope.id: scope.module for scope in of.scopes.values()}
    for call in of.calls:
        context, function, site = of.contexts[call.context], of.functions[call.function], of.sites[call.site]
        yield (
            session,
            rank,
            call.id,
            call.parent,
            context.step,
            context.microbatch,
            context.phase.value,
            function.level.value,
            function.name,
            site.file,
            site.line,
            modules.get(call.scope, ROOT),
            call.start_ns,
            call.duration_ns,
        )

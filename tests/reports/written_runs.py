"""Runs written to disk by the product's own writers, from constructed records: quick, and without torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from paritrace.evidence.calls import Call, Completed, Detail, EndMark, Mark, Row, State
from paritrace.evidence.codec import encode_mark, encode_row
from paritrace.evidence.definition import Definition
from paritrace.process.identity import own_identity
from paritrace.runs.envelope import Receipt, Role, SessionStatus
from paritrace.runs.launch import launch_of
from paritrace.runs.opening import SessionRequest, begin_session


def write_run(
    place: Path,
    records: Sequence[Row | Definition],
    *,
    steps: str = "",
    ended: bool = True,
    environ: dict[str, str] | None = None,
) -> Path:
    """Writes a run of one session; `steps`: declared; `ended` false leaves it as a killed process would."""
    process = own_identity()
    request = SessionRequest(
        role=Role.TRAINING,
        launch=launch_of(environ or {}, process=process),
        process=process,
        config_digest="0" * 64,
        run_id=f"run-{place.name}",
        metadata={"expected_steps": steps} if steps else {},
    )
    session = begin_session(place, request)
    rows = [record for record in records if isinstance(record, Call | Detail | State)]
    calls, details, states = (sum(isinstance(row, kind) for row in rows) for kind in (Call, Detail, State))
    with session.open_journal() as journal:
        for record in records:
            journal.write(
                encode_row(record)
                if isinstance(record, Call | Completed | Detail | State)
                else encode_mark(cast(Mark, record))
            )
        if ended:
            journal.write(encode_mark(EndMark(len(records), calls, details, states, {})))
    if ended:
        session.end(SessionStatus.COMPLETED, Receipt(len(records), calls, details, states))
    return place

"""What is taken of one event of a trace, and of the text around the events: everything else is skipped unread."""

from decimal import Decimal

from msgspec import Struct, field

Id = int | str | None
"""An id as it was written: numbers of any size stay exact, none goes through a float (B-08)."""


class EventArgs(Struct, gc=False):
    correlation: Id = None
    device: Id = None
    stream: Id = None
    graph_id: Id = field(name="graph id", default=None)


class TraceEvent(Struct, gc=False):
    """One event as it stands in the file. `ts` and `dur` are in microseconds, exact; None: not given."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: Id = None
    tid: Id = None
    ts: Decimal | None = None
    dur: Decimal | None = None
    args: EventArgs | None = None

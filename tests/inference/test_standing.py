"""What stands of an artifact, by columns, is what resolving all of its events says (IN-8)."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paritrace.files import LOCAL
from paritrace.inference.appending import init
from paritrace.inference.artifact import place_of
from paritrace.inference.enveloping import SessionFacts
from paritrace.inference.identities import event_bytes
from paritrace.inference.lines import encode_definition
from paritrace.inference.records import AnyEvent, Capabilities, Loss
from paritrace.inference.resolution import resolve
from paritrace.inference.standing import standing
from paritrace.inference.vocabulary import LossReason
from tests.inference.evidence import ENGINE, RUN, SESSION, claim, context, kernel
from tests.inference.test_resolution import EVENTS

LOST = Loss(context=ENGINE, event_id="lost", source="trace", what="records", reason=LossReason.OUT_OF_RANGE, count=3)
COMPONENT = Capabilities(context=ENGINE, event_id="able", component="engine_adapter", available=True)
ALL: list[AnyEvent] = [
    *EVENTS,
    LOST,
    replace(LOST, count=4),  # of one identity, and another
    COMPONENT,
    replace(COMPONENT, event_id="able again", supported=("requests",)),
    claim("k", "8"),  # of one identity with `claim("k", "9")`, and refers to something else
    claim("k3", "1"),
    kernel("k4", context=context(session_id="other")),
]


def held(folder: Path, events: Sequence[AnyEvent]) -> None:
    """An artifact of these events, also of those that no append would take beside each other."""
    init(folder, run_id=RUN, session=SessionFacts(session_id=SESSION))
    with place_of(folder).path.open("ab") as file:
        for one in {event.context.id: event.context for event in events}.values():
            file.write(encode_definition(one))
        file.writelines(event_bytes(event) + b"\n" for event in events)


@settings(deadline=None, max_examples=60)  # each writes a file
@given(st.lists(st.sampled_from(ALL), max_size=20))
def test_in8_columns_say_what_resolving_everything_says(events: list[AnyEvent]) -> None:
    with TemporaryDirectory() as name:
        held(Path(name), events)
        found = standing(place_of(Path(name)), files=LOCAL)
    whole = resolve(events)
    assert found.conflicts == whole.conflicts
    assert found.dangling == whole.dangling
    told = [one for one in whole.events if isinstance(one, Capabilities | Loss)]
    assert sorted(map(event_bytes, found.told)) == sorted(map(event_bytes, told))

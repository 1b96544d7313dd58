"""Keys that stand twice in a trace: neither value is read, however the text is cut into blocks (IN-10, P2, P9)."""

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritrace.inference.importers import kineto_text
from paritrace.inference.importers.kineto_events import EventArgs, TraceEvent
from paritrace.inference.importers.kineto_text import TraceText
from paritrace.inference.records import Activity, ClockAlignment
from tests.inference.importers.kineto_reading import imported

VALUES = {"name": '"k"', "n\\u0061me": '"k"', "ts": "1.5", "tid": "3", "other": "7"}  # one key has two spellings
ARGUMENTS = ("correlation", "stream", "name", "External id")
Keys = list[str]
EVENTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from((*VALUES, "args")), max_size=5), st.lists(st.sampled_from(ARGUMENTS), max_size=3)
    ),
    max_size=40,
)


def spelled(keys: Keys, arguments: Keys) -> str:
    def members(keys: Keys, values: dict[str, str]) -> str:
        return "{" + ",".join(f'"{key}":{values.get(key, "5")}' for key in keys) + "}"

    return members(keys, VALUES | {"args": members(arguments, {})})


def stand(keys: Keys) -> Counter[str]:
    return Counter(key.replace("\\u0061", "a") for key in keys)


def read_once(keys: Keys, arguments: Keys) -> TraceEvent:
    told, of_args = stand(keys), stand(arguments)
    args = EventArgs(
        correlation=5 if of_args["correlation"] == 1 else None, stream=5 if of_args["stream"] == 1 else None
    )
    return TraceEvent(
        name="k" if told["name"] == 1 else "",
        ts=Decimal("1.5") if told["ts"] == 1 else None,
        tid=3 if told["tid"] == 1 else None,
        args=args if told["args"] == 1 else None,
    )


def num_twice(keys: Keys) -> int:
    return sum(count > 1 and key not in ("other", "External id") for key, count in stand(keys).items())


@settings(deadline=None)
@given(EVENTS, st.integers(8, 400))
def test_what_stands_twice_is_not_read_and_counted_in_blocks_of_any_size(
    events: list[tuple[Keys, Keys]], block: int
) -> None:
    text = TraceText([b'{"traceEvents":[%b]}' % ",".join(spelled(*one) for one in events).encode()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kineto_text, "BLOCK_BYTES", block)
        patch.setattr(kineto_text, "LEAST_BLOCK_BYTES", 8)
        found = [event for batch in text.batches() for event in batch]
    assert text.stop is None
    assert found == [read_once(*one) for one in events]
    twice = sum(num_twice(keys) + keys.count("args") * num_twice(arguments) for keys, arguments in events)
    assert text.oddities.repeated_keys == twice


def test_a_trace_with_a_duration_that_stands_twice_says_so_and_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    kernel = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":5%s,"args":{"device":0}}'
    kernels = ",".join(kernel % more for more in ("", ',"dur":9'))
    path.write_text(f'{{"traceEvents":[{kernels}],"INFO":["Record counts: a = 0"]}}')
    events, account = imported(path)
    first, second = (one for one in events if isinstance(one, Activity))
    assert (first.end_ns, second.end_ns, second.metadata) == (6000, None, {"time": "unfinished"})
    assert (account.complete, account.counts["keys_repeated"]) == (False, 1)
    assert "1 keys stand twice in one object: neither value is read" in account.limits


def test_members_that_stand_twice_are_not_read_and_the_events_of_both_lists_are(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    members = ['"baseTimeNanoseconds":5', '"traceEvents":[{"ph":"X"}]', '"distributedInfo":{"rank":1,"rank":2}']
    path.write_text("{" + ",".join((*members, *members[:2])) + "}")
    events, account = imported(path)
    assert not any(isinstance(one, ClockAlignment) for one in events)
    assert (account.complete, account.counts["events"], account.counts["keys_repeated"]) == (False, 2, 3)
    assert [one for one in account.limits if "twice" in one] == [
        "1 keys stand twice in one object: neither value is read",
        "'baseTimeNanoseconds' stands twice beside the events: neither value is read",
        "'traceEvents' stands twice beside the events: the events of each are read",
    ]


def test_keys_that_are_not_read_may_stand_twice(tmp_path: Path) -> None:
    """Kineto itself writes some of an operator's arguments a second time."""
    path = tmp_path / "trace.json"
    path.write_text('[{"ph":"M","name":"process_name","args":{"name":"python","External id":1,"External id":1}}]')
    _, account = imported(path)
    assert (account.complete, "keys_repeated" in account.counts) == (True, False)

"""The journal of a session and what it comes to (SE-15, SE-18)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import EvidenceError
from paritrace.session.commands import Command, Kind, Reason, Result
from paritrace.session.journal import FORMAT, OPENED, VERSION, Journal, Line, Torn, encoded, journal_of
from paritrace.session.replaying import InFlight, recalled, replayed


def lines(*told: tuple[str, dict[str, Any]], generation: int = 1) -> tuple[Line, ...]:
    head: tuple[str, dict[str, Any]] = (OPENED, {"format": FORMAT, "version": VERSION, "session_id": "s"})
    return tuple(Line(n, 0, generation, what, facts) for n, (what, facts) in enumerate((head, *told), 1))


def test_se15_what_was_written_is_read() -> None:
    written = lines(("run", {"event": "admitted", "target": 4}))
    assert journal_of(b"".join(map(encoded, written))) == Journal(written)


@given(st.integers(1, 400))
def test_se15_a_journal_cut_anywhere_keeps_every_whole_line(cut: int) -> None:
    written = lines(("epoch", {"epoch": 1}), ("epoch", {"epoch": 2}))
    data = b"".join(map(encoded, written))
    kept = data[: max(len(encoded(written[0])), len(data) - cut)]
    whole = kept.count(b"\n")
    tail = len(kept) - kept.rfind(b"\n") - 1
    found = journal_of(kept)
    assert found.lines == written[:whole]
    assert found.torn == ((Torn(len(kept) - tail, tail),) if tail else ())


def test_se15_a_torn_line_amid_a_journal_is_named_and_what_follows_is_read() -> None:
    first, second = lines(("epoch", {"epoch": 1}))
    found = journal_of(encoded(first) + b'{"sequence":\n' + encoded(second))
    assert found == Journal((first, second), (Torn(len(encoded(first)), 13),))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"hello\n", "invalid_document"),
        (encoded(Line(1, 0, 1, "epoch", {})), "invalid_document"),
        (encoded(Line(1, 0, 1, OPENED, {"format": FORMAT, "version": "2.0"})), "newer_version"),
    ],
)
def test_se15_another_file_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(EvidenceError) as refused:
        journal_of(data)
    assert refused.value.code == code


def test_se18_a_command_without_a_result_was_in_flight_and_it_is_said_how_far() -> None:
    found = replayed(
        Journal(
            lines(
                ("command", {"id": "a", "kind": "run", "body": {"steps": 4}}),
                ("result", {"id": "a", "kind": "run", "result": "applied", "step": 0}),
                ("run", {"event": "admitted", "id": "a", "step": 0, "target": 4}),
                ("command", {"id": "b", "kind": "save", "body": {}}),
                ("vote", {"id": "b", "kind": "save", "round": "vote", "verdicts": ["yes"]}),
            )
        )
    )
    assert found.in_flight == (InFlight("b", Kind.SAVE, 1, "vote of generation 1"),)
    assert found.running_to == 4
    assert found.step == 0
    assert found.replies["a"].result is Result.APPLIED
    assert found.commands["a"].body == {"steps": 4}
    assert not found.closed


def test_se18_a_session_that_was_closed_left_nothing_in_flight() -> None:
    found = replayed(Journal((*lines(("run", {"event": "ended", "step": 4})), Line(9, 0, 2, "closed", {}))))
    assert found.closed
    assert found.in_flight == ()
    assert found.running_to is None
    assert (found.generation, found.step) == (2, 4)


def test_se7_an_unknown_result_is_not_the_last_word() -> None:
    found = replayed(
        Journal(
            lines(
                ("command", {"id": "a", "kind": "stop"}), ("result", {"id": "a", "kind": "stop", "result": "unknown"})
            )
        )
    )
    assert [one.id for one in found.in_flight] == ["a"]
    assert found.replies == {}


def test_se7_a_command_is_found_again_by_its_id_with_its_last_result() -> None:
    journal = Journal(
        lines(
            ("command", {"id": "a", "kind": "stop", "body": {}}),
            ("result", {"id": "a", "kind": "stop", "result": "refused", "reasons": ["1: rank_busy: it saves"]}),
            ("result", {"id": "b", "kind": "save", "result": "cancelled"}),
        )
    )
    command, reply = recalled(journal, "a")
    assert command == Command("a", Kind.STOP)
    assert reply is not None
    assert (reply.result, reply.reasons) == (Result.REFUSED, (Reason(1, "rank_busy", "it saves"),))
    never_taken_up, cancelled = recalled(journal, "b")
    assert (never_taken_up, cancelled and cancelled.result) == (None, Result.CANCELLED)
    assert recalled(journal, "c") == (None, None)


def test_se26_the_revision_that_new_ranks_came_up_under_is_not_used_again() -> None:
    told = lines(
        ("revision", {"revision": 6, "step": 4}),
        ("generation", {"event": "started", "config_revision": 6}),
        ("generation", {"event": "ready", "config_revision": 7, "step": 0}),
        ("generation", {"event": "closed"}),
    )
    assert replayed(Journal(told)).config_revision == 7

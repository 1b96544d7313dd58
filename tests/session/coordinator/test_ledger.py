"""One id has one content and one result (SE-7)."""

import pytest

from paritrace.errors import RequestError
from paritrace.session.commands import Command, Fences, Kind, Reply, Result
from paritrace.session.coordinator.ledger import Ledger

STOP = Command("a", Kind.STOP)


def reply(result: Result) -> Reply:
    return Reply("a", Kind.STOP, result, 1, 1)


def test_se7_the_first_result_is_told_to_all_who_ask_the_same() -> None:
    ledger = Ledger({}, {})
    first, fresh = ledger.take(STOP)
    again, fresh_again = ledger.take(Command("a", Kind.STOP, timeout_seconds=3.0))
    assert (fresh, fresh_again) == (True, False)
    assert ledger.unsettled == (Command("a", Kind.STOP, timeout_seconds=3.0),)
    ledger.settle(reply(Result.APPLIED))
    ledger.settle(reply(Result.FAILED))
    assert first.result(0) == again.result(0) == reply(Result.APPLIED)
    assert len(ledger.unsettled) == 0


@pytest.mark.parametrize("other", [Command("a", Kind.CLOSE), Command("a", Kind.STOP, fences=Fences(step=1))])
def test_se7_another_content_under_the_same_id_is_refused(other: Command) -> None:
    ledger = Ledger({}, {})
    ledger.take(STOP)
    with pytest.raises(RequestError) as refused:
        ledger.take(other)
    assert refused.value.code == "command_id_taken"


def test_se7_after_unknown_the_result_itself_is_told() -> None:
    ledger = Ledger({}, {})
    first, _ = ledger.take(STOP)
    ledger.settle(reply(Result.UNKNOWN))
    assert first.result(0).result is Result.UNKNOWN
    later = ledger.find("a")
    assert later is not None
    assert not later.done()
    ledger.settle(reply(Result.APPLIED))
    assert later.result(0).result is Result.APPLIED


def test_se18_what_an_earlier_coordinator_settled_is_told_again() -> None:
    ledger = Ledger({"a": STOP}, {"a": reply(Result.APPLIED)})
    waiting, fresh = ledger.take(STOP)
    assert not fresh
    assert waiting.result(0) == reply(Result.APPLIED)
    assert ledger.find("b") is None

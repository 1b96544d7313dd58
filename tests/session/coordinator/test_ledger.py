"""One id has one content and one result (SE-7)."""

import pytest

from paritrace.errors import RequestError
from paritrace.session.commands import Command, Fences, Kind, Reply, Result
from paritrace.session.coordinator.ledger import REMEMBERED_REPLIES, Ledger

STOP = Command("a", Kind.STOP)


def reply(result: Result) -> Reply:
    return Reply("a", Kind.STOP, result, 1, 1)


def ledger_of(commands: dict[str, Command] | None = None, replies: dict[str, Reply] | None = None) -> Ledger:
    return Ledger(commands or {}, replies or {}, recall=lambda _: (None, None))


def test_se7_the_first_result_is_told_to_all_who_ask_the_same() -> None:
    ledger = ledger_of()
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
    ledger = ledger_of()
    ledger.take(STOP)
    with pytest.raises(RequestError) as refused:
        ledger.take(other)
    assert refused.value.code == "command_id_taken"


def test_se7_after_unknown_the_result_itself_is_told() -> None:
    ledger = ledger_of()
    first, _ = ledger.take(STOP)
    ledger.settle(reply(Result.UNKNOWN))
    assert first.result(0).result is Result.UNKNOWN
    later = ledger.find("a")
    assert later is not None
    assert not later.done()
    ledger.settle(reply(Result.APPLIED))
    assert later.result(0).result is Result.APPLIED


def test_se18_what_an_earlier_coordinator_settled_is_told_again() -> None:
    ledger = ledger_of({"a": STOP}, {"a": reply(Result.APPLIED)})
    waiting, fresh = ledger.take(STOP)
    assert not fresh
    assert waiting.result(0) == reply(Result.APPLIED)
    assert ledger.find("b") is None


def test_se18_what_an_earlier_coordinator_cancelled_while_it_waited_is_not_done_now() -> None:
    ledger = ledger_of({}, {"a": reply(Result.CANCELLED)})  # it was never taken up: the journal has its result alone
    waiting, fresh = ledger.take(STOP)
    assert (fresh, waiting.result(0).result) == (False, Result.CANCELLED)


def test_se7_what_was_settled_long_ago_is_told_from_the_journal_and_never_done_again() -> None:
    asked: list[str] = []

    def recall(command_id: str) -> tuple[Command | None, Reply | None]:
        asked.append(command_id)
        return (STOP, reply(Result.REFUSED)) if command_id == "a" else (None, None)

    ledger = Ledger({}, {}, recall=recall)
    ledger.take(STOP)
    ledger.settle(reply(Result.REFUSED))
    for number in range(REMEMBERED_REPLIES + 1):
        ledger.take(Command(str(number), Kind.STOP))
        ledger.settle(Reply(str(number), Kind.STOP, Result.APPLIED, 1, 1))
    assert [name for name in ("a", "0", "1") if ledger.has_forgotten(name)] == ["a", "0"]
    ledger.recall("a")
    waiting, fresh = ledger.take(STOP)
    assert (fresh, waiting.result(0), asked) == (False, reply(Result.REFUSED), ["a"])
    with pytest.raises(RequestError) as refused:
        ledger.take(Command("a", Kind.CLOSE))
    assert refused.value.code == "command_id_taken"
    assert ledger.has_forgotten("1")  # as many as before
    with pytest.raises(RequestError) as lost:
        ledger.recall("0")
    assert lost.value.code == "command_forgotten"
    assert ledger.has_forgotten("0")

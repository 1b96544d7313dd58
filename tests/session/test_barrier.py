"""The barrier that a rank validates by itself (SE-5, SE-29)."""

from paritrace.session.barrier import Barrier, Standing, Violation, violation_of
from paritrace.session.commands import LIVE, QUIESCENT, Kind

IDLE = Standing(epoch=4, config_revision=2, pending=0, admits=LIVE | QUIESCENT)
PARKED = Standing(epoch=4, config_revision=2, pending=7, admits=LIVE | QUIESCENT)


def test_se5_what_holds_is_no_violation() -> None:
    assert violation_of(Barrier(5, Kind.RUN, 2, 0), IDLE, rank=1) is None


def test_se5_unasserted_revision_and_any_pending_hold_always() -> None:
    assert violation_of(Barrier(5, Kind.STOP), PARKED, rank=1) is None


def test_se29_a_violation_names_rank_field_expected_and_received() -> None:
    assert violation_of(Barrier(7, Kind.RUN, 2, 0), IDLE, rank=1) == Violation(1, "command_epoch", "5", "7")


def test_se29_checks_run_in_the_order_epoch_kind_revision_pending() -> None:
    nothing = Standing(epoch=4, config_revision=2, pending=7, admits=frozenset())
    wrong = Barrier(4, Kind.RUN, 1, 0)
    fields = []
    for barrier, standing in [
        (wrong, nothing),
        (Barrier(5, Kind.RUN, 1, 0), nothing),
        (Barrier(5, Kind.RUN, 1, 0), PARKED),
        (Barrier(5, Kind.RUN, 2, 0), PARKED),
    ]:
        violation = violation_of(barrier, standing, rank=0)
        assert violation is not None
        fields.append(violation.field)
    assert fields == ["command_epoch", "kind", "config_revision", "pending"]

"""Segments out of a journal: where one ends, what it continues, and the pieces that led to a state."""

from hypothesis import given
from hypothesis import strategies as st

from paritrace.session.segments import Begin, End, Segment, lineage_of, segments_of
from tests.session.journals import Told


def found(told: Told) -> tuple[Segment, ...]:
    return segments_of(told.lines)


def steps(told: Told) -> list[tuple[int, int | None]]:
    return [(one.first_step, one.end_step) for one in found(told)]


def lineage(told: Told) -> list[tuple[int, int, int | None]]:
    return [(one.segment.number, one.first_step, one.end_step) for one in lineage_of(found(told))]


def test_se15_stopping_and_going_on_under_the_same_conditions_is_one_segment() -> None:
    told = Told().started().inputs("A").run("admitted", 0).run("parked", 100).run("resumed", 100).run("stopped", 300)
    told.ran(300, 1000)
    (only,) = found(told)
    assert (only.first_step, only.end_step, only.end, only.begin) == (0, 1000, End.PARKED, Begin.BUILT)
    assert (only.first_epoch, only.last_epoch) == (1, 3)
    assert only.inputs_digest == "A"


def test_se15_a_revision_other_inputs_and_a_schedule_each_begin_a_segment() -> None:
    told = Told().started().inputs("A").ran(0, 10).revised(step=10).ran(10, 20).inputs("B").ran(20, 30)
    told.ran(30, 40, schedule={"lr": [[0, 0.1]]}).ran(40, 50)
    assert steps(told) == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)]
    assert [one.config_revision for one in found(told)] == [0, 1, 1, 1, 1]
    assert [one.inputs_digest for one in found(told)] == ["A", "A", "B", "B", "B"]
    assert [one.schedule is not None for one in found(told)] == [False, False, False, True, False]
    assert [one.begin for one in found(told)][1:] == [Begin.CONTINUED] * 4
    assert [one.continues for one in found(told)] == [None, 0, 1, 2, 3]


def test_se15_autosaves_mark_states_and_a_load_of_one_continues_where_it_was_made() -> None:
    told = Told().started().run("admitted", 0).autosaved("autosave/five", 5).run("ended", 10)
    told.autosaved("autosave/ten", 10).add("checkpoint", event="autosave_failed", step=10, rank=1, words="disk full")
    told.revised("load", 5).checkpoint("loaded", "autosave/five", 5).ran(5, 8)
    first, second = found(told)
    assert [(one.step, one.name, one.content) for one in first.marks] == [
        (5, "autosave/five", "files of autosave/five"),
        (10, "autosave/ten", "files of autosave/ten"),
    ]
    assert (second.continues, second.begin) == (0, Begin.LOADED)


def test_se23_inputs_that_were_loaded_at_the_start_are_those_of_the_first_segment() -> None:
    told = Told().started(inputs_digest="A").ran(0, 10).inputs("B").ran(10, 20).started(inputs_digest="A").ran(0, 5)
    assert [one.inputs_digest for one in found(told)] == ["A", "B", "A"]


def test_se24_two_runs_under_one_schedule_each_count_its_offsets_anew() -> None:
    schedule = {"lr": [[0, 0.1]]}
    told = Told().started().ran(0, 10, schedule=schedule).ran(10, 20, schedule=schedule)
    first, second = (one.schedule for one in found(told))
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    assert (first.from_step, second.from_step) == (0, 10)


def test_se24_a_schedule_goes_on_where_its_run_was_parked_and_resumed() -> None:
    told = Told().started().run("admitted", 0, schedule={"lr": [[0, 0.1]]}).run("parked", 5).run("resumed", 5)
    assert len(found(told.run("ended", 9))) == 1


def test_se15_a_load_continues_the_segment_that_the_checkpoint_was_saved_in() -> None:
    told = Told().started().ran(0, 10).checkpoint("saved", "ten", 10).ran(10, 30)
    told.checkpoint("loaded", "ten", 10).revised("load", 10).ran(10, 15)
    last = found(told)[-1]
    assert (last.begin, last.checkpoint, last.continues) == (Begin.LOADED, "ten", 0)
    assert lineage(told) == [(0, 0, 10), (1, 10, 15)]
    assert [piece[0] for piece in [(one.segment.number,) for one in lineage_of(found(told), 0)]] == [0]


def test_se15_a_checkpoint_from_elsewhere_begins_a_lineage() -> None:
    told = Told().started().ran(0, 10).checkpoint("loaded", "foreign", 500).revised("load", 500).ran(500, 510)
    assert lineage(told) == [(1, 500, 510)]
    assert found(told)[-1].marks[0].name == "foreign"


def test_se15_a_rebuild_begins_from_nothing() -> None:
    told = Told().started().ran(0, 10).revised("rebuild", 0).ran(0, 7)
    assert lineage(told) == [(1, 0, 7)]
    assert found(told)[-1].begin is Begin.BUILT


def test_se20_after_a_failure_its_end_is_not_known_and_a_new_generation_loads_from_within_it() -> None:
    told = Told().started().run("admitted", 0).run("parked", 50).checkpoint("saved", "fifty", 50).run("resumed", 50)
    told.add("failure", code="rank_gone", why="killed", step=50, epoch=3).started()
    told.checkpoint("loaded", "fifty", 50).revised("load", 50).ran(50, 60)
    failed, last = found(told)
    assert (failed.end, failed.end_step) == (End.FAILED, None)
    assert (last.generation, last.continues) == (2, 0)
    assert lineage(told) == [(0, 0, 50), (1, 50, 60)]


def test_se18_a_journal_that_ends_in_a_run_leaves_its_segment_open() -> None:
    told = Told().started().run("admitted", 0)
    assert [(one.end, one.end_step) for one in found(told)] == [(End.OPEN, None)]
    told.add("opened", session_id="s").started().ran(0, 5)
    assert [(one.end, one.end_step) for one in found(told)] == [(End.OPEN, None), (End.PARKED, 5)]
    assert lineage(told) == [(1, 0, 5)]


def test_se15_captures_and_marks_stand_in_their_segment() -> None:
    told = Told().started().checkpoint("saved", "zero", 0).ran(0, 10).checkpoint("saved", "ten", 10)
    told.add("capture", id="k", name="look", steps=2, level="op", step=10, epoch=2, config_revision=0).ran(10, 12)
    (only,) = found(told)
    assert [(one.name, one.step) for one in only.marks] == [("zero", 0), ("ten", 10)]
    assert [(one.name, one.step, one.steps) for one in only.captures] == [("look", 10, 2)]


def test_se15_without_a_step_there_is_no_segment() -> None:
    assert found(Told().started()) == ()
    assert lineage_of(()) == ()


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.sampled_from(["same", "revision", "inputs", "load", "save"])), max_size=12
    )
)
def test_se15_a_lineage_has_every_step_to_its_end_once(happenings: list[tuple[int, str]]) -> None:
    told, step, saved = Told().started(), 0, list[tuple[str, int]]()
    for number, (length, what) in enumerate(happenings):
        match what:
            case "revision":
                told.revised(step=step)
            case "inputs":
                told.inputs(f"inputs {number}")
            case "save":
                told.checkpoint("saved", f"c{number}", step)
                saved.append((f"c{number}", step))
            case "load" if saved:
                name, step = saved[length % len(saved)]
                told.checkpoint("loaded", name, step).revised("load", step)
            case _:
                pass
        told.ran(step, step + length)
        step += length
    pieces = lineage_of(found(told))
    assert [n for one in pieces for n in range(one.first_step, one.end_step or 0)] == list(range(step))

"""Links that are kept already are found by their activity, and those that were superseded are not (IN-7)."""

from paritrace.evidence.ids import Ref
from paritrace.inference.kept_links import KeptLinks, said_by
from paritrace.inference.records import Link
from paritrace.inference.vocabulary import Basis, LinkReason
from tests.inference.evidence import ENGINE

ACTIVITY = Ref("trace", "k")


def found(event_id: str, iteration: str, *, activity: Ref = ACTIVITY, supersedes: tuple[str, ...] = ()) -> Link:
    return Link(
        context=ENGINE,
        event_id=event_id,
        activity_ref=activity,
        rule="link/1",
        iteration_ref=Ref("engine", iteration),
        basis=Basis.EXACT_ID,
        supersedes=supersedes,
    )


def kept(*links: Link) -> KeptLinks:
    made = KeptLinks()
    for one in links:
        made.take(one)
    return made


def test_in7_what_is_said_of_an_activity_is_found_with_its_events() -> None:
    one, same, other = found("a", "1"), found("b", "1"), found("c", "2", activity=Ref("trace", "other"))
    held = kept(other, one, same)
    assert sorted(held.of(ACTIVITY)) == sorted([(said_by(one), "a"), (said_by(one), "b")])
    assert list(held.of(Ref("trace", "other"))) == [(said_by(other), "c")]
    assert list(held.of(Ref("another", "k"))) == []
    assert list(kept().of(ACTIVITY)) == []


def test_in7_a_superseded_link_is_gone_wherever_it_stands() -> None:
    old, new = found("é-old", "1"), found("new", "2", supersedes=("é-old",))
    for order in ((old, new), (new, old)):
        assert list(kept(*order).of(ACTIVITY)) == [(said_by(new), "new")]


def test_in7_what_a_link_says_is_all_but_its_id_and_what_it_supersedes() -> None:
    assert said_by(found("a", "1")) == said_by(found("b", "1", supersedes=("x",)))
    reason = Link(
        context=ENGINE, event_id="a", activity_ref=ACTIVITY, rule="link/1", reason=LinkReason.NO_KEY, evidence=("e",)
    )
    assert len({said_by(found("a", "1")), said_by(found("a", "2")), said_by(reason)}) == 3

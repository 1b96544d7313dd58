"""What a reader has to be warned of before a figure is used: pure (AT-8, AT-10)."""

from collections.abc import Iterator, Mapping, Sequence

from paritrace.attempts.details import basis_name, evaluator_name
from paritrace.attempts.gaps import AttemptGap
from paritrace.attempts.result import Caution, OfConfiguration, Warned
from paritrace.attempts.survey import Survey
from paritrace.attempts.tallies import Tally

MOST_NAMED = 20  # ids in one warning; the counts stand in the summary


def cautions(
    configurations: Sequence[OfConfiguration], tallies: Mapping[str, Tally], surveyed: Survey
) -> tuple[Caution, ...]:
    """Returns the warnings of a summary, in the order of the vocabulary."""
    found = [*_of_records(surveyed)]
    for one in configurations:
        found += _of_one(one, tallies[one.id])
    found += across(configurations)
    order = list(Warned)
    return tuple(sorted(found, key=lambda one: (order.index(one.code), one.about, one.sentence)))


def across(configurations: Sequence[OfConfiguration]) -> Iterator[Caution]:
    """Yields what differs between configurations and keeps their figures from being compared as they are."""
    names = tuple(one.id for one in configurations)
    judges = {tuple(_judges(one)) for one in configurations if _judges(one)}
    if len(judges) > 1:
        yield Caution(Warned.DIFFERENT_EVALUATORS, "the configurations were judged by different evaluators", names)
    bases = {tuple(basis_name(cost.basis) for cost in one.costs) for one in configurations if one.costs}
    if len(bases) > 1:
        yield Caution(
            Warned.DIFFERENT_PRICING, "the configurations are priced differently: no cost difference is stated", names
        )
    every = sorted({name for one in configurations for name in one.fields})
    differing = [name for name in every if len({one.fields.get(name, (None,)) for one in configurations}) > 1]
    if differing and len(configurations) > 1:
        yield Caution(Warned.FIELDS_DIFFER_ACROSS, f"the configurations differ in {', '.join(differing)}", names)


def _of_records(surveyed: Survey) -> Iterator[Caution]:
    found = surveyed.identities
    if found.conflicting:
        yield Caution(
            Warned.CONFLICTING_RECORDS,
            f"ids with contradicting records, none of which is chosen: {len(found.conflicting)}",
            tuple(sorted(found.conflicting)[:MOST_NAMED]),
        )
    if found.repeated:
        yield Caution(
            Warned.REPEATED_RECORDS,
            f"attempts seen more than once with the same content, each counted once: {len(found.repeated)}",
            tuple(sorted(found.repeated)[:MOST_NAMED]),
        )


def _of_one(one: OfConfiguration, tally: Tally) -> Iterator[Caution]:
    about = (one.id,)
    if not one.combined:
        names = ", ".join(_judges(one))
        yield Caution(Warned.MIXED_EVALUATORS, f"{one.id} was judged by {names}: no combined pass fraction", about)
    if any(not cost.basis.verified for cost in one.costs):
        yield Caution(Warned.UNVERIFIED_PRICING, f"the pricing basis of {one.id} is not verified", about)
    if len(one.costs) > 1:
        yield Caution(Warned.DIFFERENT_PRICING, f"{one.id} has costs under {len(one.costs)} bases, never added", about)
    if one.differing_fields:
        told = "; ".join(f"{name}: {_values(one.fields[name])}" for name in one.differing_fields)
        yield Caution(Warned.FIELDS_DIFFER, f"inside {one.id} differ {told}", about)
    if one.durations.num_not_fitting:
        yield Caution(
            Warned.SCOPES_DO_NOT_FIT,
            f"attempts of {one.id} with invocations longer than the task: {one.durations.num_not_fitting}",
            about,
        )
    destroyed = one.gaps.get(AttemptGap.RETRY_DESTROYED, 0)
    if destroyed:
        yield Caution(
            Warned.RETRIES_DESTROYED,
            f"retries of {one.id} whose evidence the tool destroyed: {destroyed}",
            about,
        )
    if tally.num_legacy:
        yield Caution(
            Warned.LEGACY_COUNTERS, f"attempts of {one.id} with counters that enter no total: {tally.num_legacy}", about
        )
    left = [r for r in one.reconciled if r.unattributed]
    if left or tally.num_unattributed:
        told = (
            ", ".join(f"{r.figure} {r.unattributed:,}" for r in left)
            or f"something inside attempts: {tally.num_unattributed}"
        )
        yield Caution(Warned.UNATTRIBUTED, f"of {one.id} no attempt accounts for: {told}", about)


def _judges(one: OfConfiguration) -> list[str]:
    return [evaluator_name(judge.evaluator) for judge in one.evaluators if judge.evaluator is not None]


def _values(values: Sequence[str | None]) -> str:
    shown = ["not recorded" if value is None else value for value in values[:MOST_NAMED]]
    more = len(values) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])

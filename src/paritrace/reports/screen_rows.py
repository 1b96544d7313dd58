"""What two runs with other batches share, token by token: counts, the first difference, what follows from a choice."""

from collections.abc import Iterator

from paritrace.compare.judged_words import ROUND_OFF
from paritrace.compare.result import Comparison
from paritrace.compare.token_rows_result import RowChoice, RowDifference, TokenRowsFound
from paritrace.reports.harmless import harmless, shorten
from paritrace.reports.layout import Section, paragraph, shortened
from paritrace.reports.wording import count, figure, listed

CHOICES_SHOWN = 3
NAMES_SHOWN = 3
NAME_COLUMNS = 24


def section(comparison: Comparison, /) -> Section:
    """Returns the rows of tokens; nothing where neither run holds any (CP-27)."""
    found = comparison.token_rows
    lines = () if found is None else shortened(_lines(found))
    return Section(anchor="rows", lines=lines, keep=3, most=11, spaced=True)


def sentence(found: TokenRowsFound) -> str:
    """The finding of a comparison token by token, for the headline."""
    if not found.aligned:
        return "No row could be put side by side: the runs share no token of any output."
    if found.first_beyond is not None:
        return f"Token by token, the runs part beyond round-off {_place(found.first_beyond)}."
    if found.first is not None:
        largest = (
            ""
            if found.largest is None or found.largest.error is None
            else f", largest error {figure(found.largest.error)}"
        )
        return f"Token by token, {found.differ:,} of {count(found.aligned, 'row')} differ{largest}."
    if found.choices:
        choice = found.choices[0]
        return (
            f"Token by token, all rows agree until the tokens of {count(found.num_choices, 'sample')} part, "
            f"first {_sample(choice.sample)} at position {choice.position}."
        )
    if found.agree < found.aligned:
        rows = count(found.aligned, "row")
        return f"Token by token, {found.agree:,} of {rows} agree and none differs; the rest is not comparable."
    return f"Token by token, bits agree in all {count(found.aligned, 'row')}."


def strength(found: TokenRowsFound) -> str:
    """What the statement is measured against."""
    if found.judged:
        rate = "" if found.false_rate is None else f"; false at most 1 in {round(1 / found.false_rate)}"
        told = found.first_beyond
        if told is not None and told.ratio is not None and told.reached is not None:
            return (
                f"ratio {told.ratio:.2g}, up to {told.reached:.2g} stays inside ({found.num_draws} {found.kind}){rate}"
            )
        of = count(found.judged, "judged row")
        return f"inside {ROUND_OFF[found.kind]}: none of {of} is beyond ({found.num_draws} {found.kind})"
    return (
        f"bits only: {found.not_judged or 'no perturbed baseline was recorded, so round-off is not told from a fault'}"
    )


def _lines(found: TokenRowsFound) -> Iterator[str]:
    tokens = count(found.tokens[0], "token")
    yield f"{found.agree:,} of {found.aligned:,} rows of {tokens} agree in every bit; {_rest(found)}"
    if found.first is not None:
        yield f"first difference {_place(found.first)}{_size(found.first)}"
    if found.largest is not None and found.largest != found.first:
        yield f"largest error {_place(found.largest)}{_size(found.largest)}"
    if found.first_beyond is not None:
        yield f"first beyond {_place(found.first_beyond)}{_size(found.first_beyond)}"
    elif found.judged:
        yield f"none of {count(found.judged, 'judged row')} leaves the envelope of {found.num_draws} {found.kind}"
    for scale in [one for one in found.outputs if one.scale is not None][:1]:
        yield f"{_output(scale.output)}: one factor x{scale.scale:.6g} between all samples of the rows that differ"
    non_finite = [one for one in found.outputs if one.non_finite]
    if non_finite:
        number = count(non_finite[0].non_finite, "row")
        yield f"NaN or infinity on one side alone: {number} of {_output(non_finite[0].output)}"
    for choice in found.choices[:CHOICES_SHOWN]:
        yield from paragraph(told_choice(choice), most=2)
    if found.num_choices > CHOICES_SHOWN:
        yield f"tokens of {count(found.num_choices - CHOICES_SHOWN, 'more sample')} part: paritrace explain rows"
    yield from _missing(found)


def _rest(found: TokenRowsFound) -> str:
    told = [f"{found.differ:,} differ"]
    told += [f"{number:,} not comparable ({why})" for why, number in sorted(found.not_comparable.items())]
    if found.after_choice:
        told.append(f"{found.after_choice:,} follow another token")
    if found.ambiguous:
        told.append(f"{found.ambiguous:,} undetermined (token recorded several times, unlike)")
    return ", ".join(told)


def told_choice(choice: RowChoice) -> str:
    """One sample whose tokens part, in words (A-10)."""
    same = (
        f"same prefix of {count(choice.prefix, 'token')}"
        if choice.whole
        else f"{count(choice.prefix, 'token')} before agree, not all seen"
    )
    gap = ""
    if choice.margins is not None:
        margins = f"{figure(choice.margins[0])} and {figure(choice.margins[1])}"
        gap = f"; top-2 gap of {_output(choice.output)} {margins}"
    later = f"; {count(choice.later, 'later row')} follow from it" if choice.later else ""
    return (
        f"{_sample(choice.sample)}, step {choice.step}: {same}, another token at position {choice.position}{gap}{later}"
    )


def _missing(found: TokenRowsFound) -> Iterator[str]:
    for side, number in found.num_samples_only.items():
        names = listed([harmless(name) for name in found.samples_only[side]], most=NAMES_SHOWN)
        more = f" and {number - NAMES_SHOWN:,} more" if number > len(found.samples_only[side]) else ""
        yield f"{side} alone has {count(number, 'sample')}: {names}{more}"
    if found.tokens[1] or found.tokens[2]:
        alone = f"{found.tokens[1]:,} of the baseline, {found.tokens[2]:,} of the candidate"
        yield f"tokens without rows on the other side: {alone}"
    elif found.only_baseline or found.only_candidate:
        alone = f"{found.only_baseline:,} of the baseline, {found.only_candidate:,} of the candidate"
        yield f"rows of one side only: {alone}"
    if found.undefined:
        yield f"{count(found.undefined, 'record')} of rows could not be read: definitions were lost"


def _place(told: RowDifference) -> str:
    return f"at step {told.step}, {_sample(told.sample)} position {told.position}, {_output(told.output)}"


def _size(told: RowDifference) -> str:
    error = "" if told.error is None else f", error {figure(told.error)}"
    if told.values is not None:
        error = f", {told.values[0]:.6g} -> {told.values[1]:.6g}{error}"
    elif not error:
        error = ", error unknown"
    ratio = "" if told.ratio is None else f" (ratio {told.ratio:.2g})"
    return error + ratio


def _sample(name: str) -> str:
    return f"sample {shorten(harmless(name), width=NAME_COLUMNS)}"


def _output(name: str) -> str:
    module, colon, slot = name.partition(":")
    shown = f"{module or 'the root module'} {slot}" if colon else module
    return shorten(harmless(shown.removesuffix(" out")), width=48)

"""Records of a comparison token by token: what agrees, what differs and what could not be told (CP-27)."""

from msgspec import Struct


class RowPlace(Struct, frozen=True):
    """Where a side recorded a row: `call` is a record id, -1 for a tensor that was named; `row` in its tensor."""

    rank: int
    call: int
    row: int
    microbatch: int


class RowDifference(Struct, frozen=True):
    """One token at which an output differs.

    `error`: L2 over the row's samples, relative to the baseline's; None where it cannot be told. `norm_ratio`: the
    candidate's norm over the baseline's. `ratio`, `reached` and `expected` as in a finding, where draws judge it.
    """

    step: int
    output: str
    sample: str
    position: int
    error: float | None
    norm_ratio: float | None
    baseline: RowPlace
    candidate: RowPlace
    values: tuple[float, float] | None = None  # both, where a row is one number
    ratio: float | None = None
    reached: float | None = None
    expected: float | None = None


class RowOutput(Struct, frozen=True):
    """One output at one step. `largest` is the largest error of its rows; `scale` the one factor between them all."""

    step: int
    output: str
    aligned: int
    agree: int
    differ: int
    after_choice: int
    not_comparable: dict[str, int]
    ambiguous: int
    only_baseline: int
    only_candidate: int
    largest: float | None = None
    non_finite: int = 0  # rows that are finite on one side alone
    scale: float | None = None


class RowChoice(Struct, frozen=True):
    """A sample whose tokens part: all that follows in it has other inputs and is no finding of its own (A-10).

    `prefix`: tokens before `position` that agree; `whole` if they are all there, from position 0 on. `margins`: by how
    much the chosen token led the second, per side, where the rows of `output` show that this was the choice.
    """

    step: int
    sample: str
    position: int
    prefix: int
    whole: bool
    output: str = ""
    margins: tuple[float, float] | None = None
    later: int = 0  # rows of this sample from here on that were not compared


class TokenRowsFound(Struct, frozen=True):
    """All outputs together; `outputs` and `choices` hold the first, the counts are of all.

    `tokens` are different (step, sample, position): of both sides, of the baseline alone, of the candidate alone.
    `judged` rows have draws to be judged by, `beyond` of them leave the envelope.
    """

    tokens: tuple[int, int, int]
    aligned: int
    agree: int
    differ: int
    after_choice: int
    not_comparable: dict[str, int]
    ambiguous: int
    only_baseline: int
    only_candidate: int
    outputs: tuple[RowOutput, ...]
    choices: tuple[RowChoice, ...]
    num_choices: int
    first: RowDifference | None
    largest: RowDifference | None
    samples_only: dict[str, tuple[str, ...]]  # side -> samples that it alone has, the first of them
    num_samples_only: dict[str, int]
    judged: int = 0
    beyond: int = 0
    num_draws: int = 0
    false_rate: float | None = None
    kind: str = ""  # of the draws
    first_beyond: RowDifference | None = None
    not_judged: str = ""  # why no row was judged
    undefined: int = 0

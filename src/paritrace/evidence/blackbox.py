"""Records of the black box: what it keeps in memory, and each time it was written (CA-36)."""

from enum import StrEnum

from paritrace.evidence.definition import Definition


class Cause(StrEnum):
    """Why the ring was written."""

    NON_FINITE = "non_finite"  # NaN or +infinity in a summarised slot, a loss or a gradient norm
    LOSS_OUTLIER = "loss_outlier"
    GRADIENT_NORM_OUTLIER = "gradient_norm_outlier"
    OTHER_RANK = "other_rank"  # another rank of the run wrote its ring, or a person asked all of them to
    CRASH = "crash"  # an error that nobody caught, or an exit status other than 0
    SIGTERM = "sigterm"
    USER = "user"


class BlackBox(Definition, frozen=True, tag="black_box"):
    """The calls of level `module` of the last steps are kept in memory and written only on a trigger.

    `steps` and `num_bytes` bound the ring (bytes of lines as they would be written). `rules` state what counts as an
    outlier. `window_ranks` are the ranks that record level `op` at steps 0, 1, 2, 4, 8 …; `basis` says why these.
    `not_watched`: triggers that cannot fire here, and why.
    """

    steps: int
    num_bytes: int
    rules: str
    window_ranks: tuple[int, ...]
    world_size: int
    basis: str
    not_watched: tuple[str, ...] = ()


class Trigger(Definition, frozen=True, tag="trigger"):
    """The ring was written: the rows of `steps` follow this record, and a later one only follows more steps.

    `value` and `threshold` are `float.hex()` (`repr` of a value that is not finite), "" where the cause has none;
    `detail` names the figure, the slot, the class of the error, the other rank's trigger or the user's words. `steps`
    are the steps whose rows follow, empty where the ring held none or `detail` says that it was not written.
    `dropped_steps` and `dropped_rows` fell out of the ring because of its bytes, not of its steps.
    """

    step: int
    cause: Cause
    detail: str
    value: str
    threshold: str
    steps: tuple[int, ...]
    rows: int
    dropped_steps: int = 0
    dropped_rows: int = 0

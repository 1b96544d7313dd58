"""The document of a comparison of two arms of inference runs (IN-17)."""

from msgspec import Struct

from paritrace.inference.comparison.absence import Absent
from paritrace.inference.comparison.compatibility import FieldVerdict
from paritrace.inference.comparison.designs import Found
from paritrace.inference.comparison.gates import GateOutcome
from paritrace.inference.comparison.metrics import Figure
from paritrace.inference.comparison.objectives import Objective
from paritrace.inference.comparison.populations import Populations
from paritrace.inference.comparison.vocabulary import Compatibility, Design, Scale

FORMAT = "paritrace-inference-comparison"
VERSION = "1.0"


class ComparedRun(Struct, frozen=True):
    """One run of an arm: where it lies, its source, how its requests went, its figures by metric (seconds, ratios)."""

    run_id: str
    path: str
    artifact_sha256: str
    source: str
    block: str | None
    populations: Populations
    figures: dict[str, Figure]
    summary_only: bool
    conditions_sha256: str | None = None


class ComparedMetric(Struct, frozen=True):
    """One metric: the candidate's worst and best case, the same where every request's outcome is known.

    `p_value`: of no difference: the larger one of the two cases, 1 where they lie on either side of no difference.
    `p_holm`: adjusted by Holm's procedure over all metrics of this comparison.
    """

    metric: str
    worst: Found
    best: Found
    p_value: float | Absent
    p_holm: float | Absent


class InferenceComparison(Struct, frozen=True, kw_only=True):
    """Two arms: whether they can be compared, their runs, what the evidence supports, the gates, and cautions."""

    format: str = FORMAT
    version: str = VERSION
    compatibility: Compatibility
    fields: tuple[FieldVerdict, ...]
    design: Design
    ratio: Scale
    objectives: tuple[Objective, ...]
    level: float
    baseline: tuple[ComparedRun, ...]
    candidate: tuple[ComparedRun, ...]
    metrics: tuple[ComparedMetric, ...]
    gates: tuple[GateOutcome, ...]
    cautions: tuple[str, ...]

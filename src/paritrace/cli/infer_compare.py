"""`paritrace infer compare`: two arms of inference runs (IN-17)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import ExitStatus, write_report

if TYPE_CHECKING:
    from paritrace.inference.comparison.gates import GateOutcome

DESIGNS = ("paired_blocks", "independent")
_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("baseline", type=_PATH, metavar="A")
@click.argument("candidate", type=_PATH, metavar="B")
@click.option(
    "--design", type=click.Choice(DESIGNS), help="How runs belong together [default: paired where all name blocks]."
)
@click.option("--treatment", "treatments", multiple=True, metavar="FIELD", help="A condition that is meant to differ.")
@click.option("--source", metavar="NAME", help="Whose requests are compared, where a run has those of several.")
@click.option("--gate", "gates", multiple=True, metavar="METRIC<=X", help="B is not worse than X times A.")
@click.option(
    "--slo", "objectives", multiple=True, metavar="NAME:METRIC<=S,…", help="An objective: metric attained.NAME."
)
@click.option("--ratio", type=click.Choice(("log", "means")), default="log", help="Of logarithms, or of plain means.")
@click.option("--exit-code", is_flag=True, help="Return 1 where a gate fails, 3 where one cannot be decided.")
@json_option
def compare(  # noqa: PLR0913  one parameter per option of the synopsis
    baseline: Path,
    candidate: Path,
    design: str | None,
    treatments: tuple[str, ...],
    source: str | None,
    gates: tuple[str, ...],
    objectives: tuple[str, ...],
    ratio: str,
    exit_code: bool,
    as_json: bool,
) -> ExitStatus:
    """Compare the inference runs of A with those of B; each is a run, or a folder of runs.

    Whether they can be compared at all comes first, condition by condition (inference-conditions.json of a run). A run
    counts as one observation, however many requests it has. A failed request is slower than any other, never faster,
    and keeps no objective. With several metrics p values are adjusted by Holm.
    """
    from paritrace.inference.comparison.comparing import Asked, compared
    from paritrace.inference.comparison.gates import gate_of
    from paritrace.inference.comparison.loading import arm_of
    from paritrace.inference.comparison.objectives import objectives_of
    from paritrace.inference.comparison.requirements import require_scipy
    from paritrace.inference.comparison.vocabulary import Design, Scale
    from paritrace.reports.inference.comparison_screen import comparison_screen

    require_scipy()
    asked = Asked(
        design=None if design is None else Design(design),
        treatments=treatments,
        gates=tuple(gate_of(gate) for gate in gates),
        objectives=objectives_of(objectives),
        ratio=Scale.LOG_RATIO if ratio == "log" else Scale.MEANS_RATIO,
    )
    first, second = (arm_of(one, source=source, objectives=asked.objectives) for one in (baseline, candidate))
    found = compared(first, second, asked)
    write_report(found, comparison_screen, as_json=as_json)
    return _status(found.gates) if exit_code else ExitStatus.DONE


def _status(gates: "Sequence[GateOutcome]") -> ExitStatus:
    from paritrace.inference.comparison.vocabulary import GateVerdict

    verdicts = {one.verdict for one in gates}
    if GateVerdict.FAIL in verdicts:
        return ExitStatus.DIFFERENCE
    return ExitStatus.UNDETERMINED if GateVerdict.NOT_EVALUABLE in verdicts else ExitStatus.DONE

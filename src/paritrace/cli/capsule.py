"""`paritrace capsule`: the module call at a finding as a folder that runs by itself, to attach to an issue (CP-26)."""

from pathlib import Path

import click

from paritrace.cli.explain import result_and_id
from paritrace.cli.options import json_option
from paritrace.cli.output import write_json_bytes, write_text
from paritrace.cli.replay_options import finding_of, parameter_names, replay_options, work_folder


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="[RESULT] ID")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The new folder.")
@click.option(
    "--call", "operator", is_flag=True, help="The operator call itself, out of what both runs keep by --dump."
)
@replay_options
@json_option
def capsule(  # noqa: PLR0913  one parameter per option of the synopsis
    arguments: tuple[str, ...],
    output: Path,
    operator: bool,
    deadline: float,
    parameters: tuple[str, ...],
    keep: Path | None,
    as_json: bool,
) -> None:
    """Write the module call at the finding ID, of both sides, into DIR: run.py, tensors, README.

    `python DIR/run.py` computes both sides again with torch and safetensors alone, compares them with what was recorded
    and ends with 0 or 1. Both runs are started again for it, but not with --call. RESULT may be left out as with
    `paritrace explain`.
    """
    from paritrace.automation.capsules import capsule as written
    from paritrace.automation.operator_capsules import operator_capsule
    from paritrace.automation.replays import Replaying
    from paritrace.cli.replay_options import new_folder
    from paritrace.reports.documents import encoded
    from paritrace.reports.harmless import harmless

    result, identity = result_and_id(arguments)
    finding = finding_of(result.comparison, identity)
    if operator:
        with new_folder(output) as folder:
            facts = operator_capsule(result.comparison, finding, folder).facts
    else:
        with work_folder(keep) as work, new_folder(output) as folder:
            how = Replaying(
                work=work, deadline_seconds=deadline, gradients=False, trace=True, names=parameter_names(parameters)
            )
            facts = written(result.comparison, finding, folder, how=how)
    if as_json:
        write_json_bytes(encoded(facts))
        return
    ranks = f", {len(facts.ranks)} ranks that meet over gloo" if facts.collectives else ""
    write_text(harmless(f"{facts.title}{ranks}"))
    write_text(harmless(f"python {output / 'run.py'}"))

"""`paritrace judge`: both sides' call at a finding, on the same inputs, against float64 (CP-26)."""

from pathlib import Path

import click

from paritrace.cli.explain import result_and_id
from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes
from paritrace.cli.replay_options import finding_of, parameter_names, replay_options, work_folder
from paritrace.cli.screens import write_screen
from paritrace.errors import ParitraceError


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="[RESULT] ID")
@replay_options
@json_option
def judge(
    arguments: tuple[str, ...],
    deadline: float,
    parameters: tuple[str, ...],
    keep: Path | None,
    as_json: bool,
) -> None:
    """Compute the module call at the finding ID by both programs and in float64, all on the baseline's inputs.

    Both runs are started again, each until its call is reached. Says whether the two sides compute the same function,
    which round-off cannot hide in float64; the error of each in ULP; and which is nearer to float64, never which is
    right. RESULT may be left out as with `paritrace explain`.
    """
    from paritrace.automation.judging import judge as judged_of
    from paritrace.automation.replays import Replaying
    from paritrace.files import LOCAL
    from paritrace.reports.documents import encoded
    from paritrace.reports.judge_screen import judge_screen

    result, identity = result_and_id(arguments)
    finding = finding_of(result.comparison, identity)
    with work_folder(keep) as work:
        how = Replaying(work=work, deadline_seconds=deadline, names=parameter_names(parameters))
        judged = judged_of(result.comparison, finding, how=how)
    folder = result.directory / "judged"
    screen = judge_screen(judged, directory=str(folder / f"{finding.id}.json"))
    try:
        LOCAL.replace(folder / f"{finding.id}.txt", judge_screen(judged).encode())
        LOCAL.replace(folder / f"{finding.id}.json", encoded(judged))
    except ParitraceError as error:
        note(f"the result was not kept: {error.message}")
        screen = judge_screen(judged)
    if as_json:
        write_json_bytes(encoded(judged))
    else:
        write_screen(screen)

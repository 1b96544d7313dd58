"""`paritrace attempts diverge`: where the trajectories of two sides part (AT-23)."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import ExitStatus, note, write_json_bytes
from paritrace.cli.screens import write_screen
from paritrace.errors import EvidenceError

if TYPE_CHECKING:
    from paritrace.attempts.importers.reading import Evidence
    from paritrace.attempts.trace_matching import Chosen, MatchedTasks
    from paritrace.reports.trajectories.document import Held

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("a", type=_PATH)
@click.argument("b", type=_PATH)
@click.option("--task", default="", metavar="ID", help="The task: its id, or the last part of it [default: all].")
@click.option("--attempt-a", default="", metavar="ID", help="The attempt of A [default: the first with steps].")
@click.option("--attempt-b", default="", metavar="ID", help="The attempt of B [default: the first with steps].")
@click.option("--values", is_flag=True, help="With --json: the beginnings of arguments too, not their digests alone.")
@json_option
def diverge(  # noqa: PLR0913  one parameter per option of the synopsis
    a: Path, b: Path, task: str, attempt_a: str, attempt_b: str, values: bool, as_json: bool
) -> int:
    """Say where two trajectories of one task part, how, what came before it, and whether they come together again.

    A and B are Inspect logs or folders of them, Harbor jobs or trials, or ATIF files. Reordered independent calls are
    not counted. With several tasks: one line each, those whose outcomes differ first.
    """
    from paritrace.attempts.trace_matching import Chosen
    from paritrace.reports.documents import encoded
    from paritrace.reports.harmless import harmless
    from paritrace.reports.trajectories.document import document, held

    evidence, matched = matched_tasks((a, b), Chosen(task=task, attempt_a=attempt_a, attempt_b=attempt_b))
    for refusal in evidence.refusals:
        note(f"not read: {harmless(str(refusal))}")
    if not matched.tasks and not (matched.only_a or matched.only_b or matched.without_steps):
        raise EvidenceError(
            f"neither {a} nor {b} holds a trajectory" + (f" of {task}" if task else ""),
            code="no_trajectories",
            fix="give Inspect logs, Harbor jobs with agent/trajectory.json, or ATIF files; and a task that they have",
        )
    found = held(matched)
    if as_json:
        sources = tuple(evidence.sources[name] for name in sorted(evidence.sources))
        refused = tuple(str(refusal) for refusal in evidence.refusals)
        made = document((str(a), str(b)), matched, found, sources=sources, refused=refused, values=values)
        write_json_bytes(encoded(made))
    else:
        write_screen(screen_of((a, b), matched, found))
    return ExitStatus.DONE


def matched_tasks(paths: tuple[Path, Path], chosen: "Chosen") -> "tuple[Evidence, MatchedTasks]":
    """Read the trajectories of two sides and match them by task.

    Raises:
        RequestError: Refused, `not_found`.
        HostError: Refused: a folder cannot be listed.
    """
    from paritrace.attempts.importers.reading import Evidence
    from paritrace.attempts.importers.trajectories import trajectories
    from paritrace.attempts.trace_matching import match

    evidence = Evidence(Path())
    left, right = (trajectories(path, evidence) for path in paths)
    return evidence, match(left, right, chosen)


def screen_of(paths: tuple[Path, Path], matched: "MatchedTasks", found: "tuple[Held, ...]") -> str:
    """Return the screen of one task, or of many."""
    from paritrace.reports.trajectories.overview import overview
    from paritrace.reports.trajectories.screen import screen

    a, b = (quote(str(path)) for path in paths)
    if len(found) == 1 and len(matched.tasks) == 1 and not (matched.only_a or matched.only_b):
        return screen(found[0], next_line=f"paritrace attempts diverge {a} {b} --json")
    example = min(found, key=lambda one: one.task.a.outcome == one.task.b.outcome).task.a.task_id if found else ""
    next_line = f"paritrace attempts diverge {a} {b} --task {quote(example)}" if example else ""
    return overview((str(paths[0]), str(paths[1])), matched, found, next_line=next_line)

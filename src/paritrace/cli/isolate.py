"""`paritrace isolate`: every module of B on the inputs that A gave its own, so that mistakes do not mix (CP-26)."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from paritrace.cli.options import json_option
from paritrace.cli.output import note, write_json_bytes
from paritrace.cli.replay_options import parameter_names, replay_options, work_folder
from paritrace.cli.screens import write_screen
from paritrace.errors import ParitraceError

if TYPE_CHECKING:
    from paritrace.automation.isolating import Isolating
    from paritrace.automation.replays import Replaying
    from paritrace.compare.judged_result import Isolated


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path), metavar="A")
@click.argument("candidate", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--modules", multiple=True, metavar="PATTERN", help="Only modules of these names, repeatable [default: *]."
)
@click.option("--steps", default="0:1", show_default=True, metavar="A:B", help="Steps whose calls are replayed.")
@click.option(
    "--same-weights", is_flag=True, help="Give B the parameters of A; else its own, so that they are judged too."
)
@click.option("--dump-bytes", metavar="SIZE", help="What A may keep of tensors for it, as for paritrace run.")
@click.option("--module", "pairs", multiple=True, metavar="A=B", help="What B calls a module of A, repeatable.")
@replay_options
@json_option
def isolate(
    baseline: Path,
    candidate: Path,
    **options: object,
) -> None:
    """Replay each module of B on the inputs that A gave to its own, and list those that compute another function.

    Nothing propagates from one module to the next, so several independent mistakes are listed each by itself. Both
    runs are started again: A twice and B once, until the steps are over.
    """
    from paritrace.automation.isolating import isolate as isolated_of
    from paritrace.runs.reading import open_run

    parameters = parameter_names(_texts(options["parameters"]))
    with open_run(baseline) as a, open_run(candidate) as b, work_folder(_path(options["keep"])) as work:
        isolated = isolated_of(a, b, what=_what(options), how=_how(options, work, parameters))
    _deliver(isolated, candidate, as_json=bool(options["as_json"]))


def _what(options: dict[str, object]) -> "Isolating":
    from paritrace.automation.isolating import Isolating
    from paritrace.capture.settings import parse_steps
    from paritrace.cli.replay_options import pairs_of

    modules = pairs_of(_texts(options["pairs"]), option="--module", example="model.norm=norm")
    return Isolating(_texts(options["modules"]) or ("*",), parse_steps(str(options["steps"])), modules)


def _how(options: dict[str, object], work: Path, names: dict[str, str]) -> "Replaying":
    from paritrace.automation.replays import Replaying

    own = not options["same_weights"]
    seconds = float(str(options["deadline"]))
    size = str(options["dump_bytes"] or "")
    return Replaying(
        work=work, deadline_seconds=seconds, gradients=False, own_weights=own, names=names, dump_bytes=size
    )


def _deliver(isolated: "Isolated", candidate: Path, *, as_json: bool) -> None:
    """Keep the result below the candidate's run, and print it; where that cannot be written, say so."""
    from paritrace.files import LOCAL
    from paritrace.reports.documents import encoded
    from paritrace.reports.isolate_screen import isolate_screen

    folder = candidate / "comparisons" / "isolated" / isolated.baseline.digest[:16]
    kept = str(folder / "isolated.json")
    try:
        LOCAL.replace(folder / "isolated.txt", isolate_screen(isolated).encode())
        LOCAL.replace(folder / "isolated.json", encoded(isolated))
    except ParitraceError as error:
        note(f"the result was not kept: {error.message}")
        kept = ""
    if as_json:
        write_json_bytes(encoded(isolated))
    else:
        write_screen(isolate_screen(isolated, directory=kept))


def _path(value: object) -> Path | None:
    return value if isinstance(value, Path) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in cast(tuple[object, ...], value))

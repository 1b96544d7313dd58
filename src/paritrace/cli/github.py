"""Tells GitHub of a result: annotations as workflow commands, the summary of the step (SU-7, SU-14)."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paritrace.cli.output import note, write_text
from paritrace.cli.report_options import Output
from paritrace.errors import ParitraceError

if TYPE_CHECKING:
    from paritrace.compare.checks_result import Checked
    from paritrace.reports.github.annotations import Annotation
    from paritrace.reports.keeping import Keeping

SUMMARY = "GITHUB_STEP_SUMMARY"


def listens(output: Output, environment: Mapping[str, str]) -> bool:
    """Whether GitHub is to be told: asked for with --format github, or this is a step of a workflow."""
    return output.to_github or environment.get("GITHUB_ACTIONS") == "true"


def tell_of_comparison(
    keeping: "Keeping", output: Output, *, fails: bool, environment: Mapping[str, str] = os.environ
) -> None:
    """Tell of a comparison; `fails`: the command ends with 1."""
    if not listens(output, environment):
        return
    from paritrace.reports.formats import OfComparison
    from paritrace.reports.github.annotations import of_comparison
    from paritrace.reports.markdown.of_comparison import markdown

    found = of_comparison(keeping.comparison, fails=fails, here=in_repository(environment))
    text = markdown(OfComparison(comparison=keeping.comparison, rows=()))
    _tell(found, text, output, environment)


def tell_of_check(checked: "Checked", output: Output, *, environment: Mapping[str, str] = os.environ) -> None:
    """Tell of a check."""
    if not listens(output, environment):
        return
    from paritrace.reports.github.annotations import of_check
    from paritrace.reports.markdown.of_check import markdown

    _tell(of_check(checked, here=in_repository(environment)), markdown(checked), output, environment)


def in_repository(environment: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return what finds a recorded file in the repository: by its path from the root or from the present folder."""
    root = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()

    def found(file: str) -> str | None:
        for folder in (root, Path.cwd()):
            path = (folder / file).resolve()
            if path.is_relative_to(root) and path.is_file():
                return path.relative_to(root).as_posix()
        return None

    return found


def _tell(found: "Sequence[Annotation]", text: str, output: Output, environment: Mapping[str, str]) -> None:
    """Print the commands (where a document is on stdout on stderr, which GitHub reads too) and add the summary."""
    from paritrace.reports.github.annotations import commands

    say = write_text if output.to_github and not output.as_json and not output.files else note
    for line in commands(found):
        say(line)
    path = environment.get(SUMMARY)
    if path:
        _add_summary(Path(path), text)
    elif output.to_github:
        note(f"{SUMMARY} is not set: there is no step whose summary could be written")


def _add_summary(path: Path, text: str) -> None:
    """Add the summary behind what the step has said; that it cannot be written is no reason to fail the step."""
    from paritrace.files import LOCAL
    from paritrace.reports.github.summary import within

    try:
        there = LOCAL.read_if_present(path) or b""
        shown = within(text, there=len(there))
        if shown is None:
            note("the step's summary is full (1 MiB): nothing was added to it")
            return
        LOCAL.replace(path, there + (b"\n" if there and not there.endswith(b"\n") else b"") + shown.encode())
    except ParitraceError as error:
        note(f"the step's summary was not written: {error.message}")

"""`paritrace compare FILE FILE` on two profiler's traces: their device work, through the one engine (IN-18)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.other_kinds import form_or_suffix, require_only
from paritrace.cli.output import ExitStatus
from paritrace.cli.progress import progress
from paritrace.cli.report_options import Output
from paritrace.cli.trace_files import is_trace
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.reports.kernel_screen import TracesCompared

FORMATS = ("text", "json")


def are_traces(base: Path, cand: Path) -> bool:
    """Say whether both paths are files that the trace reader takes."""
    return is_trace(base) and is_trace(cand)


def require_trace_options(context: click.Context) -> None:
    """Refuse options that mean nothing for traces.

    Raises:
        RequestError: Refused, `not_for_traces`.
    """
    require_only(
        context,
        lambda given: RequestError(
            f"these files are traces, for which {given} means nothing",
            code="not_for_traces",
            fix="leave it out",
        ),
    )


def compare_traces(base: Path, cand: Path, output: Output, *, exit_code: bool) -> ExitStatus:
    """Compare the device work of two traces.

    Raises:
        RequestError: Refused, `no_such_format`.
        HostError: Refused: a file cannot be read, or the result not written.
    """
    from paritrace.inference.kernel_sequences import compare_kernels
    from paritrace.inference.trace_reading import read_trace
    from paritrace.reports.kernel_screen import trace_ref, traces_compared

    form = form_or_suffix(output, FORMATS, what="traces are compared")
    with progress() as stage:
        stage(f"reading {base}")
        baseline = read_trace(base)
        stage(f"reading {cand}")
        candidate = read_trace(cand)
        stage("comparing")
        kernels = compare_kernels(baseline.facts, candidate.facts)
    compared = traces_compared(trace_ref(baseline, base), trace_ref(candidate, cand), kernels)
    _deliver(compared, output, form=form)
    if not exit_code or (kernels.alike and not (compared.baseline.stopped or compared.candidate.stopped)):
        return ExitStatus.DONE
    return ExitStatus.UNDETERMINED if kernels.alike else ExitStatus.DIFFERENCE


def _deliver(compared: "TracesCompared", output: Output, *, form: str) -> None:
    from paritrace.cli.output import write_json_bytes
    from paritrace.cli.screens import write_screen
    from paritrace.files import LOCAL
    from paritrace.reports.kernel_screen import kernel_screen, traces_document

    if output.path is not None:
        LOCAL.replace(output.path, traces_document(compared) if form == "json" else kernel_screen(compared).encode())
    elif form == "json":
        write_json_bytes(traces_document(compared))
    else:
        write_screen(kernel_screen(compared))

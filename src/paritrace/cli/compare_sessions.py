"""`paritrace compare DIR DIR` on two resident sessions: their steps, segment by segment (SE-15)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from paritrace.cli.other_kinds import form_or_suffix, require_only
from paritrace.cli.output import ExitStatus
from paritrace.cli.report_options import Output
from paritrace.errors import RequestError

if TYPE_CHECKING:
    from paritrace.session.segment_comparison import SegmentComparison

FORMATS = ("text", "json")


def are_sessions(base: Path, cand: Path) -> bool:
    """Say whether both paths are directories of sessions."""
    from paritrace.session.comparing import is_session

    return is_session(base) and is_session(cand)


def require_session_options(context: click.Context) -> None:
    """Refuse options that mean nothing for sessions.

    Raises:
        RequestError: Refused, `not_for_sessions`.
    """
    require_only(
        context,
        lambda given: RequestError(
            f"these directories are sessions, for which {given} means nothing",
            code="not_for_sessions",
            fix="leave it out; to compare calls, name captures: DIR/captures/NAME",
        ),
    )


def compare_two_sessions(base: Path, cand: Path, output: Output, *, exit_code: bool) -> ExitStatus:
    """Compare two sessions by segment.

    Raises:
        RequestError: Refused: `no_such_format`, `not_a_session`.
        EvidenceError: Refused: a journal is another program's or a newer one's.
        HostError: Refused: a file cannot be read, or the result not written.
    """
    from paritrace.session.comparing import compare_sessions

    form = form_or_suffix(output, FORMATS, what="sessions are compared")
    found = compare_sessions(base, cand)
    _deliver(found, (base, cand), output, form=form)
    return _status(found) if exit_code else ExitStatus.DONE


def _status(found: "SegmentComparison") -> ExitStatus:
    """1 where a condition or a state differs, 3 where none is known to and not all of them are known."""
    from paritrace.session.segment_comparison import Agreement

    agreements = {stretch.agreement for stretch in found.stretches}
    agreements |= {pair.agreement for pair in found.states} | {one.agreement for one in found.differences}
    if Agreement.DIFFERENT in agreements:
        return ExitStatus.DIFFERENCE
    complete = agreements == {Agreement.EQUAL} and not found.alone and bool(found.states)
    return ExitStatus.DONE if complete else ExitStatus.UNDETERMINED


def _deliver(found: "SegmentComparison", paths: tuple[Path, Path], output: Output, *, form: str) -> None:
    from msgspec import json as msgspec_json

    from paritrace.cli.output import write_json_bytes
    from paritrace.cli.screens import write_screen
    from paritrace.files import LOCAL
    from paritrace.reports.harmless import harmless
    from paritrace.session.segment_words import words_of

    document = msgspec_json.format(msgspec_json.encode(found), indent=2) + b"\n"
    screen = "".join(f"{harmless(line)}\n" for line in words_of(found, *paths))
    if output.path is not None:
        LOCAL.replace(output.path, document if form == "json" else screen.encode())
    elif form == "json":
        write_json_bytes(document)
    else:
        write_screen(screen)

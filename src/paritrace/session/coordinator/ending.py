"""Words for how a rank's process ended, from evidence and nothing else (SE-12)."""

import signal
from typing import assert_never

from paritrace.process.stop_facts import Exited, Signalled
from paritrace.session.engines.seam import ExitEvidence


def words_of(evidence: ExitEvidence | None) -> str:
    """Return how a process ended, who sent what included; that its line closed is all that is known without one."""
    if evidence is None or (evidence.wait is None and not evidence.words):
        return "its line is closed, and how it ended is not known"
    if evidence.wait is None:
        return evidence.words
    match evidence.wait:
        case Exited(code):
            told = f"exited with status {code}"
        case Signalled(number):
            ours = "sent by us" if number in evidence.signals_by_us else "not sent by us"
            told = f"ended by {_name(number)}, {ours}"
        case _:
            assert_never(evidence.wait)
    return f"{told}; {evidence.words}" if evidence.words else told


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own
        return f"signal {number}"

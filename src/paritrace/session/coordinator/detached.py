"""A coordinator behind the terminal: its opening comes on standard input, what it says goes into its log."""

import sys

from msgspec import json as msgspec_json

from paritrace.errors import ParitraceError
from paritrace.session.coordinator.announcing import Announcer
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.coordinator.serving import Begun, serve

TROUBLE = 2


def main() -> None:
    """Serve until the session is closed."""
    opening = msgspec_json.decode(sys.stdin.buffer.read(), type=Opening)
    try:
        serve(opening, begun=_begun, announcer=Announcer(_say))
    except ParitraceError as error:
        _say(f"{error.outcome.value}: {error.message} [{error.code}]")
        for detail in error.details:
            _say(f"    - {detail}")
        _say(f"    fix: {error.fix}")
        sys.exit(TROUBLE)


def _begun(found: Begun) -> None:
    _say(f"session {found.record.session_id} at {found.record.url}")
    for one in found.in_flight:
        _say(f"in flight when the last coordinator ended: {one.kind.value} {one.id} ({one.last})")


def _say(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.stderr.flush()

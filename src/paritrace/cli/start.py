"""Where the program `paritrace` starts: `record` has a short way to its command, every other line the frame (PF-16)."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and end it with the command's status."""
    words = sys.argv[1:]
    if words[:1] == ["record"]:
        sys.exit(_record(words))
    from paritrace.cli.entry import main as read_all

    read_all(words)


def _record(words: list[str]) -> int:
    from paritrace.cli.plain_record import plain_record
    from paritrace.cli.recorded import status_of_recorded
    from paritrace.cli.settings_places import here

    try:
        asked = plain_record(words, os.environ, folder=here())
        if asked is not None:
            status = status_of_recorded(asked)
            from paritrace.cli.output import flush

            flush()
            return status
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the top: whatever comes, a person gets a reason
        from paritrace.cli.entry import status_after
        from paritrace.cli.invocation import Invocation

        return status_after(error, Invocation(), words=words, asked_for_json="--json" in words)
    from paritrace.cli.entry import status_of

    return status_of(words)

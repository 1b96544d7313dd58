"""Where the words and numbers of a page lead: anchors inside one file, or addresses of a server (P9)."""

from collections.abc import Collection
from typing import Protocol

from paritrace.reports.html.page import CallRef


class Links(Protocol):
    """Gives the target of a link; "" where there is nothing to lead to, and then the text stands without a link."""

    def evidence(self, anchor: str, /) -> str:
        """What an anchor of the screen or a figure rests on: `F1`, `ladder.forward`, `counts.paired`."""
        ...

    def call(self, call: CallRef, /) -> str: ...

    def source(self, side: str, file: str, line: int, /) -> str: ...

    def run(self, side: str, /) -> str: ...


def fragment(identity: str, /) -> str:
    """Returns an id that is valid in HTML and in an address for any anchor: letters, digits, `-`, `_` and `.`."""
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-_.") else f"_{ord(char):x}" for char in identity
    )


class InFile:
    """Links of a report that is one file: to what it holds, and to nothing else."""

    def __init__(self, *, anchors: Collection[str], calls: Collection[tuple[str, int, int]] = ()) -> None:
        self._anchors = frozenset(anchors)
        self._calls = frozenset(calls)

    def evidence(self, anchor: str, /) -> str:
        return f"#evidence-{fragment(anchor)}" if anchor in self._anchors else ""

    def call(self, call: CallRef, /) -> str:
        key = (call.side, call.rank, call.record_id)
        return f"#call-{call.side}-{call.rank}-{call.record_id}" if key in self._calls else ""

    def source(self, side: str, file: str, line: int, /) -> str:
        return ""

    def run(self, side: str, /) -> str:
        return ""

"""What is behind a figure of attempts, as text (AT-17, P9)."""

from paritrace.attempts.explaining import Explained, Place
from paritrace.reports.harmless import harmless
from paritrace.reports.wording import count


def explained_text(found: Explained) -> str:
    """Returns one line for each attempt, and below it the places that it was read from."""
    lines = [f"{harmless(found.figure)}: evidence of {count(len(found.evidence), 'attempt')}"]
    for one in found.evidence:
        lines.append(f"  {harmless(one.attempt_id) or 'the configuration'}: {harmless(one.said)}")
        lines += [f"      {_place(place)}" for place in one.places]
    return "\n".join(lines) + "\n"


def _place(place: Place) -> str:
    line = "" if place.line is None else f":{place.line}"
    member = f" member {harmless(place.member)}" if place.member else ""
    pointer = f" {harmless(place.pointer)}" if place.pointer else ""
    digest = "not there" if place.sha256 is None else f"sha256 {place.sha256[:12]}"
    return f"{harmless(place.path)}{line}{member}{pointer} ({digest})"

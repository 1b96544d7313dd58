"""The record of one narrowing under way: its sides, what is asked, its folder (CP-15)."""

from msgspec import Struct

from paritrace.automation.narrow_folder import Folder
from paritrace.automation.narrow_records import Asked
from paritrace.automation.narrow_sides import AskedSide
from paritrace.automation.rerun import DEADLINE_SECONDS
from paritrace.files import LOCAL, Files

BASELINE, CANDIDATE = "baseline", "candidate"


class Narrowing(Struct, frozen=True):
    """One narrowing: its sides, what is asked, its folder."""

    baseline: AskedSide
    candidate: AskedSide
    asked: Asked
    folder: Folder
    made_by: str
    deadline_seconds: float = DEADLINE_SECONDS
    files: Files = LOCAL

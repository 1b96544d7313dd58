"""What a person sees of an error that a program of theirs did not catch (P8)."""

import pickle
import traceback

from paritrace.errors import HostError, RequestError


def test_p8_a_traceback_ends_with_how_to_mend_it() -> None:
    error = RequestError("RUN is not there", code="no_artifact", fix="make one: `paritrace infer init RUN`")
    assert "".join(traceback.format_exception(error)).splitlines() == [
        "paritrace.errors.RequestError: RUN is not there",
        "fix: make one: `paritrace infer init RUN` [no_artifact]",
    ]


def test_p8_every_single_thing_that_is_wrong_is_listed_once_also_behind_a_process_border() -> None:
    error = HostError("two ranks failed", code="rerun_failed", fix="mend both", details=("rank 0", "rank 1"))
    again = pickle.loads(pickle.dumps(error))
    assert again.__notes__ == error.__notes__ == ["  - rank 0\n  - rank 1\nfix: mend both [rerun_failed]"]

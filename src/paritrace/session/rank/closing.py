"""The end of a rank's work, in every path on the work thread: `close`, then the process group (SE-34)."""

import sys

from paritrace.session.rank import capturing
from paritrace.session.rank.place import Outcome, Place, Task


class Closing:
    """Closes once, whoever asks first: the command, or the way out of the process."""

    def __init__(self) -> None:
        self.done = False
        self.by_command = False

    def __call__(self, place: Place) -> None:
        """Let go of everything. Raises what `close` raises, after the process group has been left."""
        if self.done:
            return
        self.done = True
        place.context.enter("closing")
        try:
            capturing.end(place)
            if place.workload is not None:
                place.workload.close(place.context)
        finally:
            leave_process_group()


def close(task: Task, closing: Closing) -> Outcome:
    """The last round there is."""
    task.releases()
    closing(task.place)
    closing.by_command = True
    return Outcome(facts={"step": task.place.step})


def leave_process_group() -> None:
    """Leave torch's default group where the workload has joined one and left it standing."""
    if "torch.distributed" not in sys.modules:
        return
    from paritrace.session.pytorch.groups import leave

    leave()

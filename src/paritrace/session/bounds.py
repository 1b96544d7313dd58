"""Every wait of a session with its length and its reason: printed by `session status --bounds` (SE-13, SE-21)."""

from msgspec import Struct


class Bound(Struct, frozen=True, forbid_unknown_fields=True):
    """One wait. `seconds` may be set at `session start --bound NAME=SECONDS`."""

    name: str
    seconds: float
    reason: str


BOUNDS = (
    Bound("vote", 30.0, "a rank votes between two steps or from its control thread; longer means that it is stuck"),
    Bound("acknowledge", 10.0, "control threads answer at once; only a stopped or starved process does not"),
    Bound("park", 300.0, "one step at most is under way; past this it is taken for stuck"),
    Bound("slack", 5.0, "on top of a caller's own time: the word of a result has to come back, too"),
    Bound("act", 600.0, "a configuration, a copy or a capture is installed"),
    Bound("inspect", 600.0, "a checkpoint is read and checked on the host"),
    Bound("load", 1800.0, "a checkpoint is put onto the device"),
    Bound("save", 1800.0, "a checkpoint is written and made durable"),
    Bound("preview", 600.0, "one rank renders while the others are parked"),
    Bound("prepare_inputs", 1800.0, "inputs are read on the host while steps go on"),
    Bound("install_inputs", 600.0, "inputs are put onto the device while parked"),
    Bound("rebuild", 3600.0, "device state is made anew, compiling included"),
    Bound("start", 3600.0, "ranks load and build; they declare shorter ones themselves"),
    Bound("join", 60.0, "a process imports torch and dials in"),
    Bound("close", 30.0, "`close` of the workload, then the process group"),
    Bound("term_grace", 2.0, "between SIGTERM and SIGKILL: time for a last line, too short to hang on"),
    Bound("reap", 2.0, "a killed rank is waited for so long, then reported not_reaped (a driver may hold it)"),
    Bound("unresponsive", 5.0, "five heartbeats missed: stopped, in D state, or its GIL is held"),
    Bound("stalled", 30.0, "no progress for so long, or for ten times the rolling p99 of a step if that is longer"),
    Bound("fail_stop", 0.0, "a finding becomes a fail-stop past this; 0: never, a finding is only said"),
    Bound("process_group", 3600.0, "the process group's own timeout, the last backstop: `ctx.group_timeout_seconds`"),
)


def bounds_with(given: dict[str, float], /) -> dict[str, float]:
    """Return every bound by its name, those given in place of the ones above. Raises KeyError for an unknown name."""
    found = {one.name: one.seconds for one in BOUNDS}
    for name, seconds in given.items():
        if name not in found:
            raise KeyError(name)
        found[name] = seconds
    return found

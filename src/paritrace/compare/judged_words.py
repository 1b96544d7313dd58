"""What an envelope says of one place, in words: the strength that stands under a finding (CP-8b, CP-10, CP-10a)."""

from paritrace.compare.envelope import APPEARED, Excess
from paritrace.compare.gains import Gain

PERTURBED, REPEATS = "perturbed baselines", "repeats"
ROUND_OFF = {PERTURBED: "round-off", REPEATS: "noise"}
WHOLE = 100.0  # from here on a ratio is told as a whole number
MAX_TOLD = 2  # arguments and results by name; the rest is counted


def beyond(excess: Excess, gain: Gain | None, *, num_draws: int, kind: str, jointly: bool) -> str:
    """Of what leaves the envelope: how far, what came into a call, and how often that happens without a cause.

    `jointly`: several ranks were compared, and the rate is that of all of them together.
    """
    over = ", all ranks together" if jointly else ""
    rate = f"false at most 1 in {num_draws + 1}{over}"
    if excess.figure == APPEARED:
        return f"beyond {ROUND_OFF[kind]}: values that are not finite, in none of {num_draws} {kind}; {rate}"
    came_in = "" if gain is None else f"; {_came_in(gain)}"
    return (
        f"beyond {ROUND_OFF[kind]}: {_told(excess)}{_shift(excess)}; the most extreme of {num_draws} left-out {kind}"
        f" reached {excess.reached:.1f}{came_in}; {rate}"
    )


def behind(module: str, excess: Excess, *, num_draws: int, kind: str) -> str:
    """Of an origin that is not judged itself; `module` is the first after it that is out."""
    return (
        f"not judged itself; {module or 'the root module'}, the first behind it that is judged and out, is beyond"
        f" {ROUND_OFF[kind]}: {_told(excess)}; up to {excess.reached:.1f} stays inside ({num_draws} {kind})"
    )


def inside(excess: Excess, *, kind: str) -> str:
    """Of something that differs and is not out."""
    if excess.unbounded:
        return f"not beyond {ROUND_OFF[kind]}: {_told(excess)}; one of the {kind} has values that are not finite"
    return f"inside {ROUND_OFF[kind]}: {_told(excess)}; up to {excess.reached:.1f} stays inside"


def no_round_off(around: Excess | None) -> str:
    """Of other whole numbers; `around`: how far the call is that encloses them, where one is judged.

    Of its own: a number that Python made of a rounded one and passed as an argument is no tensor, and not seen here.
    """
    told = "no round-off of its own: whole numbers alone go in and come out"
    if around is None:
        return told
    size = "beyond round-off" if around.beyond else inside(around, kind=PERTURBED)
    return f"{told}; what the call around them gives is {size}"


def consequence(kind: str) -> str:
    """Of something that is out, as what came in is."""
    return f"beyond {ROUND_OFF[kind]}, and so is what came in: a consequence, or a part of one"


def inside_by_gain(excess: Excess, gain: Gain, *, num_draws: int, kind: str) -> str:
    """Of other code that adds no more error to what came in than it adds in draws."""
    came_in = 0.0 if gain.came_in is None else gain.came_in
    return (
        f"inside {ROUND_OFF[kind]}: its output has {excess.error:.2g} times the error of its input ({came_in:.1e}),"
        f" {excess.expected:.2g} times is usual of {num_draws} {kind} and up to {excess.reached * excess.expected:.2g}"
        " stays inside"
    )


def told_otherwise(one_sided: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """How a call is made on one side alone; empty where both make it alike."""
    sides = zip(("baseline", "candidate"), one_sided, strict=True)
    return "; ".join(f"{_names(names)} on the {side} alone" for side, names in sides if names)


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - MAX_TOLD
    return ", ".join(names[:MAX_TOLD]) + (f" and {more} more" if more > 0 else "")


def _came_in(gain: Gain) -> str:
    if gain.came_in is None:
        return "what came in was not summarised"
    if gain.gain is None:
        return "nothing that differs came in"
    usual = "" if gain.expected is None else f" ({gain.expected:.2g} is usual)"
    return f"input error {gain.came_in:.1e}, gain {gain.gain:.2g}{usual}"


def _shift(excess: Excess) -> str:
    """The one-sided shift, where it is not what the ratio speaks of."""
    if excess.figure == "bias":
        return ""
    return f", bias {excess.bias:.1f} standard errors (up to {excess.bias_reached:.1f} inside)"


def _told(excess: Excess) -> str:
    if excess.figure == "bias":
        shift = f"shifted to one side by {excess.ratio:.1f} standard errors"
        return f"{shift}, error {excess.error:.1e}, expected {excess.expected:.1e}"
    what = "error" if excess.figure == "error" else "norm off, error"
    ratio = f"{excess.ratio:,.0f}" if excess.ratio >= WHOLE else f"{excess.ratio:.2g}"
    return f"{what} {excess.error:.1e}, expected {excess.expected:.1e}, ratio {ratio}"

"""Which rounds a kind of command takes, who does them, and how long they may take (SE-5, SE-6, SE-21)."""

from types import MappingProxyType

from paritrace.session.commands import LIVE, Body, Kind
from paritrace.session.messages import RoundName

_ROUNDS = MappingProxyType(
    {
        Kind.INPUTS: (RoundName.PREPARE, RoundName.VOTE, RoundName.ACT, RoundName.PUBLISH),
        Kind.CLOSE: (RoundName.CLOSE,),
    }
)
_PARKING = (RoundName.RESERVE, RoundName.PARK)

BEFORE_BARRIER = frozenset({RoundName.PREPARE, RoundName.RESERVE, RoundName.PARK})
"""Rounds that leave the epoch as it was: what goes wrong in them is released."""
CONTROL = frozenset({RoundName.RESERVE, RoundName.RELEASE, RoundName.PARK, RoundName.ABORT, RoundName.RESUME})
"""Rounds of the control thread, for every kind."""
CHANGES_RESIDENT = frozenset({Kind.RUN, Kind.CONFIGURE, Kind.LOAD, Kind.INPUTS, Kind.REBUILD})
"""Kinds of which an act on some ranks and not on others leaves the ranks apart: that is failed, not refused."""
ADDS_REVISION = frozenset({Kind.CONFIGURE, Kind.LOAD, Kind.REBUILD})
"""Kinds that add one to the configuration's revision; nothing else does (SE-26)."""

ENDLESS = 2**62
"""The target of somebody else's loop: it goes on until it ends by itself, or is stopped."""

_BOUND_OF = MappingProxyType(
    {
        (Kind.LOAD, RoundName.VOTE): "inspect",
        (Kind.RUN, RoundName.ACT): "acknowledge",
        (Kind.SAVE, RoundName.ACT): "save",
        (Kind.LOAD, RoundName.ACT): "load",
        (Kind.PREVIEW, RoundName.ACT): "preview",
        (Kind.INPUTS, RoundName.ACT): "install_inputs",
        (Kind.REBUILD, RoundName.ACT): "rebuild",
    }
)
_BOUND_OF_ROUND = MappingProxyType(
    {
        RoundName.PARK: "park",
        RoundName.PREPARE: "prepare_inputs",
        RoundName.VOTE: "vote",
        RoundName.ACT: "act",
        RoundName.PUBLISH: "install_inputs",
        RoundName.CLOSE: "close",
    }
)


def brings_inputs(kind: Kind, body: Body) -> bool:
    """Return whether a command changes inputs together with values: they are prepared as those of `inputs` are."""
    return kind in {Kind.CONFIGURE, Kind.REBUILD} and "inputs" in body


def rounds_of(kind: Kind, body: Body, *, running: bool) -> tuple[RoundName, ...]:
    """Return the rounds of a command in their order; while steps go on, all ranks park at one step first.

    Inputs are prepared before that, by whatever command they come: a vote is waited for by parked ranks (SE-6, SE-9).
    """
    rounds = _ROUNDS.get(kind, (RoundName.VOTE, RoundName.ACT))
    if brings_inputs(kind, body):
        rounds = (RoundName.PREPARE, *rounds)
    if not running or not (kind in LIVE or kind is Kind.CLOSE):
        return rounds
    parked_from = 1 if rounds[0] is RoundName.PREPARE else 0
    return (*rounds[:parked_from], *_PARKING, *rounds[parked_from:])


def prepares(kind: Kind, body: Body) -> bool:
    """Return whether a command begins with a preparation, which may take long: no rank is parked for it."""
    return rounds_of(kind, body, running=False)[0] is RoundName.PREPARE


def is_work(kind: Kind, name: RoundName) -> bool:
    """Return whether the work thread does this round; the control thread answers the others at once."""
    return name not in CONTROL and (kind, name) not in {(Kind.RUN, RoundName.ACT), (Kind.STOP, RoundName.VOTE)}


def bound_of(kind: Kind, name: RoundName) -> str:
    """Return the name of the bound that a round is waited for."""
    return _BOUND_OF.get((kind, name)) or _BOUND_OF_ROUND.get(name, "acknowledge")

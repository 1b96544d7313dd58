"""Sequences of iterations, ranges and kernels as neutral records of the correspondence engine (CP-1, IN-12, IN-18)."""

from collections.abc import Hashable, Sequence

from paritrace.correspondence.records import Records, Scopes

_ALL = "all"


def sequence_records(keys: Sequence[Hashable], /, *, streams: Sequence[Hashable] | None = None) -> Records:
    """Return records that have a key and a place alone: nothing else may say that two belong together.

    Args:
        keys: equal where two records mean the same, in execution order.
        streams: inside what order means something; None: all are one sequence.
    """
    size = len(keys)
    return Records(
        streams=[_ALL] * size if streams is None else streams,
        layers=[0] * size,
        scopes=[0] * size,
        entries=[False] * size,
        keys=keys,
        inputs=[None] * size,
        links=[-1] * size,
        replays=[False] * size,
        labels=[""] * size,
        tree=Scopes(parents=[0], names=[""], facts=[""]),
        anchor_inputs=_nothing,
    )


def _nothing(_: int) -> None:
    """No inputs were recorded."""
    return

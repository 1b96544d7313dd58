"""Every world that can be reached from one: what is wrong in any of them is told with the moves that lead there."""

import random
from hashlib import blake2b
from typing import NamedTuple

from msgspec import msgpack
from msgspec.structs import replace

from tests.session.worlds import PAID_BY, Move, Script, World, Wrong, after, check_end, moves_of, opened

_LONGEST_WALK = 20_000  # moves; every walk ends far below
_FAULT_WEIGHT, _ASK_WEIGHT = 0.03, 0.1  # so that faults and commands meet a session at every point of its work


class Explored(NamedTuple):
    """What an exploration has seen. `results`: how each command was settled, over all ends."""

    states: int
    ends: int
    results: frozenset[tuple[str, str]]


class _Digests:
    """Digests of the parts of worlds, by the part's identity: most moves leave most parts as they were."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, bytes]] = {}

    def of(self, part: object, *, rank: int) -> bytes:
        """Return the digest of what belongs to a rank, whatever number that has."""
        known = self._known.get(id(part))
        if known is None:
            bare = msgpack.encode(part).replace(b"\xa4rank" + bytes((rank,)), b"\xa4rank\x00")
            known = self._known[id(part)] = (part, _hashed(bare))  # kept alive, so that its identity stays its own
        return known[1]

    def of_world(self, world: World) -> bytes:
        """Return what tells worlds apart: all but words for people, and which of the ranks has which number."""
        state, under = world.coordinator, world.coordinator.under
        ranks = [
            self.of(process, rank=rank)
            + self.of(state.ranks[rank], rank=rank)
            + (self.of(under.answers[rank], rank=rank) if under is not None and under.answers[rank] else b"")
            + bytes((rank in state.ended,))
            for rank, process in enumerate(world.processes)
        ]
        shared = replace(
            state,
            ranks=(),
            ended=frozenset(),
            under=None
            if under is None
            else replace(under, answers=(), reply=None if under.reply is None else under.reply.result),
            bounds={},
            asked={},  # as many as the world says
            replies={},  # as the world has them in `settled`
            error=(),
        )
        rest = replace(world, coordinator=shared, processes=(), settled=tuple(sorted(world.settled)))
        return _hashed(b"".join((*sorted(ranks), msgpack.encode(rest))))


def _hashed(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def explore(script: Script, *, world_size: int) -> Explored:
    """Visit every reachable world, depth first. Raises Wrong with the way to what is wrong."""
    first = opened(script, world_size=world_size)
    digests = _Digests()
    seen, way = {digests.of_world(first)}, list[Move]()
    ends, results = 0, set[tuple[str, str]]()
    trail = [(first, list(moves_of(first)))]
    while trail:
        world, moves = trail[-1]
        if not moves:
            trail.pop()
            del way[-1:]
            continue
        way.append(moves.pop())
        then = _after(world, way)
        digest = digests.of_world(then)
        if digest in seen:
            way.pop()
            continue
        seen.add(digest)
        following = list(moves_of(then))
        if not following:
            _end(then, way)
            ends += 1
            results.update(then.settled)
        trail.append((then, following))
    return Explored(len(seen), ends, frozenset(results))


def walk(script: Script, *, world_size: int, seed: int) -> Explored:
    """Go one random way to its end. Raises Wrong with the way there."""
    choice = random.Random(seed)
    world, way = opened(script, world_size=world_size), list[Move]()
    while (moves := list(moves_of(world))) and len(way) < _LONGEST_WALK:
        way.append(choice.choices(moves, [_weight(move) for move in moves])[0])
        world = _after(world, way)
    _end(world, way)
    return Explored(len(way) + 1, 1, frozenset(world.settled))


def _weight(move: Move) -> float:
    return _FAULT_WEIGHT if move[0] in PAID_BY else _ASK_WEIGHT if move[0] == "ask" else 1.0


def _after(world: World, way: list[Move]) -> World:
    try:
        return after(world, way[-1])
    except AssertionError as wrong:
        raise _told(wrong, way) from wrong


def _end(world: World, way: list[Move]) -> None:
    try:
        check_end(world)
    except AssertionError as wrong:
        raise _told(wrong, way) from wrong


def _told(wrong: AssertionError, way: list[Move]) -> Wrong:
    return Wrong(f"{wrong}\n  " + "\n  ".join(" ".join(map(str, move)) for move in way))

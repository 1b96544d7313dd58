"""Every world that can be reached from one: what is wrong in any of them is told with the moves that lead there."""

import random
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct, msgpack
from msgspec.structs import replace

from tests.session.worlds import PAID_BY, Move, Script, World, Wrong, after, check_end, moves_of, opened

_LONGEST_WALK = 20_000  # moves; every walk ends far below
_FAULT_WEIGHT, _ASK_WEIGHT = 0.03, 0.1  # so that faults and commands meet a session at every point of its work


class Explored(NamedTuple):
    """What an exploration has seen. `results`: how each command was settled, over all ends."""

    states: int
    ends: int
    results: frozenset[tuple[str, str]]


class _Parts(NamedTuple):
    """A world's parts with their digests: most moves leave most parts as they were."""

    values: tuple[Struct, ...]
    digests: tuple[bytes, ...]

    def digest(self) -> bytes:
        return blake2b(b"".join(self.digests), digest_size=16).digest()


def explore(script: Script, *, world_size: int) -> Explored:
    """Visit every reachable world, depth first. Raises Wrong with the way to what is wrong."""
    first = opened(script, world_size=world_size)
    parts = _parts_of(first, _Parts((), ()))
    seen, way = {parts.digest()}, list[Move]()
    ends, results = 0, set[tuple[str, str]]()
    trail = [(first, parts, list(moves_of(first)))]
    while trail:
        world, parts, moves = trail[-1]
        if not moves:
            trail.pop()
            del way[-1:]
            continue
        way.append(moves.pop())
        then = _after(world, way)
        parts = _parts_of(then, parts)
        digest = parts.digest()
        if digest in seen:
            way.pop()
            continue
        seen.add(digest)
        following = list(moves_of(then))
        if not following:
            _end(then, way)
            ends += 1
            results.update(then.settled)
        trail.append((then, parts, following))
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


def _parts_of(world: World, before: _Parts) -> _Parts:
    rest = replace(world, coordinator=None, processes=())
    values = (rest, world.coordinator, *world.processes)
    same = dict(zip(map(id, before.values), before.digests, strict=True))  # `before` keeps them alive
    return _Parts(values, tuple(same.get(id(value)) or _digest(value) for value in values))


def _digest(part: Struct) -> bytes:
    bare = replace(part, bounds={}) if "bounds" in part.__struct_fields__ else part  # the same in every world
    return blake2b(msgpack.encode(bare), digest_size=16).digest()

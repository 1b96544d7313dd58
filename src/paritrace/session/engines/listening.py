"""Takes ranks that dial in: strangers until they have joined, then lines and ends of processes (SE-16, F-18)."""

import os
import socket
import time
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paritrace.clock import SYSTEM
from paritrace.errors import HostError
from paritrace.process.exit_watch import exit_of
from paritrace.process.identity import own_identity
from paritrace.process.left_behind import start_ticks
from paritrace.process.stop_facts import Wait
from paritrace.session.engines.addresses import Address
from paritrace.session.engines.joining import refusal_of
from paritrace.session.engines.lines import Line, ends_with_its_machine, readable_within
from paritrace.session.engines.seam import FromEngine, RankSpec, TurnedAway
from paritrace.session.messages import Halt, Joined, encoded, from_rank

STRANGER_SECONDS = 10.0  # a rank joins with its first bytes; one that does not is none
STRANGERS = 64  # that have not joined yet, at once: beyond them the oldest goes
FIRST_BYTES = 64 * 1024  # the first word of a rank has some hundred
END_SECONDS = 0.1  # a process that ends closes its line some milliseconds before its end can be seen
TURNED_AWAY = 100  # that are told of; a port scan has more


class Attached:
    """A rank that has joined: its line and, on this machine, its end."""

    def __init__(self, joined: Joined, line: Line) -> None:
        self.joined = joined
        self.line = line
        self.told = False  # that it is gone
        self.end = _end_of(joined)

    @property
    def here(self) -> bool:
        """Whether its process is of this machine, and was there when it joined."""
        return self.end is not None

    @property
    def has_ended(self) -> bool:
        """Whether its process is seen to have ended."""
        return self.end is not None and bool(readable_within((self.end,), 0))

    @property
    def wait(self) -> Wait | None:
        """Its wait status, where this kernel tells it to others than the parent."""
        return exit_of(self.end) if self.end is not None and self.has_ended else None

    def close(self) -> None:
        self.line.close()
        if self.end is not None:
            os.close(self.end)
            self.end = None


class Stranger(Struct):
    """A line whose other end has not said who it is."""

    line: Line
    address: str
    until: float
    rejected: bool = False  # it was told so; its line is closed once it has closed its own end


class Listener:
    """Of the coordinator's main thread."""

    def __init__(self, spec: RankSpec, *, address: Address) -> None:
        """Listen. Raises HostError (Refused, `cannot_listen`)."""
        self._spec = spec
        self.ranks: dict[int, Attached] = {}
        self.turned_away: dict[tuple[str, int | None, str], TurnedAway] = {}
        self._strangers: list[Stranger] = []
        try:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            self._socket = socket.create_server((address.host, address.port), family=family)
        except OSError as error:
            raise HostError(
                f"cannot listen on {address.host}, port {address.port}: {error.strerror}",
                code="cannot_listen",
                fix="name an address of this machine, and a port that is free",
            ) from None
        self._socket.setblocking(False)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def descriptors(self) -> set[int]:
        """What to wait for."""
        found = {self._socket.fileno(), *(one.line.fileno() for one in self._strangers)}
        for one in self.ranks.values():
            if not one.told:
                found |= {one.line.fileno()} if one.line.is_open() else set()
                found |= set() if one.end is None else {one.end}
        return found

    def has_news(self) -> bool:
        """Whether a line was closed by us, which nothing to wait for tells."""
        return any(not one.told and not one.line.is_open() for one in self.ranks.values())

    def brought(self) -> list[FromEngine]:
        """Take new lines, first words, messages and ends; a stale participant's first word is brought, too."""
        self._accept()
        found = [word for one in tuple(self._strangers) for word in self._heard(one)]
        for rank, one in self.ranks.items():
            if not one.told:
                found += _brought(rank, one)
        return found

    def close(self) -> None:
        """Let go of every line."""
        self._socket.close()
        for stranger in self._strangers:
            stranger.line.close()
        for attached in self.ranks.values():
            attached.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):
            while True:
                end, peer = self._socket.accept()
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ends_with_its_machine(end)
                line = Line(end, message_bytes=FIRST_BYTES)
                self._strangers.append(Stranger(line, str(peer[0]), time.monotonic() + STRANGER_SECONDS))
        while len(self._strangers) > STRANGERS:
            self._strangers.pop(0).line.close()

    def _heard(self, stranger: Stranger) -> list[FromEngine]:
        words = stranger.line.arrived()
        if (stranger.rejected or not words) and stranger.line.is_open() and time.monotonic() < stranger.until:
            return []
        self._strangers.remove(stranger)
        if stranger.rejected:
            stranger.line.close()
            return []
        joined = _first_word(words)
        if joined is None:
            self._reject(stranger, "it did not say who it is", None, generation=self._spec.generation)
            return []
        why = refusal_of(joined, self._spec, taken=self.ranks)
        if why is not None:
            is_stale = joined.token == self._spec.token and joined.generation != self._spec.generation
            self._reject(stranger, why, joined.rank, generation=joined.generation)
            return [FromEngine(joined.rank, words[0])] if is_stale else []
        stranger.line.trust()
        self.ranks[joined.rank] = Attached(joined, stranger.line)
        return [FromEngine(joined.rank, word) for word in words]

    def _reject(self, stranger: Stranger, why: str, rank: int | None, *, generation: int) -> None:
        """End a line with a word for the generation that its other end believes in."""
        self._keep(TurnedAway(why, stranger.address, rank, SYSTEM.wall_ns()))
        with suppress(OSError):
            stranger.line.send(encoded(Halt(generation, why)))
        if not stranger.line.is_open():  # it wrote, and went: there is nobody to tell
            stranger.line.close()
            return
        stranger.line.finish()
        stranger.rejected = True
        self._strangers.append(stranger)

    def _keep(self, one: TurnedAway) -> None:
        key = one.address, one.rank, one.why
        known = self.turned_away.pop(key, None)
        self.turned_away[key] = one if known is None else replace(one, times=known.times + 1)
        while len(self.turned_away) > TURNED_AWAY:
            self.turned_away.pop(next(iter(self.turned_away)))  # the one that came last the longest time ago


def _first_word(words: list[bytes]) -> Joined | None:
    try:
        word = from_rank(words[0])
    except (IndexError, msgspec.MsgspecError):
        return None
    return word if isinstance(word, Joined) else None


def _brought(rank: int, one: Attached) -> list[FromEngine]:
    ended = one.has_ended  # looked at first: what it wrote before its end is here then
    found = [FromEngine(rank, data) for data in one.line.arrived()]
    if ended or not one.line.is_open():
        if one.end is not None:
            readable_within((one.end,), END_SECONDS)
        one.told = True
        found.append(FromEngine(rank, None))
    return found


def _end_of(joined: Joined) -> int | None:
    """A descriptor that is readable once the process has ended; None where it is of another machine or namespace."""
    own = own_identity()
    if (joined.host, joined.boot_id) != (own.host, own.boot_id) or joined.start_ticks is None:
        return None
    try:
        end = os.pidfd_open(joined.pid)
    except (OSError, AttributeError):
        return None
    if start_ticks(joined.pid) == joined.start_ticks:
        return end
    os.close(end)
    return None

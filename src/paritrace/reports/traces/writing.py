"""Lays the events of one rank on tracks and lanes, within what was asked for, and counts what is left out (SU-8)."""

from msgspec import Struct
from msgspec.structs import replace

from paritrace.reports.formats import Cut, Sink
from paritrace.reports.traces.chrome import ChromePackets
from paritrace.reports.traces.events import WORDS, Event, Tally, Why
from paritrace.reports.traces.identities import number_of, pid_of, sequence_of
from paritrace.reports.traces.lanes import Lanes
from paritrace.reports.traces.packets import BOOTTIME, REALTIME, Packets
from paritrace.reports.traces.texts import number

MOST_EVENTS = 1_000_000  # of one rank unless another number is asked for: more than Perfetto's page opens with ease
UNKNOWN_TIME = 0

Pack = type[Packets] | type[ChromePackets]  # in which format events are written


class Of(Struct, frozen=True):
    """Whose trace it is. `source`: digest that ids follow from; `zero_unix_ns`: wall time of 0, None where none holds.

    `name`: the process's, "" for the rank; `labels` stand beside it; `facts` in the last packet.
    """

    source: str
    rank: int
    zero_unix_ns: int | None = None
    name: str = ""
    labels: tuple[str, ...] = ()
    facts: dict[str, str] = {}


class RankTrace:
    """The trace of one rank: tracks by path, the last part being the name; a path's parents are tracks too."""

    def __init__(self, of: Of, sink: Sink, *, cut: Cut, pack: Pack = Packets) -> None:
        self._of = of
        self._cut = cut
        self._most = MOST_EVENTS if cut.max_events is None else cut.max_events
        self.tally = Tally()
        self._packets = pack(sink, sequence=sequence_of(of.source, of.rank))
        self._tracks: dict[tuple[str, ...], int] = {}
        self._lanes: dict[tuple[str, ...], Lanes] = {}
        self._lane_tracks: dict[tuple[tuple[str, ...], int], int] = {}
        self._latest = 0
        clocks = {BOOTTIME: 0} if of.zero_unix_ns is None else {BOOTTIME: 0, REALTIME: of.zero_unix_ns}
        self._packets.begin_sequence(clocks=clocks)
        self._process = number_of(of.source, of.rank)
        self._packets.process(self._process, pid=pid_of(of.rank), name=of.name or f"rank {of.rank}", labels=of.labels)

    @property
    def latest_ns(self) -> int:
        """The last time that is in it."""
        return self._latest

    def track(self, path: tuple[str, ...], *, description: str = "") -> int:
        """The track of a path, described when it is first named."""
        known = self._tracks.get(path)
        if known is None:
            parent, name = self._placed(path)
            known = self._tracks[path] = number_of(self._of.source, self._of.rank, *path)
            self._packets.track(known, parent=parent, name=name, order=len(self._tracks), description=description)
        return known

    def call(self, path: tuple[str, ...], event: Event, *, step: int) -> bool:
        """A call as a slice on a lane of the thread `path`; without a time or a lane as an instant that says so.

        Returns whether it is in the trace.
        """
        if not self._takes(step):
            return False
        if event.start_ns < 0 or event.duration_ns <= 0:
            self._fallback(path, event, Why.NO_DURATION)
            return True
        lanes = self._lanes.get(path)
        if lanes is None:
            lanes = self._lanes[path] = Lanes()
        end = event.start_ns + event.duration_ns
        entered = lanes.enter(event.start_ns, end)
        if entered is None:
            self._fallback(path, event, Why.NO_LANE)
            return True
        track = self._lane_tracks.get((path, entered.lane)) or self._lane(path, entered.lane)
        for at in entered.ended:
            self._packets.end(track, at)
        self._packets.begin(track, event)
        self._counted(event)
        self.tally.slices += 1
        self.tally.summed_ns += event.duration_ns
        self._latest = max(self._latest, end)
        return True

    def instant(self, path: tuple[str, ...], event: Event) -> None:
        """Something that has a time or stands at 0, and no duration."""
        self._packets.instant(self.track(path), replace(event, start_ns=max(event.start_ns, UNKNOWN_TIME)))
        self._counted(event)
        self.tally.instants += 1
        self._latest = max(self._latest, event.start_ns)

    def count(self, path: tuple[str, ...], at: int, value: float, *, unit: str = "") -> None:
        """A point of a counter; what is not finite is an instant beside it, since a counter would drop it."""
        shown = number(value)
        if isinstance(shown, str):
            self.instant((*path[:-1], f"{path[-1]}: not finite"), Event(at, -1, f"{path[-1]} is {shown}"))
            return
        track = self._tracks.get(path)
        if track is None:
            parent, name = self._placed(path)
            track = self._tracks[path] = number_of(self._of.source, self._of.rank, "counter", *path)
            self._packets.counter(track, parent=parent, name=name, unit=unit, order=len(self._tracks))
        self._packets.count(track, max(at, UNKNOWN_TIME), shown)
        self.tally.counters += 1
        self._latest = max(self._latest, at)

    def close(self) -> Tally:
        """End all slices, say what was left out, write the last packet."""
        for path, lanes in self._lanes.items():
            for lane, ends in lanes.leave():
                for at in ends:
                    self._packets.end(self._lane_tracks[path, lane], at)
        track = self.track(("paritrace",))
        for why, number_of_calls in sorted(self.tally.left_out.items()):
            self.instant(("paritrace",), Event(self._latest, -1, f"{number_of_calls:,} calls {WORDS[Why(why)]}"))
        self._packets.close(track, self.tally, at=self._latest, facts=self._of.facts)
        return self.tally

    def _takes(self, step: int) -> bool:
        if not self._cut.takes_step(step):
            self.tally.leave_out(Why.STEPS)
            return False
        if self.tally.slices + self.tally.instants >= self._most:
            self.tally.leave_out(Why.MAX_EVENTS)
            return False
        return True

    def _placed(self, path: tuple[str, ...]) -> tuple[int, str]:
        """The parent of a path's track, and its name."""
        *above, name = path
        return (self.track(tuple(above)) if above else self._process), name

    def _lane(self, path: tuple[str, ...], lane: int) -> int:
        """Lanes beyond the first are tracks of the same name beside it: Perfetto shows them as one."""
        parent, name = self._placed(path)
        track = number_of(self._of.source, self._of.rank, "lane", lane, *path)
        self._packets.track(track, parent=parent, name=name, order=len(self._tracks))
        self._lane_tracks[path, lane] = track
        return track

    def _fallback(self, path: tuple[str, ...], event: Event, why: Why) -> None:
        told = (*event.arguments, ("no_slice", why.value))
        if event.duration_ns > 0:
            told = (*told, ("duration_ns", event.duration_ns))
        if event.start_ns < 0:
            told = (*told, ("time", "not recorded"))
        *above, name = path
        self.instant((*above, f"{name}: moments"), replace(event, arguments=told))
        self.tally.leave_out(why)

    def _counted(self, event: Event) -> None:
        self.tally.flow_ends += len(event.flows)

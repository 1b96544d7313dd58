"""What a coordinator says where it runs: it answers, its ranks are ready, a line every half minute (SE-14)."""

from collections.abc import Callable

from paritrace.clock import SYSTEM, Clock
from paritrace.session.coordinator.desk import Desk
from paritrace.session.states import RankState
from paritrace.session.status import Status
from paritrace.session.words import progress_words, trouble_words

HEARTBEAT_SECONDS = 30.0
_NS = 1e9


class Announcer:
    """Tells words for people; by the main thread alone."""

    def __init__(self, tell: Callable[[str], None], *, clock: Clock = SYSTEM) -> None:
        self._tell = tell
        self._clock = clock
        self._answers = False
        self._generation = 0  # the one whose readiness or error was told
        self._state: RankState | None = None
        self._told_ns = clock.monotonic_ns()

    def look(self, desk: Desk, *, answers: bool) -> None:
        """Say what is new."""
        if answers and not self._answers:
            self._answers = True
            self._say("answers; ranks are loading")
        now = self._clock.monotonic_ns()
        status = desk.status()
        if (status.generation, status.state) != (self._generation, self._state):
            self._new_state(status)
        elif (now - self._told_ns) / _NS >= HEARTBEAT_SECONDS:
            self._say(progress_words(status))

    def ended(self) -> None:
        """Say that the session is closed."""
        self._say("closed")

    def _new_state(self, status: Status) -> None:
        self._generation, self._state = status.generation, status.state
        if status.state is RankState.ERROR:
            self._say(trouble_words(status))
        elif status.state is not RankState.LOADING:
            self._say(progress_words(status))

    def _say(self, words: str) -> None:
        self._told_ns = self._clock.monotonic_ns()
        self._tell(words)

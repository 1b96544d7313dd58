"""`paritrace.Session`: a resident session started and driven from a program (SE-1, SE-17)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paritrace.errors import HostError, Outcome
from paritrace.session.client import Client
from paritrace.session.coordinator.detaching import start_detached
from paritrace.session.coordinator.opening_request import Opening
from paritrace.session.states import RankState
from paritrace.session.words import trouble_words


class Session(Client):
    """A resident session of a directory; `Session(DIR)` drives one that runs, `Session.start` starts one."""

    @classmethod
    def start(  # noqa: PLR0913  what a session is started with
        cls,
        directory: str | Path,
        workload: str,
        *,
        ranks: int = 1,
        engine: str = "local",
        arguments: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        bounds: Mapping[str, float] | None = None,
        start_from: str | None = None,
        autosave_every: int = 1000,
        listen: str = "",
        tell: Callable[[str], None] = lambda _words: None,
    ) -> "Session":
        """Start a coordinator, a process of its own, and return once all ranks are ready.

        Args:
            directory: A new one, or that of an earlier session.
            workload: `module:Class`, built on every rank with `arguments` (JSON).
            ranks: How many.
            engine: `local`, `attach` or `ray`.
            arguments: For the constructor.
            config: Values of the configuration.
            bounds: Waits by their names, in seconds.
            start_from: A checkpoint of the session, or `latest`.
            autosave_every: Steps; 0: never.
            listen: With `attach`: `HOST:PORT` where ranks of other machines dial in; 127.0.0.1 where it is left out.
            tell: Told how far loading is.

        Raises:
            RequestError: Refused, `not_a_session`, `bad_bound`, `bad_listen`.
            HostError: Failed, `coordinator_not_started`, `coordinator_silent`, `ranks_not_ready`.
        """
        opening = Opening(
            directory=str(Path(directory).absolute()),
            workload=workload,
            arguments=dict(arguments or {}),
            ranks=ranks,
            engine=engine,
            bounds=dict(bounds or {}),
            config=dict(config or {}),
            start_from=start_from,
            autosave_every=autosave_every,
            listen=listen,
        )
        status = start_detached(opening, tell=tell)
        if status.state is RankState.ERROR:
            raise HostError(
                "the ranks did not become ready",
                code="ranks_not_ready",
                fix="the session is in Error: mend the workload, then close it, or rebuild",
                outcome=Outcome.FAILED,
                details=tuple(trouble_words(status).splitlines()),
            )
        return cls(directory)

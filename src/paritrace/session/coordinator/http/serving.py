"""Serves a session's HTTP API in a thread of its own; FastAPI is imported there, while ranks start already (SE-17)."""

import socket
import threading

from paritrace.session.coordinator.desk import Desk

STARTS_WITHIN_SECONDS = 60.0  # importing FastAPI takes a second; only a machine in trouble needs more


class Serving:
    """One server over one listening socket, from `start` to `end`."""

    def __init__(self, desk: Desk, listening: socket.socket, *, token: str) -> None:
        self._desk = desk
        self._listening = listening
        self._token = token
        self._answers = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="paritrace-session-http", daemon=True)

    def start(self) -> None:
        """Begin to serve; connections wait meanwhile."""
        self._thread.start()

    def end(self) -> None:
        """Finish what is under way within a deadline, and let go of the socket."""
        self._ended.set()
        from paritrace.loopback.listening import ENDS_WITHIN_SECONDS

        self._thread.join(STARTS_WITHIN_SECONDS + ENDS_WITHIN_SECONDS)
        self._listening.close()

    @property
    def answers(self) -> bool:
        """Whether it has answered: set once and for all."""
        return self._answers.is_set()

    def _serve(self) -> None:
        from paritrace.loopback.listening import is_healthy, running
        from paritrace.session.coordinator.http.application import application

        app = application(self._desk, token=self._token)
        port = int(self._listening.getsockname()[1])
        with running(app, self._listening, name="paritrace-session-uvicorn"):
            if is_healthy(port, token=self._token, path="/v1/health"):
                self._answers.set()
                self._desk.wake()
            self._ended.wait()

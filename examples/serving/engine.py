"""Continuous batching: one thread takes iterations, and in each of them new requests join those that are under way."""

import queue
import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from evidence import Evidence
from model import LONGEST, Cache, Decoder, empty_cache

MOST_RUNNING = 8
MOST_ADMITTED = 2  # in one iteration: prefills are long, and what runs waits for them
IDLE_SECONDS = 0.05


@dataclass
class Job:
    """A request. `produced` gives its tokens one by one, then None."""

    id: str
    prompt: list[int]
    most: int
    produced: "queue.SimpleQueue[int | None]" = field(default_factory=queue.SimpleQueue)
    cache: Cache = field(default_factory=empty_cache)
    output: list[int] = field(default_factory=list)
    arrived_ns: int = field(default_factory=time.monotonic_ns)
    admitted_ns: int = 0
    first_token_ns: int = 0
    cancelled: bool = False

    @property
    def done(self) -> bool:
        return self.cancelled or len(self.output) >= self.most or len(self.prompt) + len(self.output) >= LONGEST


class Engine:
    """The scheduler. `profiler` is entered and left by the engine's own thread: torch profiles the thread that asks."""

    def __init__(self, evidence: Evidence, *, profiler: AbstractContextManager[object]) -> None:
        torch.manual_seed(0)
        self._model = Decoder().eval()
        self._evidence = evidence
        self._profiler = profiler
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._news = threading.Condition()
        self._closing = False
        self._profiled = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine")

    def start(self) -> None:
        """Return when the thread takes requests, and its profiler records."""
        self._thread.start()
        self._profiled.wait()

    def submit(self, job: Job) -> None:
        with self._news:
            self._waiting.append(job)
            self._news.notify()

    def close(self) -> None:
        """Finish what runs, refuse what waits, and leave the profiler."""
        with self._news:
            self._closing = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        torch.set_num_threads(1)
        number = 0
        with self._profiler:
            self._profiled.set()
            while True:
                with self._news:
                    while not self._waiting and not self._running and not self._closing:
                        self._news.wait(IDLE_SECONDS)
                    if self._closing and not self._running:
                        break
                    room = min(MOST_ADMITTED, MOST_RUNNING - len(self._running), len(self._waiting))
                    admitted = [] if self._closing else [self._waiting.popleft() for _ in range(room)]
                if admitted or self._running:
                    self._iterate(number, admitted)
                    number += 1
        for job in self._waiting:
            job.produced.put(None)
            self._evidence.ended(job, status="aborted")

    def _iterate(self, number: int, admitted: list[Job]) -> None:
        running, start_ns = list(self._running), time.monotonic_ns()
        with torch.profiler.record_function(self._evidence.range_name(number)):
            for job in admitted:
                job.admitted_ns = start_ns
                self._give(job, self._model([job.prompt], [job.cache])[0])
            if running:
                for job, token in zip(
                    running,
                    self._model([job.output[-1:] for job in running], [job.cache for job in running]),
                    strict=True,
                ):
                    self._give(job, token)
        self._evidence.iterated(number, start_ns, time.monotonic_ns(), prefilled=admitted, decoded=running)
        self._running = [job for job in (*running, *admitted) if not job.done]
        for job in (*running, *admitted):
            if job.done:
                job.produced.put(None)
                self._evidence.ended(job, status="cancelled" if job.cancelled else "finished")

    def _give(self, job: Job, token: int) -> None:
        job.first_token_ns = job.first_token_ns or time.monotonic_ns()
        job.output.append(token)
        job.produced.put(token)

"""One capture from its beginning to its receipt: the run directory, the writer and the observers held together.

Longer than 400 lines: the parts of a capture are begun, held and ended in orders that depend on each other.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from paritrace.capture.arrival import WhenImported
from paritrace.capture.blackbox import BlackBox, black_box, box_record
from paritrace.capture.budget import Budget
from paritrace.capture.callsites import CallSites
from paritrace.capture.declared_mesh import declared_mesh, require_mesh
from paritrace.capture.levels import WINDOW
from paritrace.capture.recorder import Recorder
from paritrace.capture.settings import CaptureSettings
from paritrace.capture.spawned import LOADER, SpawnedProcesses
from paritrace.capture.surroundings import NO_TORCH, Checkout, TorchFacts, checkout_of, surroundings, with_torch
from paritrace.capture.tensor_store import TensorStore
from paritrace.capture.termination import Termination
from paritrace.capture.windows import Covering, covering
from paritrace.capture.writer import JournalWriter
from paritrace.clock import SYSTEM, Clock
from paritrace.errors import HostError, ParitraceError
from paritrace.evidence import calls
from paritrace.evidence.blackbox import Cause
from paritrace.evidence.calls import Level
from paritrace.evidence.gaps import CountedGap, Gap
from paritrace.files import LOCAL, Files
from paritrace.process.identity import own_identity
from paritrace.runs.attaching import JSON_DOCUMENT
from paritrace.runs.attendance import CAPTURED_RANKS
from paritrace.runs.draws import PERTURB_SEED
from paritrace.runs.envelope import AttachmentKind, Receipt, Role, SessionStatus
from paritrace.runs.launch import Launch, launch_of
from paritrace.runs.opening import SessionRequest, begin_session
from paritrace.runs.request import TITLE, RunRequest, encode_request
from paritrace.runs.session import OpenSession

if TYPE_CHECKING:
    from paritrace.capture.pytorch.observer import TorchObserver
    from paritrace.capture.pytorch.upcasting import Upcasting


SIGNALS_FOLDER = ".paritrace-signals"  # beside the ranks' directories in staging; hidden, so never published
FAILED_ALLOCATIONS = "failed_allocations"  # of a session's metadata: why none would be recorded (RS-12)
DRAIN_SECONDS = 10.0  # of the 30 s that launchers leave between SIGTERM and SIGKILL


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is being captured: its root folder, its main script (absolute; None in a notebook), its arguments, what
    `paritrace run` was asked for (None where nothing can start it again, as in a notebook), and which rank of which
    start this is (None: as the launcher's variables say)."""

    root: Path
    main: Path | None
    argv: tuple[str, ...]
    request: RunRequest | None = None
    launch: Launch | None = None


@dataclass(frozen=True, kw_only=True)
class StagedRank:
    """That this rank has a run directory of its own in staging, beside those of the node's other ranks (ST-24)."""

    run_id: str
    node_id: str


class Capture:
    """A running capture of this process. Made by `begin`; ended once by `end`, by the process that began it."""

    def __init__(
        self, session: OpenSession, *, recorder: Recorder, writer: JournalWriter, settings: CaptureSettings
    ) -> None:
        self.session = session
        self.recorder = recorder
        self.observer: TorchObserver | None = None
        self._upcasting: Upcasting | None = None
        self.failure: ParitraceError | None = None
        self._box: BlackBox | None = None
        self.callsites = CallSites(recorder) if Level.CALLSITE in settings.levels else None
        self._termination = Termination(self._terminated)
        self._writer = writer
        self._settings = settings
        self._pid = os.getpid()
        self._ended = False
        self._arrival = WhenImported("torch", lambda _: self._torch_arrived())
        self.spawned_processes = 0  # those that are no workers of a data loader: perhaps ranks
        self._spawned = SpawnedProcesses(self._spawned_one)
        recorder.after_step = self.keep_sources

    def watch(self, *, files: Files, covered: Covering, world_size: int) -> None:
        """Keep a black box (CA-36)."""
        self._box = black_box(self.recorder, self.session, files=files)
        cannot = self._termination.install()
        self.recorder.emit(box_record(self._settings, covered, world_size=world_size, not_watched=cannot))

    def start(self) -> None:
        """Observe from now on, or from when the workload imports torch."""
        self.keep_sources()  # the main script's, so that a run killed in its first step has it
        self._spawned.install()
        if self.callsites is not None:
            self.callsites.install()
        self._arrival.install()

    def name_step(self, step: int) -> None:
        """`paritrace.step(n)`."""
        if self.observer is not None:
            self.observer.name_step(step)
        else:
            self.recorder.steps.advance(step)
            self.recorder.steps.named = True

    def trigger(self, why: str, *, window: bool) -> None:
        """`paritrace.trigger(...)`; without a black box, or in a forked child, nothing happens."""
        if self._box is not None and not self._ended and os.getpid() == self._pid:
            self._box.ask(why, window=window)

    def ends_early(self, cause: Cause, detail: str) -> None:
        """The workload is about to end by an error, a status or a signal: what the black box holds is written."""
        if self._box is not None and not self._ended and os.getpid() == self._pid:
            self._box.ends(cause, detail)

    def _terminated(self) -> None:
        try:
            self.ends_early(Cause.SIGTERM, "")
            self._writer.drain_within(DRAIN_SECONDS)
        except Exception as error:  # noqa: BLE001  whatever it is, the process ends as it would without us (P6)
            self.recorder.count(CountedGap.CAPTURE_ERROR, f"black box: {type(error).__name__}")

    def _torch_arrived(self) -> None:
        if self._ended or os.getpid() != self._pid:
            return
        try:
            self._observe()
        except Exception as error:  # noqa: BLE001  a fault of ours becomes a gap, never one of `import torch` (P6)
            self.recorder.count(CountedGap.CAPTURE_ERROR, f"start: {type(error).__name__}: {error}")

    def _observe(self) -> None:
        from paritrace.capture.pytorch.determinism import torch_facts
        from paritrace.capture.pytorch.internals import switch_compiler_off
        from paritrace.capture.pytorch.observer import TorchObserver

        if self._settings.eager:
            switch_compiler_off()
        self._tell(torch_facts(deterministic=self._settings.deterministic))
        if self._settings.upcast:
            from paritrace.capture.pytorch.upcasting import Upcasting

            self._upcasting = Upcasting(self._settings.upcast)
            self._upcasting.install()  # before our own mode, which so sees what was lifted
        self.observer = TorchObserver(self.recorder, None if self.callsites is None else self.callsites.expressions)
        self.observer.start()
        if self.observer.not_watched is not None:
            self.session.set_metadata({FAILED_ALLOCATIONS: f"unsupported: {self.observer.not_watched.gap.value}"})

    def _tell(self, facts: TorchFacts) -> None:
        before = self.session.surroundings
        if before is None:
            return
        try:
            self.session.set_surroundings(with_torch(before, facts))
            self.session.flush()
        except ParitraceError as error:
            self.failure = self.failure or error

    def _spawned_one(self, purpose: str) -> None:
        self.spawned_processes += purpose != LOADER
        self.recorder.count(CountedGap.SPAWNED_CHILD_NOT_COVERED, purpose)

    def keep_sources(self) -> None:
        """Copy the text of every file named since the last call into the run (CA-26)."""
        texts = self.recorder.sites.take_texts()
        if not texts:
            return
        try:
            for file, _, data in texts:
                self.session.attach_copy(AttachmentKind.SOURCE, file, data, "text/x-python")
            self.session.flush()
        except ParitraceError as error:
            self.failure = self.failure or error
            self.recorder.count(CountedGap.DISK_FULL, "source text", number=len(texts))

    def end(self, status: SessionStatus, *, metadata: dict[str, str]) -> None:
        """Stop observing, write the end mark, seal the run. A fault of the disk is kept in `failure`, not raised."""
        if self._ended or os.getpid() != self._pid:
            return
        self._ended = True
        self._termination.remove()
        self._arrival.remove()
        self._spawned.remove()
        try:
            self._stop()
        except Exception as error:  # noqa: BLE001  what was captured is sealed all the same (P6)
            self.recorder.count(CountedGap.CAPTURE_ERROR, f"end: {type(error).__name__}: {error}")
        self._writer.close(end=self._end_mark)
        store = self.recorder.tensors
        self.failure = self._writer.failure or self.failure or (None if store is None else store.failure)
        if self.callsites is not None:
            self.failure = self.failure or self.callsites.violation(self.session.rank)
        try:
            self.session.set_metadata(metadata if self._upcasting is None else metadata | self._upcasting.facts())
            self.session.end(SessionStatus.INCOMPLETE if self.failure else status, self._receipt())
        except ParitraceError as error:
            self.failure = self.failure or error

    def _stop(self) -> None:
        """Observe no more, and keep what is read of the workload at its end."""
        if self.observer is not None:
            self.observer.stop()
        if self._box is not None:
            self._box.finish()
        if self.callsites is not None:
            self.callsites.remove()
        code = self.recorder.sites.workload_files()
        self.keep_sources()
        self.recorder.emit(calls.CodeMark(code))

    @property
    def num_calls(self) -> int:
        """Calls written so far."""
        return self._writer.counts["Call"]

    @property
    def summary(self) -> str:
        """One line for a person: how much was captured."""
        counts = self._writer.counts
        steps = self.recorder.steps_ended
        gaps = sum(self.gaps.values())
        size = self._writer.bytes_written / 1e6
        return (
            f"captured {steps} {'step' if steps == 1 else 'steps'}, {counts['Call']:,} calls, {size:.1f} MB"
            f"{self._tensors}{f', {gaps:,} gaps' if gaps else ''}{self._not_seen}"
        )

    @property
    def _tensors(self) -> str:
        store = self.recorder.tensors
        if store is None:
            return ""
        unmet = "".join(f", {option} named no call" for option in sorted(store.unmet))
        return f", {store.kept:,} tensors whole ({store.num_bytes / 1e6:.1f} MB){unmet}"

    @property
    def _not_seen(self) -> str:
        spawned = self.spawned_processes
        words = "1 spawned process" if spawned == 1 else f"{spawned:,} spawned processes"
        return f", not {words} (ranks? start them by --launcher)" if spawned else ""

    @property
    def gaps(self) -> dict[str, int]:
        """Counted gaps of the observers and of the writer."""
        return dict(Counter(self.recorder.gaps) + self._writer.gaps)

    def _end_mark(self) -> list[object]:
        receipt = self._receipt()
        return [calls.EndMark(receipt.lines, receipt.calls, receipt.details, receipt.states, receipt.gaps)]

    def _receipt(self) -> Receipt:
        counts = self._writer.counts
        lines = sum(number for name, number in counts.items() if name != "EndMark")
        return Receipt(
            lines=lines, calls=counts["Call"], details=counts["Detail"], states=counts["State"], gaps=self.gaps
        )


def begin(
    run_dir: Path,
    settings: CaptureSettings,
    *,
    workload: Workload,
    staged: StagedRank | None = None,
    files: Files = LOCAL,
    clock: Clock = SYSTEM,
) -> Capture:
    """Claim the run directory and start observing this process.

    Args:
        staged: set where `run_dir` is this rank's own, in staging.

    Raises:
        HostError: Refused: torch is missing (`missing_extra`), or the disk refuses.
        RequestError: Refused: the declared mesh does not fit the world (`bad_mesh`).
        EvidenceError, RequestError: Refused, as `runs.opening.begin_session` says.
    """
    _require_torch()
    request = _request(settings, staged, workload.launch)
    require_mesh(settings.mesh, world_size=request.launch.world_size)
    session = begin_session(run_dir, request, files=files, clock=clock)
    if staged is not None:
        session.signals_dir = run_dir.parent / SIGNALS_FOLDER
    checkout = checkout_of(workload.root, want_diff=settings.diff)
    session.set_surroundings(
        surroundings(
            argv=workload.argv if settings.argv else None,
            main=workload.main,
            checkout=checkout,
            diff_id=_attach_diff(session, checkout),
            torch=NO_TORCH,
        )
    )
    if workload.request is not None:
        session.attach_copy(AttachmentKind.OTHER, TITLE, encode_request(workload.request), JSON_DOCUMENT)
    writer = JournalWriter(
        session.open_journal(),
        max_bytes=settings.max_bytes,
        queue_full=settings.queue_full,
        clock=clock,
        reserved_bytes=min(settings.black_box_bytes, settings.max_bytes // 4) if settings.black_box else 0,
    )
    covered = covering(request.launch.world_size, settings.mesh)
    windows = settings.black_box and session.rank in covered.ranks
    writer.put(_header(session, settings, windows=windows))
    recorder = Recorder(
        settings,
        writer=writer,
        clock=clock,
        root=workload.root,
        main=None if workload.main is None else str(workload.main),
        windows=windows,
    )
    if settings.keeps_tensors:
        recorder.tensors = TensorStore(session, files=files, max_bytes=settings.dump_bytes, count=recorder.count)
    if settings.mesh:
        made = recorder.definitions.new_id("mesh")
        launch = request.launch
        recorder.emit(declared_mesh(settings.mesh, rank=launch.rank, world_size=launch.world_size, new_id=made))
    writer.start()
    if settings.budget is not None:
        Budget(recorder, share=settings.budget).install()
    capture = Capture(session, recorder=recorder, writer=writer, settings=settings)
    if settings.black_box:
        capture.watch(files=files, covered=covered, world_size=request.launch.world_size)
    capture.start()
    return capture


def without_capture() -> bool:
    """Whether `PARITRACE_MODE=off` makes all capturing a no-op (CA-1)."""
    return os.environ.get("PARITRACE_MODE", "").strip().lower() == "off"


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise HostError(
            "capturing needs PyTorch, which is not installed",
            code="missing_extra",
            fix="pip install 'paritrace[torch]'",
        )


def _request(settings: CaptureSettings, staged: StagedRank | None, given: Launch | None) -> SessionRequest:
    process = own_identity()
    launch = launch_of(os.environ, process=process) if given is None else given
    return SessionRequest(
        role=Role.TRAINING if launch.world_size == 1 else Role.RANK,
        launch=launch,
        process=process,
        run_id=None if staged is None else staged.run_id,
        node_id=None if staged is None else staged.node_id,
        config_digest=hashlib.sha256(msgspec.json.encode(_plain(settings))).hexdigest(),
        title=settings.title or None,
        tags=settings.tags,
        metadata=_declared(settings),
    )


def _declared(settings: CaptureSettings) -> dict[str, str]:
    """What the user said of the run, so that coverage may speak of what is missing (CA-16, CA-24, CP-10a)."""
    declared: dict[str, str] = {}
    if settings.declared_steps:
        declared["expected_steps"] = f"{settings.steps[0]}:{settings.steps[1]}"
    if settings.ranks is not None:
        declared[CAPTURED_RANKS] = ",".join(map(str, settings.ranks))
    if settings.perturb_seed:
        declared[PERTURB_SEED] = str(settings.perturb_seed)
    return declared


def _plain(settings: CaptureSettings) -> dict[str, object]:
    keeping = {"dump": settings.dump.select, "golden": settings.golden} if settings.keeps_tensors else {}
    planned = {} if settings.plan is None else {"plan": settings.plan}
    discovering = {} if settings.callsite_values else {"callsite_values": False}
    return {
        **keeping,
        **planned,
        **discovering,
        "levels": sorted(settings.levels),
        "steps": settings.steps,
        "regions": settings.regions,
        "mesh": settings.mesh,
        "statistics": settings.statistics,
        "select": settings.selection.select,
        "exclude": settings.selection.exclude,
        "deterministic": settings.deterministic,
        "eager": settings.eager,
        "sources": settings.sources,
        "black_box": settings.black_box,
        "perturb_seed": settings.perturb_seed,
        "rows": settings.rows,
        "upcast": settings.upcast,
    }


def _header(session: OpenSession, settings: CaptureSettings, *, windows: bool) -> calls.JournalHeader:
    levels = settings.levels | WINDOW if windows else settings.levels
    return calls.JournalHeader(
        calls.FORMAT,
        calls.VERSION,
        session.session_id,
        session.rank,
        session.incarnation,
        session.started_unix_ns,
        tuple(sorted(levels)),
        {"bits": "xxh3-64", "xor": "flat-u32-le-v1", "elements": "elements-u64"},
        settings.regions,
    )


def _attach_diff(session: OpenSession, checkout: Checkout) -> str:
    if isinstance(checkout.diff, Gap) or not checkout.diff:
        return ""
    return session.attach_copy(AttachmentKind.OTHER, "git diff", checkout.diff, "text/x-diff")

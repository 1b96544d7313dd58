"""The public functions of a capture in code: `trace`, `step`, `steps`, `context`, `observe`, `rows` (CA-1, CP-27)."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import ContextDecorator, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

from paritrace.capture.declared_mesh import parse_mesh
from paritrace.capture.launch import without_own_frames
from paritrace.capture.session import Capture, StagedRank, Workload, begin, without_capture
from paritrace.capture.settings import CaptureSettings, Selection, parse_budget, parse_bytes, parse_levels, parse_steps
from paritrace.capture.sites import workload_root
from paritrace.capture.token_rows import Rows
from paritrace.errors import ParitraceError, RequestError
from paritrace.evidence.blackbox import Cause
from paritrace.runs.envelope import SessionStatus

if TYPE_CHECKING:
    import torch

    from paritrace.capture.publishing import Publishing, StoreSettings

Item = TypeVar("Item")
_current: Capture | None = None


def current() -> Capture | None:
    """The capture of this process that is running, if any."""
    return _current


def set_current(capture: Capture | None) -> None:
    """One capture at a time per process."""
    global _current
    _current = capture


class trace(ContextDecorator):  # noqa: N801  used as a function: with paritrace.trace(...)
    """Capture what runs inside, into a new run directory.

    Args:
        run: the run directory; it must not hold a run of another start.
        level: level or levels: `"digest"`, `"module"`, `"callsite"`, `"op"`; default module (and digest, always on).
            `"callsite"` observes the calls of files that are imported inside.
        steps: `(first, end)` half-open or `"A:B"`; default `(0, 3)`. Bounds the levels above `digest`.
        mesh: what the ranks mean, `"dp=2,tp=4"`, the last dimension varying fastest, where torch does not show it.
        regions, statistics, max_bytes, select, exclude, deterministic, sources, diff, argv, rows: as the options of
            `paritrace run`.
        black_box: keep the calls of level `module` of the last 20 steps in memory, to be written on a trigger (CA-36).
        budget: the most that observing may add to a step's own time, for example `"5%"`; what costs more is given up.
        dump, golden, dump_bytes: keep the slots of selected calls whole, and calls of named modules so that they can be
            replayed, in so many bytes (CA-9).

        perturb_seed: this run is a perturbed draw, made with this seed from 1 on; 0 moves nothing. The draws of a run
            lie in `RUN/perturbed/01` and so on, where `paritrace compare` looks for them (CP-10a).

    With `PARITRACE_STORE` and `PARITRACE_STAGING_DIR` set this rank is staged and, by a thread of this process,
    published; what is left is published at the end of the block. With `PARITRACE_MODE=off` nothing happens. May be used
    twice in one process for two run directories, one after the other, to compare two implementations (CA-1).

    Raises:
        RequestError: Refused: a capture is running already (`capture_running`), or a setting is wrong.
        EvidenceError: Refused: the directory holds another run.
        HostError: Refused: no torch, or the disk refuses.
    """

    def __init__(  # noqa: PLR0913  the options of `paritrace run`, each with a default
        self,
        run: str | Path,
        *,
        level: str | Iterable[str] = (),
        steps: tuple[int, int] | str | None = None,
        select: Iterable[str] = (),
        exclude: Iterable[str] = (),
        max_bytes: int | str = "2GiB",
        regions: int = 4,
        statistics: bool = False,
        deterministic: bool = False,
        sources: bool = True,
        diff: bool = True,
        argv: bool = True,
        black_box: bool = False,
        budget: str | None = None,
        mesh: str = "",
        perturb_seed: int = 0,
        dump: Iterable[str] = (),
        golden: Iterable[str] = (),
        dump_bytes: int | str = "1GiB",
        rows: Iterable[str] = (),
    ) -> None:
        self._run = Path(run)
        self._capture: Capture | None = None
        self._publishing: Publishing | None = None
        named = (level,) if isinstance(level, str) else tuple(level)
        span = parse_steps(steps) if isinstance(steps, str) else steps
        self._settings = CaptureSettings(
            levels=parse_levels(named),
            steps=span or CaptureSettings.steps,
            declared_steps=span is not None,
            selection=Selection(select=tuple(select), exclude=tuple(exclude)),
            max_bytes=parse_bytes(max_bytes) if isinstance(max_bytes, str) else max_bytes,
            regions=regions,
            statistics=statistics,
            deterministic=deterministic,
            sources=sources,
            diff=diff,
            argv=argv,
            black_box=black_box,
            budget=None if budget is None else parse_budget(budget),
            mesh=parse_mesh(mesh) if mesh else (),
            perturb_seed=perturb_seed,
            dump=Selection(select=tuple(dump)),
            golden=tuple(golden),
            dump_bytes=parse_bytes(dump_bytes) if isinstance(dump_bytes, str) else dump_bytes,
            rows=tuple(rows),
        )

    def __enter__(self) -> trace:
        if without_capture():
            return self
        if _current is not None:
            raise RequestError(
                "a capture is running in this process already",
                code="capture_running",
                fix="end it first: leave its `with` block, or run without `paritrace run`",
            )
        settings = _store_settings()
        if settings is None:
            self._capture = begin(self._run, self._settings, workload=_here())
        else:
            self._capture = self._begin_staged(settings)
        set_current(self._capture)
        return self

    def _begin_staged(self, settings: StoreSettings) -> Capture:
        """This rank writes to staging, and this process publishes it (ST-17)."""
        from paritrace.capture.publishing import Publishing, rank_here

        rank = rank_here(os.environ)
        publishing = Publishing(settings, rank, say=_say)
        publishing.begin(self._run, title="")
        staged = publishing.staged
        own = staged.folder / f"rank-{0 if rank is None else rank.number}"
        named = StagedRank(run_id=staged.run_id, node_id=staged.node_id)
        try:
            capture = begin(own, self._settings, workload=_here(), staged=named)
        except BaseException:
            publishing.end()
            raise
        self._publishing = publishing
        return capture

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._capture is None:
            return
        set_current(None)
        metadata = {} if kind is None else {"exception": kind.__name__}
        if kind is not None:
            self._capture.ends_early(Cause.CRASH, kind.__name__)
        self._capture.end(SessionStatus.COMPLETED, metadata=metadata)
        if error is not None:
            error.__traceback__ = without_own_frames(error.__traceback__)
        if self._capture.failure is not None:
            _say(f"paritrace: failed: {self._capture.failure.message}")
        if self._publishing is not None:
            _published_to_the_end(self._publishing)

    @property
    def run(self) -> Path:
        """The run directory."""
        return self._run


def _store_settings() -> StoreSettings | None:
    if not os.environ.get("PARITRACE_STORE"):
        return None  # the store's code is loaded only where there is one
    from paritrace.capture.publishing import store_settings

    return store_settings(os.environ)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _published_to_the_end(publishing: Publishing) -> None:
    try:
        publishing.end()
    except ParitraceError as error:  # the workload goes on (P6)
        _say(f"paritrace: {error.outcome.value}: {error.message}")


def step(n: int) -> None:
    """Say that training step `n` begins now. From then on steps are those named, not those of the optimizer (CA-3)."""
    number = _whole_number(n)
    if number is None or number < 0:
        raise RequestError(f"step {n!r:.40} is no whole number from 0 on", code="bad_steps", fix="number steps from 0")
    if _current is not None:
        _current.name_step(number)


@contextmanager
def context(**labels: str | int) -> Generator[None]:
    """Label the calls made inside, for example `context(microbatch=3)`; `microbatch` also becomes the micro-batch.

    Raises:
        RequestError: Refused: `bad_label`, a value that is neither a text nor a whole number of 64 bits.
    """
    known = {name: _label(name, value) for name, value in labels.items()}
    capture = _current
    if capture is None:
        yield
        return
    recorder = capture.recorder
    before = dict(recorder.labels)
    before_microbatch = recorder.steps.named_microbatch
    for name, value in known.items():
        recorder.set_label(name, value)
    microbatch = known.get("microbatch")
    if isinstance(microbatch, int):
        recorder.steps.named_microbatch = microbatch
    try:
        yield
    finally:
        for name in labels:
            recorder.set_label(name, before.get(name))
        recorder.steps.named_microbatch = before_microbatch


def observe(name: str, tensor: torch.Tensor, *, semantics: str | None = None) -> None:
    """Record one tensor under a name of your own, where level `module` or `op` is on; otherwise nothing happens.

    `semantics` says what the numbers mean where that could be mistaken (`raw_logprobs`, `after_temperature`): tensors
    of unlike semantics are not compared (CA-5). `--dump 'function:paritrace.observe(NAME)'` keeps it whole (CA-9).
    """
    if _current is not None and _current.observer is not None:
        _current.observer.observe(name, tensor, semantics)


def rows(
    ids: object,
    positions: object | None = None,
    *,
    input_ids: object | None = None,
    attention_mask: object | None = None,
    position_ids: object | None = None,
    cu_seqlens: object | None = None,
) -> Rows:
    """Say which token each row of the next batch is, so that runs with other batches compare token by token (CP-27).

    Holds for the next forward of a root module; in a `with` block, for everything inside. Recorded are, row by row, the
    outputs of the modules named by `paritrace run --rows` (or `trace(rows=...)`), what is given to `Rows.observe`,
    `position_ids` and, by their fingerprints alone, `input_ids`; at the steps at which level `module` or `op` is on.

    Args:
        ids: the sample of each row, or of each sequence: texts or whole numbers, nested as the batch, or a tensor.
        positions: the position of each row in its sample, of the ids' shape or (sequences, tokens); below 0 is padding.
        input_ids: the batch's token ids, shape (sequences, tokens), or as `cu_seqlens` packs them.
        attention_mask: 0 where there is no token, shape (sequences, tokens); padding on either side.
        position_ids: the positions that the model is given. They address the rows only where nothing else does; of a
            packed batch, shape (1, tokens) or (tokens,), a new sample begins wherever they do not go on.
        cu_seqlens: where the samples of a packed batch begin, and its end: (samples + 1,).

    Nothing is raised: rows that do not come out are a counted gap, `rows_not_addressed`.
    """
    if _current is None or _current.observer is None:
        return Rows()
    return _current.observer.rows(
        {
            "ids": ids,
            "positions": positions,
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
            "cu_seqlens": cu_seqlens,
        }
    )


def trigger(why: str, *, window: bool = False) -> None:
    """Have the black box written now, on this rank and, by their next step, on all others that share the run directory.

    Args:
        why: your words; they are written into the run.
        window: also record level `op` in the next step, on the ranks that record it in windows.

    Without a black box (`paritrace run --black-box`, `trace(..., black_box=True)`) nothing happens.
    """
    if _current is not None:
        _current.trigger(str(why), window=window)


def _label(name: str, value: object) -> str | int:
    number = value if isinstance(value, str) else _whole_number(value)
    if number is None:
        raise RequestError(
            f"label {name} is no text and no whole number of 64 bits but of type {type(value).__name__}",
            code="bad_label",
            fix="give a text, for example the number's own",
        )
    return number


def _whole_number(value: object) -> int | None:
    """What counts: Python's and NumPy's integers, within 64 bits."""
    if not isinstance(value, SupportsIndex):
        return None
    try:
        number = operator.index(value)
    except TypeError:  # a tensor of other than one integer has the method, too
        return None
    return number if -(1 << 63) <= number < 1 << 63 else None


def _here() -> Workload:
    """The workload that calls `trace`: its main script if it has one, else the present folder (a notebook)."""
    file = vars(sys.modules["__main__"]).get("__file__")
    main = Path(file).absolute() if isinstance(file, str) and Path(file).is_file() else None
    root = workload_root(main) if main is not None else workload_root(Path.cwd() / "notebook")
    return Workload(root=root, main=main, argv=tuple(sys.argv))

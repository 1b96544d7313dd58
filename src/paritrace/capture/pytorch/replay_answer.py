"""The answer to a replay task: results of both precisions in one file, and a document that describes it (CP-26)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

from paritrace.capture.pytorch.parts import value_of
from paritrace.capture.pytorch.replay_call import Computed, Forced, compute, force
from paritrace.capture.pytorch.replay_values import open_tensor_words
from paritrace.errors import ParitraceError
from paritrace.evidence import replays
from paritrace.evidence.codec import encode_document
from paritrace.evidence.replays import Replayed, ReplayedTensor, ReplayRequest, ReplayTask
from paritrace.evidence.tensor_bundles import Piece, bundle, is_storable
from paritrace.files import LOCAL, Files

MOST_WORDS = 300


def answer(
    module: torch.nn.Module, task: ReplayTask, request: ReplayRequest, *, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Replayed, dict[str, Piece]]:
    """Replay one call. What it cannot do is said in the answer; nothing is raised for what the module does."""
    found = _empty(task, type(module).__qualname__)
    try:
        forced = force(module, task, args=args, kwargs=kwargs)
        plain = compute(forced, wide=False, gradients=request.gradients)
    except ParitraceError as error:
        return replace(found, refused=error.message), {}
    except Exception as error:  # noqa: BLE001  whatever the module does with inputs that are not its own, is the answer
        return replace(found, refused=f"the call raised {short(error)}"), {}
    back = plain.backward
    found = replace(found, not_forced=forced.not_forced, no_gradients=back.why_none, begun=back.begun, drawn=back.drawn)
    pieces = dict(_pieces(plain, replays.RECORDED))
    found, wide = _reference(found, forced, request)
    pieces.update(_pieces(wide, replays.WIDE))
    found = replace(found, tensors=tuple(_described(plain)))
    return _with_program(found, forced, plain, pieces) if request.trace else (found, pieces)


def write_answer(folder: Path, found: Replayed, pieces: dict[str, Piece], *, files: Files = LOCAL) -> None:
    """Write the tensors, then the document: an answer with its document is whole."""
    with files.replacing(folder / replays.tensors_name(found.key)) as sink:
        for chunk in bundle(pieces):
            sink.write(bytes(chunk))
    files.replace(folder / replays.answer_name(found.key), encode_document(found))


def not_reached(task: ReplayTask, why: str) -> Replayed:
    """The answer to a task whose call never came."""
    return replace(_empty(task, ""), refused=why)


def short(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:MOST_WORDS]


def _empty(task: ReplayTask, cls: str) -> Replayed:
    return Replayed(replays.ANSWER_FORMAT, replays.VERSION, task.key, task.rank, task.module, cls)


def _reference(found: Replayed, forced: Forced, request: ReplayRequest) -> tuple[Replayed, Computed]:
    """The same call in float64, or why there is none."""
    if all(tensor.dtype not in _NARROW for tensor in (*forced.tensors.values(), *forced.members.tensors.values())):
        return replace(found, no_reference="nothing that goes into the call is narrower than float64"), Computed()
    try:
        wide = compute(forced, wide=True, gradients=request.gradients)
    except Exception as error:  # noqa: BLE001  operators that know no float64 are the module's own
        return replace(found, no_reference=f"in float64 the call raised {short(error)}"), Computed()
    return replace(found, narrow=wide.narrow, random=wide.random), wide


_NARROW = (torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex32)


def _with_program(
    found: Replayed, forced: Forced, plain: Computed, pieces: dict[str, Piece]
) -> tuple[Replayed, dict[str, Piece]]:
    """Add the call as a program of operators, what it takes and holds, and the outputs bit by bit."""
    from paritrace.capture.pytorch.tracing import trace  # torch's tracer takes seconds to import

    try:
        traced = trace(forced)
        own = {f"{replays.ARGUMENT}/{place}": exact(tensor) for place, tensor in enumerate(traced.arguments)}
        own.update({f"{replays.CONSTANT}/{name}": exact(tensor) for name, tensor in traced.constants.items()})
        own.update(_generator(forced) if traced.program.draws else {})
        own.update({f"{replays.BITS}/{path}": exact(tensor) for path, tensor in plain.outputs.items()})
    except Exception as error:  # noqa: BLE001  what the tracer cannot follow, it says in many ways
        return replace(found, not_traced=short(error)), pieces
    return replace(found, traced=traced.program), pieces | own


def _generator(forced: Forced) -> dict[str, Piece]:
    """The recorded state of torch's generator, which the program starts from."""
    for state in forced.task.golden.generators:
        if state.name == "torch_cpu" and isinstance(state.words, str):
            words = open_tensor_words(Path(forced.task.tensors), state.words)
            return {f"{replays.GENERATOR}/torch_cpu": exact(words)}
    return {}


def _described(computed: Computed) -> Iterator[ReplayedTensor]:
    for gradient, tensors in ((False, computed.outputs), (True, computed.backward.gradients)):
        for path, tensor in tensors.items():
            yield ReplayedTensor(path, dtype_name(tensor), tuple(tensor.shape), gradient)


def _pieces(computed: Computed, head: str) -> Iterator[tuple[str, Piece]]:
    for path, tensor in computed.outputs.items():
        yield f"{head}/{path}", exact(_widest(tensor))
    for path, tensor in computed.backward.gradients.items():
        yield f"{head}{replays.GRADIENT}/{path}", exact(_widest(tensor))


def _widest(tensor: torch.Tensor) -> torch.Tensor:
    """Every value of it, in float64 or int64; a complex one with a last dimension of two."""
    own = value_of(tensor)
    if own is None:
        raise RuntimeError("an output is distributed over ranks")
    if own.is_complex():
        return torch.view_as_real(own.detach().resolve_conj().to(torch.complex128))
    return own.detach().to(torch.float64 if own.is_floating_point() else torch.int64)


def exact(tensor: torch.Tensor) -> Piece:
    """A tensor's bytes in its own dtype, in logical order."""
    if not is_storable(dtype_name(tensor)):
        raise RuntimeError(f"safetensors has no dtype {dtype_name(tensor)}")
    dense = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    size = dense.numel() * dense.element_size()
    data = ctypes.string_at(dense.data_ptr(), size) if size else b""
    return Piece(dtype_name(tensor), tuple(tensor.shape), data)


def dtype_name(tensor: torch.Tensor) -> str:
    """A dtype by its torch name."""
    return str(tensor.dtype).removeprefix("torch.")

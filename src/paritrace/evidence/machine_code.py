"""The pass of `compiled_lines` as machine code: made once for each machine, then loaded without its compiler (PF-10).

Loading numba takes longer than what the pass has to do for 100 MB of a journal, and 60 MB more memory (ADR 0058).
"""

import ctypes
import hashlib
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paritrace.errors import HostError
from paritrace.files import LOCAL

MODULE, ENTRY = "paritrace.evidence.compiled_lines", "taken_apart"
DIGEST_BYTES = 32  # before the name and the code: a damaged file is not run
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_LINES = (_POINTER, _NUMBER, _POINTER, _NUMBER, _POINTER, _POINTER, _NUMBER, *(_POINTER,) * 4)
# as numba calls: where the result goes and what went wrong, then the arguments; 0 is returned where all went well
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_NUMBER), _POINTER, *_LINES)


class _Loaded:
    """A function with the engine that holds its code."""

    def __init__(self, engine: Any, function: Callable[..., int]) -> None:
        self._engine = engine
        self._function = function

    def __call__(self, *arguments: int) -> int:
        found = _NUMBER()
        if self._function(ctypes.byref(found), None, *arguments):
            raise RuntimeError(f"{ENTRY} did not return")
        return found.value


def load_pass() -> Callable[..., int]:
    """The pass, to be called with addresses and numbers; compiled first where it is not kept yet, some seconds.

    Raises:
        Exception: whatever numba or llvmlite says; the pass is optional.
    """
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    places = _places(f"{machine.triple} {llvm.llvm_version_info}")
    kept = next((found for place in places if (found := _kept(place)) is not None), None)
    if kept is None:
        kept = _compiled(llvm, machine)
        _keep(places, kept)
    name, _, code = kept.partition(b"\n")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _Loaded(engine, _PROTOTYPE(engine.get_function_address(name.decode())))


def _compiled(llvm: Any, machine: Any) -> bytes:
    """The name of the function and its machine code."""
    numba = importlib.import_module("numba")
    source = importlib.import_module(MODULE)
    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(source.SIGNATURE, **options)(vars(source)[ENTRY])
    signature = made.signatures[0]
    module = llvm.parse_assembly(made.inspect_llvm(signature))
    outside = [one.name for one in module.functions if one.is_declaration and not one.name.startswith("llvm.")]
    if outside:
        raise RuntimeError(f"{ENTRY} calls {', '.join(outside)}, which only numba brings")
    name: str = made.overloads[signature].fndesc.llvm_func_name
    code: bytes = machine.emit_object(module)
    return name.encode() + b"\n" + code


def _places(machine: str) -> tuple[Path, ...]:
    """Where the code may be kept: beside the compiled modules of Python, else in the user's cache."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{MODULE} has no file")
    key = hashlib.sha256(machine.encode() + LOCAL.read(Path(spec.origin))).hexdigest()[:DIGEST_BYTES]
    beside = Path(importlib.util.cache_from_source(spec.origin)).parent
    return tuple(folder / f"{ENTRY}-{key}.code" for folder in (beside, Path.home() / ".cache" / "paritrace"))


def _kept(place: Path) -> bytes | None:
    try:
        data = LOCAL.read_if_present(place)
    except HostError:
        return None
    if data is None or hashlib.sha256(data[DIGEST_BYTES:]).digest() != data[:DIGEST_BYTES]:
        return None
    return data[DIGEST_BYTES:]


def _keep(places: tuple[Path, ...], made: bytes) -> None:
    """Keep the code at the first place that can be written; where there is none, each process compiles anew."""
    for place in places:
        try:
            LOCAL.replace(place, hashlib.sha256(made).digest() + made)
        except HostError:
            continue
        return

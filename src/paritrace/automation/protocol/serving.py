"""Carries out one request and wraps what comes of it: exactly one JSON document, whatever happens (AU-1, AU-17)."""

import traceback
from pathlib import Path

from paritrace.automation.protocol.digests import sealed
from paritrace.automation.protocol.outputs import ERROR, RESULT, Outputs
from paritrace.automation.protocol.records import PROTOCOL_VERSION, Action, Operation, Request
from paritrace.automation.protocol.requests import BadRequestError, read_request
from paritrace.clock import SYSTEM
from paritrace.errors import HostError, InternalError, Outcome, ParitraceError, RequestError
from paritrace.evidence.digests import sha256_hex
from paritrace.files import LOCAL, Files
from paritrace.files.faults import host_error

MAX_REQUEST_BYTES = 64 << 20  # a request holds results of whole captures, and no more than that
MAX_PROBLEMS = 1000  # that an answer lists (AU-13); a request of 64 MiB may have millions
Document = dict[str, object]


def serve(action: Action, request_path: Path | None, *, files: Files = LOCAL, debug: bool = False) -> Document:
    """Carry out one action and return the document for stdout; `ok` says which of the two it is. Raises nothing."""
    outputs = Outputs(files, SYSTEM)
    operation = _operation(action, None, b"", outputs)
    try:
        request = None
        if request_path is not None or action.request is not None:
            request, operation = _opened(action, request_path, outputs, files)
        document = success(sealed(action.run(request, operation)))
        if operation.output is not None:
            outputs.close(operation.output, RESULT, document)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the top of an operation: every error is a document
        if debug:
            traceback.print_exception(error)
        return _failed(error, operation, outputs)
    return document


def status_of(document: Document) -> int:
    """Return the exit status: 0 with `ok: true`, whatever was found, 2 with `ok: false` (AU-17)."""
    return 0 if document["ok"] is True else 2


def error_document(error: ParitraceError) -> Document:
    """Return an error in its wrapper; `problems` of a request's form, else `details` where several things are wrong."""
    told: Document = {
        "type": _kind_of(error),
        "code": error.code,
        "kind": error.outcome.value,
        "message": _spoken(error.message),
        "fix": _spoken(error.fix),
    }
    if isinstance(error, BadRequestError):
        told["problems"] = [{"at": problem.at, "message": problem.message} for problem in error.problems[:MAX_PROBLEMS]]
        if len(error.problems) > MAX_PROBLEMS:
            told["num_problems"] = len(error.problems)
    elif error.details:
        told["details"] = [_spoken(detail) for detail in error.details]
    return {"protocol_version": PROTOCOL_VERSION, "ok": False, "error": told}


def _opened(action: Action, path: Path | None, outputs: Outputs, files: Files) -> tuple[Request | None, Operation]:
    if path is None:
        raise RequestError(f"{action.name} takes a request", code="request_not_given", fix="give --request FILE")
    if files.size(path) > MAX_REQUEST_BYTES:
        raise RequestError(
            f"{path} is larger than {MAX_REQUEST_BYTES >> 20} MiB", code="large_request", fix="name the right file"
        )
    data = files.read(path)
    request = read_request(data, action)
    return request, _operation(action, path.absolute(), data, outputs)


def _operation(action: Action, path: Path | None, data: bytes, outputs: Outputs) -> Operation:
    return Operation(
        action=action.name,
        request_path=path,
        request_sha256=sha256_hex(data),
        claiming=outputs.claim,
        requiring_fresh=outputs.require_fresh,
    )


def success(result: Document) -> Document:
    """Return a result in its wrapper."""
    return {"protocol_version": PROTOCOL_VERSION, "ok": True, "result": result}


def _failed(error: BaseException, operation: Operation, outputs: Outputs) -> Document:
    known = _as_ours(error)
    if operation.output is None:
        return error_document(known)
    known.outcome = Outcome.FAILED
    known.message += f"; {operation.output} is used up, and kept as it is"
    document = error_document(known)
    try:
        outputs.close(operation.output, ERROR, document)
    except ParitraceError as second:
        known.message += f", without {ERROR}: {second.message}"
        document = error_document(known)
    return document


def _as_ours(error: BaseException) -> ParitraceError:
    """Any exception as one of ours; Refused, until it is known that an output was begun."""
    match error:
        case ParitraceError():
            return error
        case KeyboardInterrupt():
            return RequestError("interrupted", code="interrupted", fix="ask again")
        case OSError():
            return host_error(error, str(error.filename or "a file"), "use")
        case MemoryError():
            return HostError("memory ran out", code="no_memory", fix="ask for fewer ranks or steps at once")
        case _:
            return InternalError(
                f"a fault of paritrace itself: {type(error).__name__}",
                code="internal",
                fix="run the same action with --debug and report what it prints on standard error",
            )


def _spoken(text: str) -> str:
    """Text that UTF-8 can spell: a file's name may be bytes that are none."""
    return text.encode("utf-8", "backslashreplace").decode()


def _kind_of(error: ParitraceError) -> str:
    """Who must act, as the first level of the exception tree names it."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__base__ is ParitraceError)

"""Which reader a file is for: the one that is named, or the only one that recognises it."""

from collections.abc import Mapping
from pathlib import Path

from paritrace.errors import EvidenceError, RequestError
from paritrace.files import LOCAL
from paritrace.inference.importers.table import READERS
from paritrace.inference.importing import Reader, SourceKind


def reader_of(kind: SourceKind, path: Path, *, named: str | None) -> Reader:
    """Return the reader of a file.

    Raises:
        RequestError: Refused: `not_found`, `bad_attachment`, `unknown_format`.
        EvidenceError: Refused: `unrecognised_source`, `ambiguous_source`.
    """
    readers = [one for one in READERS if one.kind is kind]
    names = ", ".join(one.name for one in readers) or "none"
    if not LOCAL.exists(path):
        raise RequestError(f"{path} is not there", code="not_found", fix="check the path of the file")
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError as error:  # a row of the envelope is JSON, which holds no such name
        raise RequestError(
            f"{str(path)!r} has a name that is no UTF-8", code="bad_attachment", fix="rename it, or give a link to it"
        ) from error
    if named is not None:
        found = [one for one in readers if one.name == named]
        if not found:
            raise RequestError(f"{named!r} is no format of {kind.value}", code="unknown_format", fix=f"one of: {names}")
        return found[0]
    found = [one for one in readers if one.recognises(path)]
    if not found:
        raise EvidenceError(
            f"{path} is no {kind.value} that is known here",
            code="unrecognised_source",
            fix=f"name its format with --format, one of: {names}",
        )
    if len(found) > 1:
        raise EvidenceError(
            f"{path} could be {' or '.join(one.name for one in found)}",
            code="ambiguous_source",
            fix="name its format with --format",
        )
    return found[0]


def checked_options(reader: Reader, given: Mapping[str, str]) -> dict[str, str]:
    """Return options that a reader has.

    Raises:
        RequestError: Refused, code `unknown_import_option`.
    """
    known = dict(reader.options)
    wrong = sorted(set(given) - set(known))
    if wrong:
        told = "; ".join(f"{name}: {says}" for name, says in reader.options) or f"{reader.name} has no options"
        raise RequestError(
            f"{reader.name} has no option {wrong[0][:80]!r}",
            code="unknown_import_option",
            fix=f"--with NAME=VALUE: {told}",
        )
    return dict(given)

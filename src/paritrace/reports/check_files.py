"""Writes a check to files: everything into a folder, or one format (SU-4)."""

from pathlib import Path

from msgspec.structs import replace

from paritrace.files import Files
from paritrace.reports.formats import FORMATS, OfCheck, of_checks, writer_of_check


def write_one(given: OfCheck, path: Path, /, *, name: str, files: Files) -> None:
    """Writes one format under the name the user gave.

    Raises:
        RequestError: Refused, `no_such_format`: this format does not show checks.
    """
    writer = writer_of_check(FORMATS[name])
    with files.replacing(path) as sink:
        writer(given, sink)


def write_all(given: OfCheck, directory: Path, /, *, names: tuple[str, ...], files: Files) -> None:
    """Writes the named formats, or all that show checks, into a folder.

    Raises:
        RequestError: Refused, `no_such_format`: one of them does not show checks; nothing was written.
    """
    wanted = [FORMATS[name] for name in names or of_checks()]
    for form in wanted:
        writer_of_check(form)
    ranks = sorted({coverage.rank for coverage in given.checked.coverage.values()})
    for form in wanted:
        path = directory / form.check_file
        if not form.per_rank:
            write_one(given, path, name=form.name, files=files)
            continue
        for rank in ranks:
            of_rank = replace(given, cut=replace(given.cut, ranks=(rank,)))
            write_one(of_rank, path / f"rank-{rank}{form.suffixes[0]}", name=form.name, files=files)

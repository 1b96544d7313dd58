"""Writes a run or a kept comparison as files for other programs, and says what they leave out (SU-2, SU-8)."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paritrace.errors import ParitraceError, RequestError
from paritrace.evidence.digests import sha256_of
from paritrace.files import Files
from paritrace.reports.first_screen import Kept
from paritrace.reports.formats import CHROME, CHROME_SUFFIX, FORMATS, Cut, OfComparison, Sink, writer_of_comparison
from paritrace.reports.kept_result import KeptResult, open_result
from paritrace.reports.kept_rows import KeptRows
from paritrace.reports.traces.chrome import ChromePackets
from paritrace.reports.traces.events import WORDS, Tally, Why
from paritrace.reports.traces.of_both import has_evidence_too, write_both
from paritrace.reports.traces.of_comparison import write_comparison
from paritrace.reports.traces.of_run import ranks_of, write_run
from paritrace.reports.traces.packets import Packets
from paritrace.reports.traces.writing import Pack
from paritrace.runs.reading import Run, open_run

PERFETTO = "pftrace"
PACKS: dict[str, Pack] = {PERFETTO: Packets, CHROME: ChromePackets}
SUFFIXES = {PERFETTO: FORMATS[PERFETTO].suffixes[0], CHROME: CHROME_SUFFIX}


class Exported(Struct, frozen=True):
    """A file that was written. Of traces: `slices`, and `left_out`, calls that are no slices, by reason."""

    path: str
    size: int
    sha256: str
    format: str
    slices: int | None = None
    left_out: dict[str, int] = {}


class Place(Struct, frozen=True):
    """A file that is to be written, and which calls of a trace go there."""

    path: Path
    name: str
    cut: Cut


Write = Callable[[Place, Sink], list[Tally]]


def export_run(run: Run, path: Path, /, *, names: tuple[str, ...], cut: Cut, files: Files) -> list[Exported]:
    """Writes the traces of a run: one file of all ranks, or one for each in a folder.

    One file of all ranks, steps and of Perfetto's format holds the run's inference evidence too.

    Raises:
        RequestError: Refused: `no_such_format`, a format shows comparisons alone; `no_such_rank`; `one_rank_only`.
    """
    for name in names:
        if name not in PACKS:
            raise RequestError(
                f"{name} does not show a run", code="no_such_format", fix=f"give --format {' or '.join(PACKS)}"
            )

    whole = cut.ranks is None and cut.steps is None and has_evidence_too(run.folder)

    def write(place: Place, sink: Sink) -> list[Tally]:
        if whole and place.path == path and place.name == PERFETTO:
            both = write_both(run, sink, cut=cut, files=files)
            return [*both.calls, *both.evidence.parts]
        return write_run(run, sink, cut=place.cut, pack=PACKS[place.name])

    return _write_all(places(path, names, ranks=wanted(ranks_of(run), cut), cut=cut), write, files=files)


def export_result(path: Path, out: Path, /, *, names: tuple[str, ...], cut: Cut, files: Files) -> list[Exported]:
    """Writes a kept comparison in the named formats; with steps and losses where its runs are still there.

    Raises:
        RequestError: Refused: `no_result`, `no_such_rank`, `one_rank_only`.
        EvidenceError: Refused, `damaged_result`.
    """
    kept = open_result(path, files=files)
    with given_of(kept) as given:

        def write(place: Place, sink: Sink) -> list[Tally]:
            if place.name in PACKS:
                return write_comparison(replace(given, cut=place.cut), sink, pack=PACKS[place.name])
            writer_of_comparison(FORMATS[place.name])(given, sink)
            return []

        ranks = wanted(kept.comparison.ranks_compared, cut)
        return _write_all(places(out, names, ranks=ranks, cut=cut), write, files=files)


@contextmanager
def given_of(kept: KeptResult, /) -> Generator[OfComparison]:
    """What writers are given of a kept comparison; its runs, where they are still there, are open in the block."""
    with ExitStack() as opened:
        yield OfComparison(
            comparison=kept.comparison,
            rows=KeptRows(kept.calls_path()),
            runs=_runs(kept, opened),
            kept=Kept(str(kept.directory), found_without_name=False),
        )


def _write_all(wanted_places: Sequence[Place], write: Write, *, files: Files) -> list[Exported]:
    written: list[Exported] = []
    for place in wanted_places:
        with files.replacing(place.path) as sink:
            tallies = write(place, sink)
        digest = sha256_of(files.iter_chunks(place.path))
        made = Exported(str(place.path), digest.num_bytes, digest.sha256, place.name)
        written.append(_with_tallies(made, tallies) if place.name in PACKS else made)
    return written


def _with_tallies(made: Exported, tallies: Sequence[Tally]) -> Exported:
    left_out: dict[str, int] = {}
    for tally in tallies:
        for why, number in tally.left_out.items():
            left_out[why] = left_out.get(why, 0) + number
    return replace(made, slices=sum(tally.slices for tally in tallies), left_out=left_out)


def wanted(ranks: Sequence[int], cut: Cut, /) -> tuple[int, ...]:
    """Returns the ranks that are to be shown.

    Raises:
        RequestError: Refused, `no_such_rank`.
    """
    if cut.ranks is None:
        return tuple(ranks)
    missing = [rank for rank in cut.ranks if rank not in ranks]
    if missing:
        raise RequestError(
            f"there is no rank {missing[0]}",
            code="no_such_rank",
            fix=f"there are {', '.join(map(str, ranks)) or 'none'}",
        )
    return cut.ranks


def places(path: Path, names: Sequence[str], /, *, ranks: tuple[int, ...], cut: Cut) -> list[Place]:
    """Returns the files to write: `path` itself for one format, else files of their names in the folder `path`.

    Raises:
        RequestError: Refused, `one_rank_only`: one file of Chrome's JSON holds one rank.
    """
    if len(names) == 1 and path.suffix and not path.is_dir():
        if names[0] == CHROME and len(ranks) > 1:
            raise RequestError(
                f"one file of {CHROME} holds one rank, and there are {len(ranks)}",
                code="one_rank_only",
                fix="name a folder, or one rank with --rank",
            )
        return [Place(path, names[0], replace(cut, ranks=ranks))]
    return [place for name in names for place in _in_folder(path, name, ranks=ranks, cut=cut)]


def _in_folder(path: Path, name: str, *, ranks: tuple[int, ...], cut: Cut) -> Iterator[Place]:
    if name not in PACKS:
        yield Place(path / FORMATS[name].file, name, cut)
        return
    for rank in ranks:
        yield Place(path / f"rank-{rank}{SUFFIXES[name]}", name, replace(cut, ranks=(rank,)))


def _runs(kept: KeptResult, opened: ExitStack) -> tuple[Run, Run] | None:
    """Both runs where they are still what was compared; a result can be shown without them."""
    found: list[Run] = []
    for ref in (kept.comparison.baseline, kept.comparison.candidate):
        try:
            run = opened.enter_context(open_run(Path(ref.path)))
        except ParitraceError:
            return None
        if run.digest != ref.digest:
            return None
        found.append(run)
    return found[0], found[1]


def in_words(one: Exported, /) -> list[str]:
    """Returns what was written, and of a trace what it leaves out."""
    slices = "" if one.slices is None else f", {one.slices:,} slices"
    lines = [f"wrote {one.path} ({one.size:,} bytes{slices})"]
    return lines + [f"    {number:,} calls {WORDS[Why(why)]}" for why, number in sorted(one.left_out.items())]

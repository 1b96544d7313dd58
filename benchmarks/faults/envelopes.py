"""Comparisons with the baseline's draws, whose envelope is made once for all candidates; what float64 says (CP-18)."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.case import Variant
from benchmarks.faults.store import Store
from paritrace.compare.draws import Draws
from paritrace.compare.engine import compare
from paritrace.compare.envelope import Envelope
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.load import Recorded, load
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.runs.reading import open_run

MAX_KEPT = 4  # envelopes in memory; pairs come ordered by their baseline


class Comparer:
    """Compares runs of a store, plainly or judged by the baseline's draws."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._envelopes: dict[Path, dict[tuple[int, int], Envelope | None]] = {}

    def plain(self, baseline: Path, candidate: Path) -> Comparison:
        with open_run(baseline) as a, open_run(candidate) as b:
            return compare(a, b).result

    def judged(self, baseline: Variant, candidate: Path) -> Comparison:
        """As `compare` does where the draws lie beside the baseline."""
        base = self._store.captured(baseline).run
        paths = self._store.draws(baseline)
        made = self._envelopes.setdefault(base, {})
        while len(self._envelopes) > MAX_KEPT:
            del self._envelopes[next(iter(self._envelopes))]
        with ExitStack() as opened:
            a, b = opened.enter_context(open_run(base)), opened.enter_context(open_run(candidate))
            runs = tuple(opened.enter_context(open_run(path)) for path in paths)
            return compare(a, b, by=JudgedBy(PERTURBED, runs, made=made)).result

    def effect(self, baseline: Variant, candidate: Variant) -> float | None:
        """The largest error that the mistake makes in float64, in the largest error of the draws at the same place.

        Both sides run in float64 without the kernel change. None where no place has both figures.
        """
        base = self._store.captured(baseline).run
        envelope = next(iter(self._envelopes[base].values()))
        if envelope is None:
            return None
        draws = Draws(recorded(self._store.captured(in_float64(baseline)).run), around=recorded(base))
        draws.add(recorded(self._store.captured(in_float64(candidate)).run))
        ratios: list[float] = []
        for place, (found, *_) in draws.found.items():
            most = float(envelope.table[envelope.places[place], :, 0].max()) if place in envelope.places else 0.0
            if found is not None and most > 0.0:
                ratios.append(found.error / most)
        return max(ratios, default=None)


def in_float64(variant: Variant) -> Variant:
    words = list(variant.arguments)
    words[words.index("--dtype") + 1] = "float64"
    return replace(variant, arguments=tuple(words))


def recorded(run: Path) -> Recorded:
    with open_run(run) as opened:
        return load(opened, opened.sessions[0], settings=Settings())

"""Captures of the full suite on disk: one folder per variant, found again by what it was made of (CP-18)."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.capturing import capture
from benchmarks.faults.case import Launch, Variant
from benchmarks.faults.checkouts import sources_of, write_checkout
from benchmarks.faults.running import environments_of_ranks
from paritrace.runs.draws import draw_path, draws_of

DRAWS = 8
NUM_STEPS = "2"  # where a variant's own arguments name no number
LEVELS = ("--level", "module", "--level", "op")
DONE = "captured.json"


class NotCapturedError(Exception):
    """Only comparisons are wished, and the capture that one needs is not there."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A capture: the run, its sources, and the seconds that it took when it was made."""

    run: Path
    sources: dict[str, str]
    seconds: float


class Store:
    """Captures below one directory; a capture that was interrupted is made anew."""

    def __init__(self, root: Path, *, may_capture: bool = True) -> None:
        self.root = root
        self.may_capture = may_capture

    def captured(self, variant: Variant, *, again: bool = False) -> Kept:
        """The capture of a variant; `again` is another one of the same.

        Raises:
            NotCapturedError: it is not there and may not be made.
            CaptureFailedError: the workload, or capturing it, failed.
        """
        place = self.root / name_of(variant, again=again)
        if not (place / DONE).exists():
            self._make(place, variant)
        made = json.loads((place / DONE).read_text(encoding="utf-8"))
        script = place / made["script"]
        texts = {path.name: path.read_text(encoding="utf-8") for path in script.parent.glob("*.py")}
        new_names = {new: old for old, new in variant.renamed}
        return Kept(
            run=place / "run",
            sources={new_names.get(name, name): text for name, text in texts.items()},
            seconds=made["seconds"],
        )

    def draws(self, variant: Variant) -> tuple[Path, ...]:
        """The perturbed draws of a captured variant, made where they are missing."""
        place = self.root / name_of(variant)
        run = self.captured(variant).run
        script = place / json.loads((place / DONE).read_text(encoding="utf-8"))["script"]
        for seed in range(1, DRAWS + 1):
            path = draw_path(run, seed)
            marker = place / f"draw{seed:02}.done"
            if not marker.exists():
                self._allowed(variant)
                shutil.rmtree(path, ignore_errors=True)
                options = ("run", "-o", str(path), *options_of(variant), "--perturb-seed", str(seed))
                capture((*options, str(script), *variant.arguments), directory=script.parent, errors=place / "stderr")
                marker.touch()
        return draws_of(run)

    def _allowed(self, variant: Variant) -> None:
        if not self.may_capture:
            raise NotCapturedError(name_of(variant))

    def _make(self, place: Path, variant: Variant) -> None:
        self._allowed(variant)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        script = write_checkout(variant, directory=place)
        command = ("run", "-o", str(place / "run"), *options_of(variant), str(script), *variant.arguments)
        ranks = ({},) if variant.launch is Launch.PLACED else environments_of_ranks()
        seconds = capture(command, directory=script.parent, errors=place / "stderr", ranks=ranks)
        words = json.dumps({"script": str(script.relative_to(place)), "seconds": round(seconds, 3)})
        (place / f"{DONE}.new").write_text(words, encoding="utf-8")
        os.replace(place / f"{DONE}.new", place / DONE)


def options_of(variant: Variant) -> tuple[str, ...]:
    """Both levels at each step that the training makes: `check` holds a run to the steps that it was asked for."""
    words = variant.arguments
    steps = words[words.index("--steps") + 1] if "--steps" in words else NUM_STEPS
    return (*LEVELS, "--steps", f"0:{steps}")


def name_of(variant: Variant, *, again: bool = False) -> str:
    """A name that holds everything the capture is made of but paritrace itself and torch."""
    sources = [path.read_text(encoding="utf-8") for path in sources_of(variant.launch)]
    words = repr((variant, options_of(variant), again, sources))
    return hashlib.sha256(words.encode()).hexdigest()[:24]

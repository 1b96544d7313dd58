"""`python -m benchmarks.pairs [-o FILE] [--only WORDS] [--other PYTHON]`: makes every pair, compares it, and checks the
answer. The pair of two torch versions needs an interpreter with another one, and is left out without."""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.pairs.pairs import PAIRS, Pair
from benchmarks.pairs.training import Variant, capture
from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.result import Comparison
from paritrace.compare.settings import Settings
from paritrace.reports.headline import statement
from paritrace.runs.draws import draw_path, draws_of
from paritrace.runs.reading import open_run

DRAWS = 8
RANKED_SECONDS = 300
OTHER_SECONDS = 600  # a torch of that size that is imported for the first time
ONE = "one"  # the variant that the other interpreter captures
TRAINING = Path(__file__).with_name("training.py")


@dataclass(frozen=True, kw_only=True)
class Row:
    pair: Pair
    result: Comparison
    as_expected: bool
    seconds: float

    @property
    def undetermined(self) -> float:
        counts = self.result.counts
        calls = counts.calls_baseline + counts.calls_candidate
        return (counts.undetermined_baseline + counts.undetermined_candidate) / calls if calls else 0.0


def with_draws(run: Path, variant: Variant) -> Path:
    capture(run, variant)
    for seed in range(1, DRAWS + 1):
        capture(draw_path(run, seed), replace(variant, draw=seed))
    return run


def captured(pair: Pair, place: Path, *, other: str) -> tuple[Path, Path]:
    if pair.by_other:
        subprocess.run([other, str(TRAINING), str(place), ONE], check=True, timeout=OTHER_SECONDS, capture_output=True)
        return with_draws(place / "baseline", pair.baseline), place / ONE
    if pair.ranked != ("", ""):
        for ranks, name in zip(pair.ranks, pair.ranked, strict=True):
            launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
            command = [sys.executable, *launcher, str(TRAINING), str(place), name]
            subprocess.run(command, check=True, timeout=RANKED_SECONDS, capture_output=True)
        return place / pair.ranked[0], place / pair.ranked[1]
    ways = (with_draws if pair.draws == side else capture for side in ("baseline", "candidate"))
    variants = (pair.baseline, pair.candidate)
    names = ("baseline", "candidate")
    found = [way(place / name, variant) for way, name, variant in zip(ways, names, variants, strict=True)]
    return found[0], found[1]


def judged(pair: Pair, place: Path, *, other: str) -> Comparison:
    paths = captured(pair, place, other=other)
    a, b = (open_run(path) for path in paths)
    by = None
    if pair.draws:
        origin = a if pair.draws == "baseline" else b
        runs = tuple(open_run(path) for path in draws_of(origin.folder))
        by = JudgedBy(PERTURBED, runs, None if origin is a else origin)
    first = pair.candidate.first
    settings = Settings(steps=(first, None)) if first else Settings()
    return compare(a, b, settings, by=by).result


def row_of(pair: Pair, *, other: str) -> Row:
    started = time.monotonic()
    with TemporaryDirectory() as place:
        result = judged(pair, Path(place), other=other)
    found = Row(pair=pair, result=result, as_expected=pair.rule(result), seconds=time.monotonic() - started)
    print(f"{'ok  ' if found.as_expected else 'NOT '} {pair.name}: {told(result)}", file=sys.stderr, flush=True)
    return found


def told(result: Comparison) -> str:
    _, sentence, strength = statement(result)
    more = len(result.findings) - 1
    return f"{sentence} ({strength})" + (f" and {more} more" if more > 0 else "")


def other_version(result: Comparison) -> str:
    told = (change.candidate for change in result.changed if (change.kind, change.name) == ("package", "torch"))
    return f", the other torch being {next(told, 'the same')}"


def table(rows: list[Row]) -> str:
    lines = ["| pair | an expert says | the first lines say | as expected | undetermined |", "|---|---|---|---|---|"]
    for row in rows:
        answer = "yes" if row.as_expected else "**no**"
        said = told(row.result).replace("|", "/")
        lines.append(f"| {row.pair.name} | {row.pair.expert} | {said} | {answer} | {row.undetermined:.1%} |")
    return "\n".join(lines)


TAIL = """Read the answers for what they are:

- Of a compiled model hardly any call is paired: the region's inside is not observed, and nothing in it was judged.
  Losses, gradient norms and weights are.
- At level module alone the first line of eager / SDPA names `self_attn.o_proj`, the first module that the other
  attention feeds, and says that code without a record made the difference; with operators it names the attention.
- Behind another discrete choice, as of tied experts, no size is judged.
- Layouts are related by fold: sums over elements see no order, and activations have no verdict.
- The other torch is a build for CUDA (the usual index has no other of an older release), run on the same processor.
  Between releases whose kernels round otherwise, the same pair would differ and be judged by the draws.
"""

HEAD = """# Pairs of runs as engineers make them

What `paritrace compare` says first of pairs that people really make, beside what somebody who knows the pair says. The
training is a tiny Llama of transformers (2 layers) or a small model with routed experts; draws are eight. The table is
made by one command, which checks each answer by a rule in `benchmarks/pairs/pairs.py`:

```sh
python -m benchmarks.pairs --other .venv-other/bin/python -o docs/explanation/real-pairs.md
```

`--other` names an interpreter with another version of torch, beside which the requirements of paritrace and
transformers are installed; without it the pair of two torch versions is left out.

"Undetermined" is the share of calls on both sides that have no partner. A pair whose answer is not as expected stands
here all the same.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="write the page there")
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    parser.add_argument("--other", default="", metavar="PYTHON", help="an interpreter with another version of torch")
    args = parser.parse_args()
    torch.set_num_threads(1)
    pairs = [pair for pair in PAIRS if args.only in pair.name and (args.other or not pair.by_other)]
    rows = [row_of(pair, other=args.other) for pair in pairs]
    right = sum(row.as_expected for row in rows)
    versions = f"{torch.__version__}{''.join(other_version(row.result) for row in rows if row.pair.by_other)}"
    tail = f"\n\n{right} of {len(rows)} are as expected, with torch {versions}.\n\n{TAIL}"
    text = HEAD + table(rows) + tail
    if args.output is None:
        print(text)
    else:
        args.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Call records of a real capture, as material for PF-4 and PF-5."""

from pathlib import Path

import msgspec

import paritrace
from benchmarks.encoder import Training
from paritrace.evidence.calls import Call


def captured_calls(folder: Path) -> list[Call]:
    """The calls of two training steps of the encoder at level `op`."""
    run = folder / "captured"
    training = Training()
    with paritrace.trace(run, level="op", steps=(0, 2)):
        training.step()
        training.step()
    decoder = msgspec.json.Decoder(Call)
    lines = (line for path in run.rglob("calls.jsonl") for line in path.read_bytes().splitlines())
    return [decoder.decode(line) for line in lines if line.startswith(b'["c"')]

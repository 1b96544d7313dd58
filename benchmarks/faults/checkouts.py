"""Writes one side's checkout of the workload: its sources with the edits applied, the weights it starts from."""

from pathlib import Path

from benchmarks.faults.case import Edit, Launch, Variant, WeightChange

WORKLOAD = Path(__file__).parent / "workload"
RANKED_WORKLOAD = Path(__file__).parent / "ranked_workload"
PLACED_WORKLOAD = Path(__file__).parent / "placed_workload"
WEIGHTS = "weights.pt"


def write_checkout(variant: Variant, *, directory: Path) -> Path:
    """Write the checkout under `directory` and return the path of its main script."""
    names = dict(variant.renamed)
    root = directory / variant.directory
    root.mkdir(parents=True)
    for source in sources_of(variant.launch):
        text = edited(source.read_text(encoding="utf-8"), file=source.name, edits=variant.edits)
        (root / names.get(source.name, source.name)).write_text(text, encoding="utf-8")
    if variant.weights:
        write_weights(variant.weights, path=root / WEIGHTS)
    return root / names.get("train.py", "train.py")


def sources_of(launch: Launch) -> list[Path]:
    """The sources that a side is made of, by name: the placed workload is the first one with two files of its own."""
    folders = {Launch.PROCESS: (WORKLOAD,), Launch.PLACED: (WORKLOAD, PLACED_WORKLOAD)}.get(launch, (RANKED_WORKLOAD,))
    found = {path.name: path for folder in folders for path in folder.glob("*.py")}
    return [found[name] for name in sorted(found)]


def edited(text: str, *, file: str, edits: tuple[Edit, ...]) -> str:
    """The text with every edit of this file applied; an edit that does not apply exactly once is a mistake of ours."""
    for edit in edits:
        if edit.file != file:
            continue
        if text.count(edit.old) != 1:
            raise ValueError(f"{file}: {text.count(edit.old)} places instead of 1 for the edit {edit.old!r}")
        text = text.replace(edit.old, edit.new)
    return text


def write_weights(changes: tuple[WeightChange, ...], *, path: Path) -> None:
    """Save the workload's initial weights with `changes` made to them."""
    import torch

    from benchmarks.faults.workload_weights import initial_weights

    weights = initial_weights()
    generator = torch.Generator().manual_seed(1)
    for change in changes:
        value = weights[change.parameter]
        if change.element is None:
            value += change.amount * torch.randn(value.shape, generator=generator)
        else:
            value[change.element] += change.amount
    torch.save(weights, path)

"""A small causal model with absolute positions, run on padded, packed and single batches, with mistakes to plant."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

import paritrace
from paritrace.compare.engine import compare
from paritrace.compare.judged_by import JudgedBy
from paritrace.compare.judgement import PERTURBED
from paritrace.compare.rows import Compared
from paritrace.compare.settings import Settings
from paritrace.compare.token_rows_result import TokenRowsFound
from paritrace.runs.reading import open_run

VOCABULARY, WIDTH, LONGEST = 40, 24, 24
LENGTHS = (5, 9, 3, 7)
NAMES = ("a", "b", "c", "d")
ROWS = ("*",)


class Block(torch.nn.Module):
    """Attention with an explicit mask, and a linear layer; `past` are keys and values of earlier tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mlp = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, allowed: torch.Tensor, past: list[torch.Tensor] | None = None) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
            past[:] = [k, v]
        scores = (q @ k.transpose(1, 2)) / WIDTH**0.5
        mixed = scores.masked_fill(~allowed, -1e9).softmax(-1) @ v
        return x + torch.tanh(self.mlp(mixed))


class Model(torch.nn.Module):
    def __init__(self, *, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.places = torch.nn.Embedding(LONGEST, WIDTH)
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.lm_head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        allowed: torch.Tensor,
        cache: Sequence[list[torch.Tensor]] | None = None,
    ) -> torch.Tensor:
        x = self.tokens(ids) + self.places(positions)
        for number, block in enumerate(self.blocks):
            x = block(x, allowed, None if cache is None else cache[number])
        out: torch.Tensor = self.lm_head(x)
        return out


def samples() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, VOCABULARY, (length,), generator=generator) for length in LENGTHS]


def padded(
    model: Model, *, left: bool = False, wrong_positions: bool = False, order: Sequence[int] = (0, 1, 2, 3)
) -> None:
    """All samples in one padded batch; `wrong_positions`: counted from the padding on (TransformerLens#1609)."""
    texts = [samples()[number] for number in order]
    longest = max(LENGTHS)
    ids, mask = torch.zeros(4, longest, dtype=torch.long), torch.zeros(4, longest, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), longest) if left else slice(0, len(text))
        ids[row, place], mask[row, place] = text, 1
    positions = torch.arange(longest).expand(4, -1) if wrong_positions else (mask.cumsum(1) - 1).clamp(min=0)
    allowed = torch.ones(longest, longest, dtype=torch.bool).tril() & mask.bool()[:, None]
    names = [NAMES[number] for number in order]
    rows = paritrace.rows(names, input_ids=ids, attention_mask=mask, position_ids=positions)
    observed(rows[:, :-1], model(ids, positions, allowed)[:, :-1], ids[:, 1:])


def packed(model: Model) -> None:
    """All samples one after the other."""
    ids = torch.cat(samples())[None]
    positions = torch.cat([torch.arange(length) for length in LENGTHS])[None]
    owner = torch.repeat_interleave(torch.arange(4), torch.tensor(LENGTHS))
    allowed = (owner[:, None] == owner) & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    cu_seqlens = torch.cumsum(torch.tensor([0, *LENGTHS]), 0)
    paritrace.rows(NAMES, input_ids=ids, position_ids=positions, cu_seqlens=cu_seqlens)
    model(ids, positions, allowed[None])


def single(model: Model) -> None:
    """One sample after the other, the last one first."""
    for name, text in reversed(list(zip(NAMES, samples(), strict=True))):
        length = len(text)
        positions = torch.arange(length)[None]
        rows = paritrace.rows([name], input_ids=text[None], position_ids=positions)
        logits = model(text[None], positions, torch.ones(1, length, length, dtype=torch.bool).tril())
        observed(rows[:, :-1], logits[:, :-1], text[None, 1:])


def observed(
    rows: paritrace.Rows,
    logits: torch.Tensor,
    following: torch.Tensor,
    *,
    temperature: float = 1.0,
    tag: str | None = None,
) -> None:
    """The log-probabilities of the tokens that follow."""
    found = (logits / temperature).log_softmax(-1).gather(-1, following[..., None])[..., 0]
    rows.observe("logprobs", found, semantics=tag)


def generated(
    model: Model, *, cached: bool, off_by: int = 0, num_tokens: int = 3, bias: float = 0.0
) -> list[list[int]]:
    """Greedy tokens after each sample, one sample at a time; `off_by`: what is wrong with positions from the cache on.

    `bias` is added to the logit of token 0, so that choices tip over.
    """
    texts = [text.tolist() for text in samples()]
    for name, text in zip(NAMES, texts, strict=True):
        cache: list[list[torch.Tensor]] = [[], []]
        fed = 0
        for _ in range(num_tokens):
            start = fed if cached else 0
            ids = torch.tensor([text[start:]])
            places = torch.arange(start, len(text))[None]
            positions = places + (off_by if start else 0)
            allowed = torch.ones(1, len(text), len(text), dtype=torch.bool).tril()[:, start:]
            shown = paritrace.rows([name], places, input_ids=ids)
            logits = model(ids, positions, allowed, cache if cached else None)
            if not cached:
                shown = shown[:, fed:]
            logits = logits[:, fed - start :]
            logits[..., 0] += bias
            shown.observe("next.logits", logits)
            fed = len(text)
            text.append(int(logits[0, -1].argmax()))
    return texts


def capture(run: Path, workload: object, *arguments: object, **options: object) -> Path:
    """A run of one of the workloads above; options that `paritrace.trace` has not are the workload's."""
    assert callable(workload)
    seed = options.pop("perturb_seed", 0)
    assert isinstance(seed, int)
    levels = ("module", "op") if seed else "module"
    with torch.no_grad(), paritrace.trace(run, rows=ROWS, perturb_seed=seed, level=levels):
        workload(Model(), *arguments, **options)
    return run


def compared(baseline: Path, candidate: Path, *draws: Path, settings: Settings | None = None) -> Compared:
    by = JudgedBy(PERTURBED, tuple(open_run(draw) for draw in draws)) if draws else None
    return compare(open_run(baseline), open_run(candidate), settings or Settings(), by=by)


def found(baseline: Path, candidate: Path, *draws: Path) -> TokenRowsFound:
    """What the comparison says of the rows."""
    told = compared(baseline, candidate, *draws).result.token_rows
    assert told is not None
    return told


def perturbed(folder: Path, workload: object, number: int = 8) -> Iterator[Path]:
    """Draws of a workload."""
    for seed in range(1, number + 1):
        yield capture(folder / f"{seed:02}", workload, perturb_seed=seed)

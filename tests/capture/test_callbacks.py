"""Callbacks name the steps of Hugging Face's Trainer and of Lightning (CA-1, CA-3)."""

from pathlib import Path

import pytest

from paritrace.evidence.calls import StepMark
from paritrace.runs.reading import open_run
from tests.cases.captures import run_python, write_script

TRAINER = """
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import paritrace

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                                     num_attention_heads=2, num_key_value_heads=2))
data = [{"input_ids": row, "labels": row} for row in torch.randint(0, 40, (24, 6))]
arguments = TrainingArguments(output_dir=sys.argv[1], max_steps=3, per_device_train_batch_size=2,
                              gradient_accumulation_steps=2, report_to=[], save_strategy="no", use_cpu=True,
                              disable_tqdm=True, logging_strategy="no")
with paritrace.trace(sys.argv[2], level="module", steps=(0, 5)):
    Trainer(model=model, args=arguments, train_dataset=data, callbacks=[paritrace.trainer_callback()]).train()
"""

LIGHTNING = """
import sys

import lightning.pytorch as lightning
import torch

import paritrace


class Fit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24, 4)), batch_size=4)
trainer = lightning.Trainer(max_steps=3, accumulate_grad_batches=2, accelerator="cpu", logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, default_root_dir=sys.argv[1],
                            callbacks=[paritrace.lightning_callback()])
with paritrace.trace(sys.argv[2], level="module", steps=(0, 5)):
    trainer.fit(Fit(), data)
"""


def step_marks(run: Path) -> list[StepMark]:
    return [record for record in open_run(run).records("rank-0") if isinstance(record, StepMark)]


@pytest.mark.slow
@pytest.mark.parametrize(("library", "script"), [("accelerate", TRAINER), ("lightning", LIGHTNING)])
def test_steps_are_those_of_the_trainer(tmp_path: Path, library: str, script: str) -> None:
    pytest.importorskip(library)
    done = run_python(
        str(write_script(tmp_path / "train.py", script)),
        str(tmp_path / "out"),
        str(tmp_path / "run"),
        directory=tmp_path,
    )
    assert done.status == 0, done.stderr
    marks = step_marks(tmp_path / "run")
    assert [mark.step for mark in marks] == [0, 1, 2]
    assert [mark.backwards for mark in marks] == [2, 2, 2], "two micro-batches in each step"
    assert [mark.optimizer_steps for mark in marks] == [1, 1, 1]

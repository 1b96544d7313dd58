"""What a launcher is told to run: the workload under `paritrace run`, or bare, each word as it was (CA-1)."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paritrace.errors import Outcome, RequestError
from paritrace.process.launchers import Workload, launcher_command

SCRIPT = Workload("train.py", ("--lr", "0.1"), module=False)
MODULE = Workload("pkg.train", ("x y",), module=True)
PYTHON = "/opt/python"
RUN = ("run", "-o=A", "--launcher=")


@pytest.mark.parametrize(
    ("text", "head", "flag"),
    [
        ("torchrun --nproc-per-node 2", ("torchrun", "--nproc-per-node", "2"), "-m"),
        ("/opt/bin/torchrun --standalone", ("/opt/bin/torchrun", "--standalone"), "-m"),
        ("python3.11 -W error -m torch.distributed.run --nnodes 1", None, "-m"),
        ("accelerate launch --num_processes 2", None, "-m"),
        ("python -m accelerate.commands.launch --cpu", None, "-m"),
        ("deepspeed --no_local_rank --num_gpus 2", None, "--module"),
        ("srun -n 2 -m block", ("srun", "-n", "2", "-m", "block", PYTHON), "-m"),
        ("mpirun -np 2 -x 'A=b c'", ("mpirun", "-np", "2", "-x", "A=b c", PYTHON), "-m"),
        ("srun --container-image=x python3", ("srun", "--container-image=x", "python3"), "-m"),
    ],
)
def test_the_target_stands_behind_the_launchers_own_options(text: str, head: tuple[str, ...] | None, flag: str) -> None:
    words = head or tuple(shlex.split(text))
    launcher = launcher_command(text, python=PYTHON)
    assert launcher.captured(SCRIPT, ("-o=A",)) == (*words, flag, "paritrace", *RUN, "train.py", "--lr", "0.1")
    assert launcher.captured(MODULE, ("-o=A",)) == (*words, flag, "paritrace", *RUN, "--module", "pkg.train", "x y")
    assert launcher.of(SCRIPT) == (*words, "train.py", "--lr", "0.1")
    assert launcher.of(MODULE) == (*words, flag, "pkg.train", "x y")


def test_deepspeeds_own_argument_reaches_the_script_and_not_paritrace() -> None:
    launcher = launcher_command("deepspeed --num_gpus 2", python=PYTHON)
    command = launcher.captured(SCRIPT, ("-o=A",))
    assert command[:6] == ("deepspeed", "--num_gpus", "2", "--no_local_rank", "--module", "paritrace")
    assert command[6:] == (*RUN, "--local-rank-argument", "train.py", "--lr", "0.1")
    assert launcher.of(SCRIPT) == ("deepspeed", "--num_gpus", "2", "train.py", "--lr", "0.1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "''",
        "torchrun 'x",
        "nope --flag",
        "FOO=1 torchrun",
        "bash -c torchrun",
        "accelerate config",
        "accelerate",
        "python",
        "python -m",
        "python -m http.server",
        "python train.py",
        "torchrun --standalone train.py",
        "torchrun --standalone -m train",
        "torchrun --no-python x",
        "srun -n 2 python train.py",
        "torchrun\0",
    ],
)
def test_what_cannot_be_a_launcher_is_refused_with_a_mend(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        launcher_command(text, python=PYTHON)
    assert (refused.value.code, refused.value.outcome) == ("bad_launcher", Outcome.REFUSED)
    assert refused.value.fix


@given(
    name=st.text(min_size=1),
    arguments=st.lists(st.text(), max_size=4),
    options=st.lists(st.text(min_size=1), max_size=3),
)
def test_no_word_is_changed_joined_or_split(name: str, arguments: list[str], options: list[str]) -> None:
    launcher = launcher_command("torchrun --nproc-per-node 2", python=PYTHON)
    command = launcher.captured(Workload(name, tuple(arguments), module=False), options)
    assert command[-1 - len(arguments) :] == (name, *arguments)
    assert list(command[6 : 6 + len(options)]) == options

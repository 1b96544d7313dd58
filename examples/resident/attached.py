"""The plain script with two lines more: it can be stopped, looked at and captured while it runs (SE-1a)."""

import argparse

import torch.distributed as dist

import paritrace
from examples.resident.training import Settings, begin, digest_of, read_text, take_step


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    text = read_text("tides")
    training = begin(Settings())
    for step in paritrace.steps(range(options.steps)):
        loss = take_step(training, text, step)
        print(f"rank {dist.get_rank()}  step {step}  loss {loss:.4f}", flush=True)
    print(f"rank {dist.get_rank()}  weights {digest_of(training.model)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

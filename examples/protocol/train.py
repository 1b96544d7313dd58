"""A small regression, on one process or on the ranks of torchrun; `--fault` clips each gradient by its own norm."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

WIDTH, BATCH, MAX_NORM, RATE, STEPS = 16, 8, 0.1, 0.05, 2


def clipped(gradients):
    norm = torch.linalg.vector_norm(torch.cat([torch.flatten(gradient) for gradient in gradients]))
    scale = torch.clamp(torch.div(MAX_NORM, norm), max=1.0)
    return [torch.mul(gradient, scale) for gradient in gradients]


def clipped_apart(gradients):  # the fault: what is small keeps its size, and the direction is another one
    return [clipped([gradient])[0] for gradient in gradients]


def reduced(gradients, world_size):
    if world_size > 1:
        for gradient in gradients:
            dist.all_reduce(gradient)
    return [torch.div(gradient, world_size) for gradient in gradients]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", action="store_true")
    options = parser.parse_args()
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world_size > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    parameters = [torch.randn(WIDTH, WIDTH, requires_grad=True), torch.zeros(WIDTH, requires_grad=True)]
    data = torch.Generator().manual_seed(1 + rank)
    clip = clipped_apart if options.fault else clipped
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, WIDTH, generator=data)
        outputs = F.linear(inputs, *parameters)
        loss = F.mse_loss(outputs, torch.sin(inputs))
        gradients = clip(reduced(torch.autograd.grad(loss, parameters), world_size))
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(torch.mul(gradient, RATE))
    print(f"rank {rank}: loss {loss.item():.4f}")
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Starts a child by spawn and one by fork; both use torch."""
import multiprocessing

import torch


def work(scale, results):
    results.put((torch.ones(3) * scale).sum().item())


def main():
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        results = context.Queue()
        child = context.Process(target=work, args=(2.0, results))
        child.start()
        print(method, results.get(timeout=120))
        child.join()
        print(child.exitcode)
    print(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)


if __name__ == "__main__":
    main()

"""Data parallel training by torch.distributed: each process launches the op's kernels on a share of the data.

Two processes of this machine, over gloo and on CPU tensors, so that the kernels run in the emulator. Their gradients
are averaged as they come, and what they learn is what one process learns of all the data.
"""

import multiprocessing
import os
import tempfile
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch_training import activation

from ptxdsl.bench import Row, error_of, report


class Network(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, width, bias=False), torch.nn.Linear(width, 1)
        self.bias = torch.nn.Parameter(torch.randn(width))

    def forward(self, x: Any) -> Any:
        return self.second(activation(self.first(x), self.bias))


def train(network: Any, x: Any, y: Any, steps: int) -> Any:
    """The parameters after some steps, one after the other."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(network(x), y).backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach()


def work(rank: int, world: int, folder: str) -> None:
    """One process: its share of the data, and the parameters it has learnt."""
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=world)
    network, x, y, steps = torch.load(f"{folder}/task", weights_only=False)
    share = slice(rank * len(x) // world, (rank + 1) * len(x) // world)
    network = torch.nn.parallel.DistributedDataParallel(network)
    torch.save(train(network, x[share], y[share], steps), f"{folder}/{rank}")
    dist.destroy_process_group()


def main(samples: int = 96, width: int = 32, steps: int = 10, world: int = 2) -> Row:
    """``samples`` is a multiple of ``world``, so that all shares weigh the same."""
    network, x = Network(width), torch.rand(samples, 3)
    y = torch.sin(3 * x.sum(1, keepdim=True))
    with tempfile.TemporaryDirectory() as folder:
        torch.save((network, x, y, steps), os.path.join(folder, "task"))
        start = perf_counter()
        context = multiprocessing.get_context("spawn")  # a forked child would have no threads of torch's
        processes = [context.Process(target=work, args=(rank, world, folder)) for rank in range(world)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        seconds = perf_counter() - start
        learnt = [torch.load(os.path.join(folder, str(rank))) for rank in range(world)]
    expected = train(network, x, y, steps)
    error = max(error_of(each, expected) for each in learnt)
    return Row(f"{world} processes, {steps} steps", "emulator", seconds, error, 1e-5)


if __name__ == "__main__":
    report(main())

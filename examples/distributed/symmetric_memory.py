"""A sum over the GPUs of a machine, in two ways: by multicast addresses, and by the addresses of the peers' memory.

python examples/distributed/symmetric_memory.py [numbers]
torchrun --nproc-per-node gpu examples/distributed/symmetric_memory.py [numbers]

The second needs PyTorch and two or more GPUs that reach each other's memory, the first way GPUs of sm_90 or newer
behind an NVSwitch; it has not been run on any yet. The first command runs the same kernels on the emulator, where the
peers are arrays of one process, and a multicast address has one device behind it: the sum over that is its own array.
"""

import os
import sys
from time import perf_counter
from typing import Any

import numpy as np

import ptxdsl
from ptxdsl import Ptr, break_if, cdiv, f32, loop, ptx, ptx_kernel, reg, u32, when
from ptxdsl.bench import Row, error_of, report

THREADS, WIDTH = 256, 4


@ptx_kernel
def sum_by_multicast(groups: u32, share: Ptr[f32]) -> None:
    """The sum of four numbers a thread over all GPUs, into the memory of all; ``share`` is a multicast address."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < groups):
        place = share + i * WIDTH
        ptx.multimem.st.relaxed.sys.global_.v4.f32(
            place, ptx.multimem.ld_reduce.relaxed.sys.global_.add.v4.f32(place)
        )


@ptx_kernel
def meet(arrived: Ptr[u32], arrived_everywhere: Ptr[u32], expected: u32) -> None:
    """Wait until each GPU has come here: all count in the memory of all, which has two addresses (hence the fence)."""
    ptx.multimem.red.release.sys.global_.add.u32(arrived_everywhere, reg(u32, 1))
    ptx.fence.proxy.alias()
    with loop():
        break_if(ptx.ld.acquire.sys.global_.u32(arrived) >= expected)


@ptx_kernel
def sum_of_peers(n: u32, peers: Ptr[Ptr[f32]], total: Ptr[f32], *, world: int) -> None:
    """The same without multicast: each GPU reads all of them."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        values = [peers[rank][i] for rank in range(world)]
        total[i] = sum(values[1:], values[0])


class Memory:
    """Numbers at an address that a GPU reaches, as an array: torch has no tensor at a multicast address."""

    def __init__(self, address: int, count: int, kind: str, device: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (count,), "typestr": kind, "strides": None, "version": 3
        }
        self.device = device


def on_gpus(count: int) -> Row:
    """As one of the processes of torchrun, with a GPU of its own; compared with NCCL's sum."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    ptxdsl.device(device)
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    x = symmetric.empty(count, dtype=torch.float32, device=f"cuda:{device}").normal_()
    arrived = symmetric.empty(1, dtype=torch.int32, device=f"cuda:{device}").zero_()
    handle, flags = (symmetric.rendezvous(each, dist.group.WORLD) for each in (x, arrived))
    expected, total = x.clone(), torch.empty_like(x)
    dist.all_reduce(expected)
    peers = [handle.get_buffer(peer, (count,), torch.float32) for peer in range(world)]
    results, how = [total], "the peers' addresses"
    start = perf_counter()
    with ptxdsl.Stream.of(torch.cuda.current_stream()):  # also for what is no tensor
        handle.barrier()
        sum_of_peers[cdiv(count, THREADS), THREADS](count, peers, total, world=world)
        handle.barrier()
        if handle.multicast_ptr and flags.multicast_ptr:
            results, how = [total, x], f"{how} and by multicast"
            groups = count // WIDTH // world
            share = Memory(handle.multicast_ptr + rank * groups * WIDTH * 4, groups * WIDTH, "<f4", device)
            mine, everywhere = arrived.view(torch.uint32), Memory(flags.multicast_ptr, 1, "<u4", device)
            meet[1, 1](mine, everywhere, world)
            sum_by_multicast[cdiv(groups, THREADS), THREADS](groups, share)
            meet[1, 1](mine, everywhere, 2 * world)
    torch.cuda.synchronize()
    seconds = perf_counter() - start
    error = max(error_of(result.cpu().numpy(), expected.cpu().numpy()) for result in results)
    dist.destroy_process_group()
    return Row(f"{world} GPUs by {how}", torch.cuda.get_device_name(), seconds, error, 1e-5)


def on_the_emulator(count: int, world: int = 4) -> Row:
    """The ranks one after the other; compared with numpy's sum in float64."""
    rng = np.random.default_rng()
    peers: list[Any] = [rng.standard_normal(count, np.float32) for _ in range(world)]
    total, arrived, kept = np.empty_like(peers[0]), np.zeros(1, np.uint32), peers[0].copy()
    start = perf_counter()
    sum_of_peers[cdiv(count, THREADS), THREADS](count, peers, total, world=world)
    meet[1, 1](arrived, arrived, 1)
    groups = count // WIDTH
    sum_by_multicast[cdiv(groups, THREADS), THREADS](groups, peers[0])
    meet[1, 1](arrived, arrived, 2)
    seconds = perf_counter() - start
    error = max(error_of(total, np.sum(peers, axis=0, dtype=np.float64)), error_of(peers[0], kept))
    return Row(f"{world} peers, and 1 by multicast", "emulator", seconds, error, 1e-6)


def main(count: int = 1 << 20) -> Row:
    """``count`` is a multiple of four times the number of GPUs."""
    if "LOCAL_RANK" in os.environ:
        return on_gpus(count)
    print("for two or more GPUs: torchrun --nproc-per-node gpu examples/distributed/symmetric_memory.py")
    with ptxdsl.use("emulator"):
        return on_the_emulator(count)


if __name__ == "__main__":
    report(main(*map(int, sys.argv[1:])))

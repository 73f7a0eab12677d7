"""Softmax of the rows of an array that is larger than the memory of its workers, a process for each GPU or core.

python examples/distributed/dask_softmax.py [rows]

Dask makes the chunks where they are used, sends the function with its kernel there, and holds a few chunks at a time.
Each element is compared with numpy's.
"""

import resource
import sys
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
from dask.utils import format_bytes
from distributed import Client, progress

import ptxdsl.dask
from ptxdsl import Array, backend_name, block, f32, math, maximum, ptx, ptx_kernel
from ptxdsl.bench import Row, report

COLUMNS, CHUNK, MEMORY = 512, 8192, 384 << 20


@ptx_kernel
def softmax(x: Array[f32, None, COLUMNS], y: Array[f32, None, COLUMNS]) -> None:
    row, places = ptx.ctaid.x, [ptx.tid.x + start for start in range(0, COLUMNS, 128)]
    a, b, c, d = [x[row, place] for place in places]
    largest = block.reduce_max(maximum(maximum(a, b), maximum(c, d)))
    weights = [math.exp(value - largest) for value in (a, b, c, d)]
    total = block.reduce_sum(weights[0] + weights[1] + weights[2] + weights[3])
    for place, weight in zip(places, weights):
        y[row, place] = weight / total


def softmax_of(x: Any) -> Any:
    y = np.empty_like(x)
    softmax[len(x), 128](x, y)
    return y


def expected(x: Any) -> Any:
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main(rows: int = 450_000) -> Row:
    with ptxdsl.dask.cluster(memory_limit=MEMORY, dashboard_address=":0") as cluster, Client(cluster) as client:
        start = perf_counter()
        x = da.random.default_rng().random((rows, COLUMNS), np.float32, chunks=(CHUNK, COLUMNS)) * np.float32(20)
        ours, theirs = (x.map_blocks(function, dtype=np.float32) for function in (softmax_of, expected))
        difference = client.persist(da.abs(ours - theirs).max())
        progress(difference)
        used = max(client.run(peak).values())
        what = f"softmax of {format_bytes(x.nbytes)} by {len(cluster.workers)} processes of {format_bytes(used)}"
        backend = client.submit(backend_name).result()
        return Row(what, backend, perf_counter() - start, float(difference.compute()), 1e-6)


if __name__ == "__main__":
    print()
    report(main(*map(int, sys.argv[1:])))

"""c = a @ b.T of bf16 as on Blackwell: tensor copies and products by one thread each, sums in tensor memory. sm_100a.

A block makes 128 x 128 of c with six warps: one copies, one multiplies, four read the sums and store them.
"""

import numpy as np

from ptxdsl import (
    Array, Pipeline, TensorMap, bf16, cdiv, dtype_of, dynamic_shared, f32, loop, mbarrier, ptx, ptx_kernel, tcgen05,
    tensor_map, tiles, tma, u32, when,
)
from ptxdsl.bench import Row, compare, report

TILE, DEPTH, STAGES, THREADS = 128, 64, 4, 192
SHARED = STAGES * 2 * TILE * DEPTH * 2


@ptx_kernel
def matmul(a: TensorMap, b: TensorMap, c: Array[f32, 2], steps: u32) -> None:
    a_tiles = tiles.Ring(dynamic_shared(bf16, align=1024), STAGES, TILE, DEPTH)
    b_tiles = tiles.Ring(a_tiles.end, STAGES, TILE, DEPTH)
    pipe = Pipeline(STAGES, consumers=1, nbytes=a_tiles[0].nbytes + b_tiles[0].nbytes, start=False)
    done = mbarrier.declare()
    mbarrier.start(*pipe.bars, (done, 1))
    memory = tcgen05.allocate(128)
    sums, row, column = memory.sums(TILE, TILE), ptx.ctaid.y * TILE, ptx.ctaid.x * TILE
    with when(ptx.tid.x == 128):
        producer = pipe.producer()
        with loop(steps) as step:
            slot = producer.acquire()
            tma.load(a_tiles[slot], a, (row, step * DEPTH), slot.full)
            tma.load(b_tiles[slot], b, (column, step * DEPTH), slot.full)
    with when(ptx.tid.x == 160):
        consumer = pipe.consumer()
        with loop(steps) as step:
            slot = consumer.wait()
            tcgen05.multiply(sums, a_tiles[slot], b_tiles[slot].T, accumulate=step > 0)
            tcgen05.commit(slot.empty)  # the stage is given back when these products are done
        tcgen05.commit(done)
    with when(ptx.tid.x < 128):
        mbarrier.wait(done, 0)
        tcgen05.fence_after()
        sums.load().store(c, row, column)
    memory.free()


def padded(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random matrix whose rows begin at multiples of 16 bytes, as tensor maps want it."""
    return rng.standard_normal((rows, -(-columns // 8) * 8)).astype(dtype_of(bf16))[:, :columns]


def main(m: int = 300, n: int = 200, k: int = 500) -> Row:
    rng = np.random.default_rng()
    a, b, c = padded(rng, m, k), padded(rng, n, k), np.full((m, n), np.nan, np.float32)
    maps = [tensor_map(each, (TILE, DEPTH), swizzle=128) for each in (a, b)]
    launch = matmul.configure((cdiv(n, TILE), cdiv(m, TILE)), THREADS, shared=SHARED, backend="emulator")
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    return compare(f"tcgen05 matmul, {m} x {k} x {n}", lambda: launch(*maps, c, cdiv(k, DEPTH)), c, expected, 1e-5)


if __name__ == "__main__":
    report(main())

"""c = a @ b.T of bf16 as on Hopper: tensor copies by one thread, products by two warpgroups, a ring of stages between.

A block of three warpgroups makes 128 x 128 of c. The last warpgroup gives its registers to the others (setmaxnreg),
and one thread of it copies; each of the others multiplies 64 rows. sm_90a.
"""

import numpy as np

from ptxdsl import (
    Array, Pipeline, TensorMap, bf16, cdiv, dtype_of, dynamic_shared, loop, otherwise, ptx, ptx_kernel, tensor_map,
    tiles, tma, u32, wgmma, when, f32,
)
from ptxdsl.bench import Row, compare, report

TILE, DEPTH, STAGES = 128, 64, 3
SHARED = STAGES * 2 * TILE * DEPTH * 2


@ptx_kernel(maxntid=384, minnctapersm=1)
def matmul(a: TensorMap, b: TensorMap, c: Array[f32, 2], turns: u32) -> None:
    a_tiles = tiles.Ring(dynamic_shared(bf16, align=1024), STAGES, TILE, DEPTH)
    b_tiles = tiles.Ring(a_tiles.end, STAGES, TILE, DEPTH)
    pipe = Pipeline(STAGES, consumers=2, nbytes=a_tiles[0].nbytes + b_tiles[0].nbytes)
    row, column, group = ptx.ctaid.y * TILE, ptx.ctaid.x * TILE, wgmma.number()
    with when(group == 2):
        ptx.setmaxnreg.dec.sync.aligned.u32(40)
        with when(ptx.tid.x == 256):
            producer = pipe.producer()
            with loop(0, turns * (STAGES * DEPTH), STAGES * DEPTH) as k:
                for stage, slot in enumerate(producer.turn()):
                    tma.load(a_tiles[slot], a, (row, k + stage * DEPTH), slot.full)
                    tma.load(b_tiles[slot], b, (column, k + stage * DEPTH), slot.full)
    with otherwise():
        ptx.setmaxnreg.inc.sync.aligned.u32(232)
        consumer, sums = pipe.consumer(), wgmma.zeros(64, TILE)
        with loop(turns):
            for slot in consumer.turn():
                wgmma.fence()
                wgmma.multiply(sums, a_tiles[slot].part(64, DEPTH, group * 64), b_tiles[slot].T)
                wgmma.commit()
                wgmma.wait()
                slot.release(pred=(ptx.tid.x & 127) == 0)
        sums.store(c, row + group * 64, column)


def padded(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random matrix whose rows begin at multiples of 16 bytes, as tensor maps want it."""
    return rng.standard_normal((rows, -(-columns // 8) * 8)).astype(dtype_of(bf16))[:, :columns]


def main(m: int = 300, n: int = 200, k: int = 500) -> Row:
    rng = np.random.default_rng()
    a, b, c = padded(rng, m, k), padded(rng, n, k), np.full((m, n), np.nan, np.float32)
    maps = [tensor_map(each, (TILE, DEPTH), swizzle=128) for each in (a, b)]
    launch = matmul.configure((cdiv(n, TILE), cdiv(m, TILE)), 384, shared=SHARED, backend="emulator")
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    return compare(
        f"wgmma matmul, {m} x {k} x {n}", lambda: launch(*maps, c, cdiv(k, STAGES * DEPTH)), c, expected, 1e-5
    )


if __name__ == "__main__":
    report(main())

"""saxpy: y = a x + y, one thread an element."""

import numpy as np

from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when
from ptxdsl.bench import Row, compare, report


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


def main(n: int = 1_000_000, a: float = 2.5) -> Row:
    rng = np.random.default_rng()
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    expected = np.float32(a) * x + y
    return compare(f"saxpy, n = {n:,}", lambda: saxpy[(n + 255) // 256, 256](n, a, x, y), y, expected, 1e-6)


if __name__ == "__main__":
    report(main())

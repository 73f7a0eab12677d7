"""How often each byte occurs in a file: a histogram a block in shared memory, added up with atomics.

python examples/histogram.py [file], by default the largest of numpy's
"""

import sys
from pathlib import Path

import numpy as np

from ptxdsl import Ptr, loop, ptx, ptx_kernel, shared, u8, u32
from ptxdsl.bench import Row, compare, report


@ptx_kernel
def histogram(n: u32, data: Ptr[u8], counts: Ptr[u32], *, threads: int = 256) -> None:
    mine = shared(u32, 256)
    with loop(ptx.tid.x, 256, threads) as i:
        mine[i] = 0
    ptx.bar.sync(0)

    with loop(ptx.ctaid.x * threads + ptx.tid.x, n, ptx.nctaid.x * threads) as i:
        ptx.red.shared.add.u32(mine + data[i].to(u32), 1)
    ptx.bar.sync(0)

    with loop(ptx.tid.x, 256, threads) as i:
        ptx.red.global_.add.u32(counts + i, mine[i])


def main(path: str | None = None, limit: int = 4_000_000) -> Row:
    file = Path(path) if path else max(Path(np.__file__).parent.rglob("*.*"), key=lambda file: file.stat().st_size)
    data = np.fromfile(file, np.uint8, count=limit)
    counts = np.zeros(256, np.uint32)
    return compare(
        f"histogram, {data.size:,} bytes of {file.name}",
        lambda: histogram[32, 256](data.size, data, counts),
        counts, np.bincount(data, minlength=256), 0,
    )


if __name__ == "__main__":
    report(main(sys.argv[1] if sys.argv[1:] else None))

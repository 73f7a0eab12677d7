"""What a warm launch on the emulator takes: Python functions of ptxdsl called, their files, changes from file to file.

``python tests/bench/launch_path.py [-v]``; with ``-v`` each call, in order: how far a reader has to follow the code.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when

PACKAGE = str(Path(ptxdsl.__file__).parent)


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


def calls() -> list[tuple[str, str]]:
    """The file and name of each function of ptxdsl that one warm launch of one warp calls, in order."""
    x, y = np.ones(32, np.float32), np.ones(32, np.float32)
    found: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.append((code.co_filename[len(PACKAGE) + 1 :], code.co_name))

    with ptxdsl.use("emulator"):
        for _ in range(20):
            saxpy[1, 32](32, 2.0, x, y)
        sys.setprofile(note)
        saxpy[1, 32](32, 2.0, x, y)
        sys.setprofile(None)
    return found


def main() -> None:
    found = calls()
    files = [file for file, _ in found]
    hops = sum(1 for _ in groupby(files)) - 1
    if "-v" in sys.argv:
        for file, name in found:
            print(f"{file:40} {name}")
    print(f"{len(found)} calls, {len(set(files))} files, {hops} hops between files")


if __name__ == "__main__":
    main()

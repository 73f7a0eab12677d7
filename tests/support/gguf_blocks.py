"""Random blocks of GGUF's formats, in which every scale and every quant occurs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxdsl.kernels.gguf import FORMATS

__all__ = ["random_blocks"]

HALVES = {"q4_1": (0, 2), "q5_1": (0, 2), "q4_k": (0, 2), "q5_k": (0, 2), "q6_k": (208,)}


def random_blocks(rng: np.random.Generator, rows: int, blocks: int, name: str) -> Any:
    """Random bytes, with scales of ordinary size."""
    made = rng.integers(0, 256, (rows, blocks, FORMATS[name].nbytes), np.uint8)
    for place in HALVES.get(name, (0,)):
        scales = (rng.uniform(0.01, 1, (rows, blocks, 1)) * rng.choice([-1, 1], (rows, blocks, 1))).astype(np.float16)
        made[:, :, place : place + 2] = scales.view(np.uint8)
    return made.reshape(rows, -1)

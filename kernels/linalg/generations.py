"""Which instructions of the tensor cores make a product, and the kernels of the generations that have their own.

``mma.sync`` does all that ``matmul`` does. The designs for Hopper and Blackwell multiply two matrices of 16-bit or
8-bit floats, and their epilogue adds no residual. A batch of which all share b is one product of as many rows. Of few
rows, as decoding has them, b is streamed by blocks that share its k, too (`hopper.stream`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import capability, cdiv, processors
from .. import arguments
from ..blackwell import matmul as blackwell
from ..hopper import matmul as hopper, stream
from ..tensor_products import DTYPES, EIGHT, RESULTS
from .epilogue import ACTIVATIONS, Epilogue

__all__ = ["WORDS", "Pair", "choose", "multiply", "pair"]

_KERNELS: dict[str, Callable[..., Any]] = {
    "wgmma": hopper.matmul, "tcgen05": blackwell.matmul, "stream": stream.matmul
}
WORDS = ("mma", *_KERNELS)
_CAPABILITIES = {90: "wgmma", 100: "tcgen05", 103: "tcgen05"}
_TILE = 64
"""Rows and columns of the smallest tile of a product by mma.sync, of which several run on a multiprocessor."""


class Pair(NamedTuple):
    """Two matrices and their product, of the same memory as a batch."""

    a: Any
    b: Any
    out: Any


def pair(a: Any, b: Any, out: Any) -> Pair | None:
    """Batches ``[..., rows, columns]`` as one product, None where they are several; the result is C-contiguous."""
    if math.prod(b.shape[:-2]) != 1 or math.prod(a.shape[:-2]) != math.prod(out.shape[:-2]):
        return None
    shape = [(extent, step) for extent, step in zip(a.shape[:-1], arguments.strides(a)) if extent != 1]
    if math.prod(a.shape[:-2]) == 1:
        a = a[(0,) * (a.ndim - 2)]
    elif any(step != below * extent for (_, step), (extent, below) in itertools.pairwise(shape)):
        return None
    else:
        a = a.reshape(-1, a.shape[-1])
    return Pair(a, b[(0,) * (b.ndim - 2)], out.reshape(-1, out.shape[-1]))


def choose(wanted: str | None, found: Pair | None, name: str, epilogue: Epilogue, tf32: bool) -> str:
    """The word for the instructions that make a product of a's dtype ``name``; an error where those ``wanted`` cannot.

    Unasked, those of the GPU's generation make products that keep its multiprocessors busy with their large tiles, or
    that have few rows, with the steps of a stream.
    8-bit floats are left to mma.sync on Hopper: its wgmma adds their products with fewer bits than float32 has.
    """
    if wanted == "mma" and name == "float32" and not tf32:
        raise arguments.wrong("tensor_cores is 'mma', which takes float32 rounded to tf32 only", hint="`tf32=True`")
    objection = _objection(found, name, epilogue)
    if not objection and wanted == "stream" and found is not None and found.out.shape[0] > stream.most_rows(name):
        objection = f"takes {stream.most_rows(name)} rows at most, not {found.out.shape[0]}"
    if wanted is not None:
        if wanted != "mma" and objection:
            raise arguments.wrong(f"tensor_cores is {wanted!r}, which {objection}", hint="leave `tensor_cores` out")
        return wanted
    word = "mma" if objection else _CAPABILITIES.get(capability(), "mma")
    if word == "mma":
        return word
    assert found is not None
    (rows, columns), depth = found.out.shape, found.a.shape[1]
    if rows <= stream.most_rows(name) and cdiv(columns, stream.COLUMNS) * cdiv(depth, _TILE) > processors():
        return "stream"
    if word == "wgmma" and name in EIGHT:
        return "mma"
    return word if cdiv(rows, _TILE) * cdiv(columns, _TILE) > processors() else "mma"


def _objection(found: Pair | None, name: str, epilogue: Epilogue) -> str | None:
    """What keeps a product from the kernels of a generation."""
    if name not in DTYPES:
        return f"takes {' or '.join(DTYPES)}, not {name}"
    if epilogue.residual is not None:
        return "adds no residual"
    if epilogue.bias is not None and epilogue.bias not in RESULTS.values():
        return f"takes a bias of {' or '.join(RESULTS)}, not {arguments.name_of(epilogue.bias)}"
    if found is None:
        return "multiplies two matrices, or a batch of dense rows by one matrix"
    return None


def multiply(word: str, found: Pair, epilogue: Epilogue, bias: Any, alpha: float) -> None:
    """Launch the kernel of a generation."""
    activation = None if epilogue.activation is None else ACTIVATIONS[epilogue.activation]
    _KERNELS[word](found.a, found.b, out=found.out, bias=bias, activation=activation, scale=alpha)

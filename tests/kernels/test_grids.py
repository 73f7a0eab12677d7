"""Grids beyond what a GPU has along y and z are launched in parts; here the limit is 2, and arrays are small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ptxdsl import Kernel, dtype_of, e4m3
from ptxdsl.kernels import arguments, attention, kv_cache, linalg, moe, quant

Case = Callable[[np.random.Generator], Any]
LIMIT = 2


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, ...]]]:
    """No more than two blocks along y and z, in the library's eyes; the grids of what is launched."""
    grids: list[tuple[int, ...]] = []
    index, configure = Kernel.__getitem__, Kernel.configure

    def note(grid: Any) -> None:
        grids.append(grid if isinstance(grid, tuple) else (grid,))

    def noted_index(self: Kernel, at: Any) -> Any:
        note(at[0])
        return index(self, at)

    def noted_configure(self: Kernel, grid: Any, *rest: Any, **options: Any) -> Any:
        note(grid)
        return configure(self, grid, *rest, **options)

    monkeypatch.setattr(arguments, "GRID", LIMIT)
    monkeypatch.setattr(Kernel, "__getitem__", noted_index)
    monkeypatch.setattr(Kernel, "configure", noted_configure)
    yield grids
    assert max(part for grid in grids for part in grid[1:] or (1,)) <= LIMIT


def _normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def _transpose(rng: np.random.Generator) -> Any:
    return linalg.transpose(_normal(rng, "f4", 3, 170, 2))


def _transposed_columns(rng: np.random.Generator) -> Any:
    return linalg.transpose(_normal(rng, "f4", 2, 5, 170))


def _matmul(rng: np.random.Generator) -> Any:
    a, b, residual = (_normal(rng, "f2", *shape) for shape in ((330, 8), (8, 16), (330, 16)))
    return linalg.matmul(a, b, residual=residual, beta=2.0, bias=b[0])


def _matmul_turned(rng: np.random.Generator) -> Any:
    return linalg.matmul(_normal(rng, "f4", 5, 3, 330), _normal(rng, "f4", 3, 4), transpose_a=True)


def _gather(rng: np.random.Generator) -> Any:
    pages, table = _normal(rng, "f4", 4, 2, 1, 4), rng.integers(0, 4, (5, 2))
    return np.stack(kv_cache.gather(pages, pages, table, np.array([3, 0, 4, 1, 2])))


def _quantized(rng: np.random.Generator, rows: int, **options: Any) -> Any:
    return quant.q4k_gemv(_normal(rng, "f4", rows, 256), quant.quantize_q4k(_normal(rng, "f4", 3, 256)), 3, **options)


def _grouped(dtype: str) -> Case:
    def run(rng: np.random.Generator) -> Any:
        x, w = _normal(rng, dtype, 300, 16), _normal(rng, dtype, 5, 16, 72)
        return moe.grouped_matmul(x, w, np.array([0, 10, 10, 200, 299, 300]))

    return run


def _flash(dtype: str, tensor_cores: bool | None = None) -> Case:
    def run(rng: np.random.Generator) -> Any:
        q, k, v = (_normal(rng, dtype, 5, heads, 7, 16) for heads in (2, 1, 1))
        return attention.flash_attention(q, k, v, causal=True, tensor_cores=tensor_cores)

    return run


def _flash_backward(dtype: str, tensor_cores: str | None = None) -> Case:
    def run(rng: np.random.Generator) -> Any:
        q, gradient, k, v = (_normal(rng, dtype, 3, heads, 7, 16) for heads in (2, 2, 1, 1))
        found = attention.flash_attention_backward(gradient, q, k, v, tensor_cores=tensor_cores)
        return np.concatenate([x.ravel() for x in found])

    return run


def _flash_of_bytes(rng: np.random.Generator) -> Any:
    q, k, v = (_normal(rng, "f4", 5, heads, 7, 16).astype(dtype_of(e4m3)) for heads in (2, 1, 1))
    scales = [np.abs(_normal(rng, "f4", 5, heads)) + 0.5 for heads in (2, 1, 1)]
    return attention.fp8_attention(q, k, v, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2])


def _varlen(rng: np.random.Generator) -> Any:
    q, k, v = (_normal(rng, "f4", 20, heads, 16) for heads in (2, 1, 1))
    starts = np.array([0, 3, 3, 9, 14, 20], np.int32)
    return attention.varlen_attention(q, k, v, starts, starts)


def _decode(function: Any, listed: bool, indirect: bool) -> Case:
    def run(rng: np.random.Generator) -> Any:
        q, (k, v) = _normal(rng, "f4", 5, 2, 16), _normal(rng, "f4", 2, 5, 1, 9, 16)
        lengths = np.array([3, 0, 9, 4, 1], np.int32) if indirect else 6
        return function(q, *((list(k), list(v)) if listed else (k, v)), lengths)

    return run


def _paged(rng: np.random.Generator) -> Any:
    q, (k, v) = _normal(rng, "f4", 5, 2, 16), _normal(rng, "f4", 2, 6, 4, 1, 16)
    return attention.paged_decode(q, k, v, rng.integers(0, 6, (5, 3)), np.array([3, 0, 12, 4, 1]), chunk_size=4)


CASES: dict[str, Case] = {
    "transpose": _transpose, "transposed columns": _transposed_columns, "matmul": _matmul,
    "matmul turned": _matmul_turned, "gather": _gather, "q4k": lambda rng: _quantized(rng, 23),
    "q4k int8": lambda rng: _quantized(rng, 5, activations="int8"), "grouped f4": _grouped("f4"),
    "grouped f2": _grouped("f2"), "flash": _flash("f4"), "flash wmma": _flash("f2", True),
    "backward f4": _flash_backward("f4"), "backward f2": _flash_backward("f2"),
    "backward wgmma": _flash_backward("f2", "wgmma"), "flash of bytes": _flash_of_bytes, "varlen": _varlen,
    "decode": _decode(attention.decode_attention, False, True),
    "decode of one length": _decode(attention.decode_attention, False, False),
    "flash decoding": _decode(attention.flash_decoding, False, True),
    "flash decoding of lists": _decode(attention.flash_decoding, True, False), "paged": _paged,
}


@pytest.mark.parametrize("name", CASES)
def test_parts_give_the_same(name: str, request: pytest.FixtureRequest, rng: np.random.Generator) -> None:
    seed = int(rng.integers(1 << 32))
    whole = CASES[name](np.random.default_rng(seed))
    request.getfixturevalue("limited")
    np.testing.assert_array_equal(CASES[name](np.random.default_rng(seed)), whole)

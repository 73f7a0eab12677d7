"""Attention of packed sequences by wgmma against float64: lengths, masks, grouped heads, neighbours, schedules."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import LaunchError, bf16, f16
from ptxdsl.config import override
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.kernels import attention, attention_arguments
from ptxdsl.kernels.hopper.flash import Kind, packed_kernel, plan_of
from ptxdsl.kernels.reference import attention as reference
from ptxdsl.kernels.reference import causal as causal_mask

BF16 = ml_dtypes.bfloat16
Lengths = list[tuple[int, int]]


def packed(rng: np.random.Generator, dtype: Any, lengths: Lengths, heads: tuple[int, int], dim: int) -> list[Any]:
    """q, k, v and both tables of sequences of so many queries and keys; NaN before the first and behind the last."""
    arrays, tables = [], []
    for side, counts in zip((0, 1, 1), (heads[0], heads[1], heads[1])):
        starts = np.cumsum([2, *(pair[side] for pair in lengths)]).astype(np.int32)
        array = rng.standard_normal((int(starts[-1]) + 3, counts, dim)).astype(dtype)
        array[:2], array[starts[-1] :] = np.nan, np.nan
        arrays.append(array)
        tables.append(starts)
    return [*arrays, *tables[:2]]


def check(
    rng: np.random.Generator, dtype: Any, lengths: Lengths, heads: tuple[int, int], dim: int, causal: bool = False,
    lost: int | None = None, **options: Any,
) -> None:
    """Each sequence as if it were alone, also beside one that is NaN (``lost``); what is no sequence's is left alone.

    The bound is that of `test_hopper_flash`: weights and the result are rounded once each, all else adds little.
    """
    q, k, v, *tables = packed(rng, dtype, lengths, heads, dim)
    if lost is not None:
        for array, starts in zip((q, k, v), (tables[0], tables[1], tables[1])):
            array[starts[lost] : starts[lost + 1]] = np.nan
    out = np.full_like(q, 7)
    options = {"causal": causal, "tensor_cores": "wgmma", **options}
    assert attention.varlen_attention(q, k, v, *tables, out=out, **options) is out
    assert (out[:2] == 7).all() and (out[tables[0][-1] :] == 7).all()
    unit = 2.0**-11 if dtype is np.float16 else 2.0**-8
    for number, (queries, keys) in enumerate(lengths):
        own, others = (slice(starts[number], starts[number + 1]) for starts in tables)
        if number == lost or not queries:
            continue
        if not keys:
            assert (out[own] == 0).all()
            continue
        one = [x.swapaxes(0, 1)[None] for x in (q[own], k[others], v[others])]
        visible = causal_mask(queries, keys) if causal else True
        want, around = (reference(*one[:2], x, visible, options.get("scale")) for x in (one[2], np.abs(one[2])))
        error = np.abs(out[own].swapaxes(0, 1)[None].astype(np.float64) - want)
        assert (error <= (unit + 2.0**-14) * around + unit * np.abs(want) + 2.0**-13).all(), number


@pytest.mark.parametrize("causal", [False, True])
def test_lengths(rng: np.random.Generator, causal: bool) -> None:
    check(rng, np.float16, [(1, 1), (70, 300), (0, 5), (20, 0), (130, 17)], (4, 2), 64, causal)


@pytest.mark.parametrize("dim", [72, 256])
def test_widths(rng: np.random.Generator, dim: int) -> None:
    check(rng, BF16, [(33, 40), (5, 90)], (2, 1), dim, True, scale=-0.1 if dim == 72 else None)


def test_a_neighbour_of_nan(rng: np.random.Generator) -> None:
    """Copies bring the first rows of the next sequence; neither their scores nor their values may come through."""
    check(rng, np.float16, [(33, 40), (5, 6), (20, 30)], (1, 1), 64, lost=1)


def test_more_blocks_than_needed(rng: np.random.Generator) -> None:
    check(rng, np.float16, [(5, 9)], (1, 1), 64, True, max_seqlen_q=500)


@pytest.mark.parametrize("seed", [0, 2])
def test_seeds(seed: int) -> None:
    _fuzz(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_seeds(seed: int) -> None:
    _fuzz(100 + seed)


def _fuzz(seed: int) -> None:
    rng = np.random.default_rng([int(os.environ["TEST_SEED"]), seed])
    lengths = [(int(rng.integers(0, 150)), int(rng.integers(0, 200))) for _ in range(int(rng.integers(1, 5)))]
    key_heads, dim = int(rng.integers(1, 3)), int(rng.choice([40, 64, 128])) if seed >= 100 else 64
    heads = key_heads * int(rng.integers(1, 3)), key_heads
    with override(seed=seed, backend="emulator"):
        check(rng, (np.float16, BF16)[seed % 2], lengths, heads, dim, seed < 100 or bool(rng.integers(2)))


def test_under_the_sanitizer(rng: np.random.Generator) -> None:
    with override(sanitize="all", backend="emulator"):
        check(rng, np.float16, [(3, 5), (40, 150)], (2, 1), 24, True)


@pytest.mark.ptxas
@pytest.mark.parametrize(("dim", "causal"), [(64, True), (128, False)])
def test_the_assembler_adds_nothing(dim: int, causal: bool) -> None:
    """No wait, fence or serialisation of its own (C75xx), no spills."""
    kernel, plan = packed_kernel(Kind(f16 if causal else bf16, dim, causal, packed=True)), plan_of(dim, causal)
    assembled = assemble_module(kernel.ptx(), "sm_90a", options=("-v",))
    found = assembled.attributes(kernel.entry)
    assert "C75" not in assembled.log
    assert (found.spill_store_bytes, found.local_size_bytes) == (0, 0)
    assert found.num_regs == (128 if dim == 64 else 168)
    assert plan.shared + found.shared_size_bytes <= 232448


def test_dispatch(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    given = packed(rng, np.float16, [(20, 30)], (1, 1), 64)
    known = {word: attention.varlen_attention(*given, tensor_cores=word)[2:22] for word in ("wgmma", False)}
    assert (known["wgmma"] != known[False]).any()
    monkeypatch.setattr(attention_arguments, "backend_name", lambda: "a GPU")
    for number, word in ((90, "wgmma"), (80, False), (100, False)):
        monkeypatch.setattr(attention_arguments, "capability", lambda number=number: number)
        assert (attention.varlen_attention(*given)[2:22] == known[word]).all()


def test_errors(rng: np.random.Generator) -> None:
    q, k, v, *tables = packed(rng, np.float32, [(2, 3)], (1, 1), 16)
    with pytest.raises(LaunchError) as caught:
        attention.varlen_attention(q, k, v, *tables, tensor_cores="wmma")
    assert caught.value.message == 'tensor_cores is \'wmma\'; it can be True, False, None, "wgmma"'
    with pytest.raises(LaunchError) as caught:
        attention.varlen_attention(q, k, v, *tables, tensor_cores=True)
    assert caught.value.message == "tensor cores take float16 or bfloat16, not float32"

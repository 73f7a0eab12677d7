"""Triton's matrix products, attention and block scales for sm_90a and sm_100a run unchanged and are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from foreign_units import FOLDER, Unit, bf16, e4m3, e5m2, f16, f32, moved_rows, random_array, tiles, unit, wide

import ptxdsl
from ptxdsl.launch.arrays import view

Rng = np.random.Generator
Case = tuple[Any, list[Any], list[tuple[Any, Any]]]
"""Grid, arguments, and what is found where, with what is right."""
pytestmark = pytest.mark.usefixtures("emulated")


def whole(rng: Rng, most: int, of: int) -> int:
    """A multiple of a number."""
    return int(rng.integers(1, tiles(most, of) + 1)) * of


def product(rng: Rng, kind: Any, out: Any, m: int, n: int, k: int, turned: bool) -> tuple[Any, Any, Any, Any]:
    a, b = random_array(rng, (m, k), kind), random_array(rng, (n, k) if turned else (k, n), kind)
    return a, b, np.full((m, n), 7).astype(out), wide(a) @ (wide(b).T if turned else wide(b))


def pointers(kind: Any, out: Any, BM: int, BN: int, leaky: bool = False) -> Callable[[Unit, Rng], Case]:
    def made(_: Unit, rng: Rng) -> Case:
        m, n, k = (int(number) for number in rng.integers(1, 200, 3))
        a, b, c, right = product(rng, kind, out, m, n, k, False)
        right = np.where(right > 0, right, 0.01 * right) if leaky else right
        return tiles(m, BM) * tiles(n, BN), [a, b, c, m, n, k], [(c, right)]

    return made


def turned(_: Unit, rng: Rng) -> Case:
    m, n, k = (int(number) for number in rng.integers(1, 200, 3))
    a, b, c, right = product(rng, np.int8, np.int32, m, n, k, True)
    return (tiles(m, 64), tiles(n, 64)), [a, b, c, m, n, k], [(c, right)]


def descriptors(kind: Any, out: Any, BM: int, BN: int) -> Callable[[Unit, Rng], Case]:
    def made(of: Unit, rng: Rng) -> Case:
        m, n, k = int(rng.integers(1, 300)), whole(rng, 300, 8), whole(rng, 300, 16)
        a, b, c, right = product(rng, kind, out, m, n, k, True)
        boxes = [*of.box(0, a), *of.box(1, b), *of.box(2, c)]
        return tiles(m, BM) * tiles(n, BN), [*boxes, m, n, k], [(c, right)]

    return made


def persistent(programs: int) -> Callable[[Unit, Rng], Case]:
    def made(_: Unit, rng: Rng) -> Case:
        m, n, k = int(rng.integers(1, 300)), whole(rng, 300, 8), whole(rng, 300, 8)
        a, b, c, right = product(rng, f16, f16, m, n, k, True)
        return programs, [a, b, c, m, n, k], [(c, right)]

    return made


def split_k(of: Unit, rng: Rng) -> Case:
    m, n, k = int(rng.integers(1, 150)), whole(rng, 150, 8), whole(rng, 400, 8)
    a, b, c, right = product(rng, bf16, f32, m, n, k, False)
    c[:] = 2
    return (tiles(m, 64), tiles(n, 64), 3), [*of.box(0, a), *of.box(1, b), *of.box(2, c), k], [(c, right + 2)]


def grouped(_: Unit, rng: Rng) -> Case:
    addresses, sizes, found = [], [], []
    for _ in range(4):
        m, n, k = int(rng.integers(1, 150)), whole(rng, 150, 8), whole(rng, 150, 8)
        a, b, c, right = product(rng, f16, f16, m, n, k, True)
        held = [ptxdsl.to_device(array) for array in (a, b, c)]
        addresses += [array.address for array in held]
        sizes += [m, n, k]
        found.append((held, right))
    return 3, [np.array(addresses), np.array(sizes, np.int32), 4], [(held[2], right) for held, right in found] + found


def attention(kind: Any, dim: int, BM: int, causal: bool) -> Callable[[Unit, Rng], Case]:
    def made(of: Unit, rng: Rng) -> Case:
        heads, length, scale = (1, 256, f32(0.3)) if rng.integers(2) else (2, 128, f32(0.3))
        q, k, v = (random_array(rng, (heads * length, dim), kind) for _ in range(3))
        out, logs = np.zeros_like(q), np.zeros((heads, length), f32)
        scores = float(scale) * np.einsum("hid,hjd->hij", *(wide(x).reshape(heads, length, dim) for x in (q, k)))
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf) if causal else scores
        top = scores.max(2, keepdims=True)
        powers = np.exp(scores - top)
        total = powers.sum(2, keepdims=True)
        right = (powers / total) @ wide(v).reshape(heads, length, dim)
        boxes = [each for number, array in enumerate((q, k, v, out)) for each in of.box(number, array)]
        found = [(out, right.reshape(-1, dim)), (logs, (top + np.log(total))[..., 0] / np.log(2))]
        return (length // BM, heads), [scale, logs, heads, *boxes, length], found

    return made


def backward(_: Unit, rng: Rng) -> Case:
    heads, length, dim, scale = 1, whole(rng, 192, 64), 64, 0.2
    q, k, v, grad = (random_array(rng, (heads, length, dim), f16) for _ in range(4))
    scores = np.where(np.tri(length, dtype=bool), scale * wide(q) @ wide(k).transpose(0, 2, 1), -np.inf)
    top = scores.max(2, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(2, keepdims=True)
    weights = powers / total
    delta = (weights @ wide(v) * wide(grad)).sum(2)
    slopes = weights * (wide(grad) @ wide(v).transpose(0, 2, 1) - delta[..., None])
    right = [slopes @ wide(k) * scale, slopes.transpose(0, 2, 1) @ wide(q) * scale,
             weights.transpose(0, 2, 1) @ wide(grad)]
    sums = [np.zeros((heads, length, dim), f32) for _ in range(3)]
    logs = ((top + np.log(total))[..., 0] / np.log(2)).astype(f32)
    turned_k = (wide(k) * scale / np.log(2)).astype(f16)
    arguments = [q, turned_k, v, f32(scale), grad, *sums, logs, delta.astype(f32), length]
    return (length // 64, 1, heads), arguments, list(zip(sums, right))


_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def _fp4(rng: Rng, rows: int, k: int) -> tuple[Any, Any]:
    codes = rng.integers(0, 16, (rows, k))
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), np.concatenate([_FP4, -_FP4])[codes]


def _fp8(kind: Any) -> Callable[[Rng, int, int], tuple[Any, Any]]:
    def made(rng: Rng, rows: int, k: int) -> tuple[Any, Any]:
        array = random_array(rng, (rows, k), kind)
        return array, wide(array)

    return made


def _powers(rng: Rng, rows: int, k: int) -> tuple[Any, Any]:
    codes = rng.integers(120, 134, (rows, k)).astype(np.uint8)
    return codes, 2.0 ** (codes.astype(int) - 127)


def _scales(rng: Rng, rows: int, k: int) -> tuple[Any, Any]:
    array = np.abs(rng.standard_normal((rows, k))).astype(e4m3)
    return array, wide(array)


def scaled(of_a: Any, of_b: Any, scales: Any, vector: int, BN: int) -> Callable[[Unit, Rng], Case]:
    def made(_: Unit, rng: Rng) -> Case:
        m, n, k = int(rng.integers(1, 200)), int(rng.integers(1, 200)), whole(rng, 256, 128)
        (a, values_a), (b, values_b) = of_a(rng, m, k), of_b(rng, n, k)
        (sa, scale_a), (sb, scale_b) = scales(rng, m, k // vector), scales(rng, n, k // vector)
        c = np.full((m, n), np.nan, f32)
        right = (values_a * scale_a.repeat(vector, 1)) @ (values_b * scale_b.repeat(vector, 1)).T
        return (tiles(m, 128), tiles(n, BN)), [a, sa, b, sb, c, m, n, k], [(c, right)]

    return made


def rows(of: Unit, rng: Rng) -> Case:
    arguments, out, right = moved_rows(of, rng)
    return 2, [*arguments, 192], [(out, right)]


def softmax(_: Unit, rng: Rng) -> Case:
    x = random_array(rng, (9, int(rng.integers(1, 1000))), f32)
    out, powers = np.zeros_like(x), np.exp(wide(x))
    return 4, [x, out, *x.shape], [(out, powers / powers.sum(1, keepdims=True))]


CASES: dict[str, tuple[Any, float]] = {
    "matmul_f16": (pointers(f16, f16, 64, 64, True), 2e-3), "matmul_tf32": (pointers(f32, f32, 64, 64), 2e-3),
    "matmul_bf16": (pointers(bf16, f32, 64, 128), 1e-5), "matmul_e4m3": (pointers(e4m3, f16, 64, 64), 2e-3),
    "matmul_int8": (turned, 0), "matmul_cluster": (pointers(f16, f16, 128, 64), 2e-3),
    "descriptors_f16": (descriptors(f16, f16, 64, 128), 2e-3),
    "descriptors_e5m2": (descriptors(e5m2, f32, 128, 128), 1e-5),
    "descriptors_specialised": (descriptors(f16, f16, 128, 128), 2e-3),
    "descriptors_cluster": (descriptors(f16, f16, 128, 128), 2e-3),
    "persistent": (persistent(3), 2e-3), "persistent_halves": (persistent(2), 2e-3),
    "persistent_specialised": (persistent(2), 2e-3), "split_k": (split_k, 1e-5), "grouped": (grouped, 2e-3),
    "attention_f16": (attention(f16, 64, 64, True), 4e-3), "attention_bf16": (attention(bf16, 128, 128, False), 2e-2),
    "attention_specialised": (attention(f16, 64, 128, False), 4e-3), "attention_backward": (backward, 4e-3),
    "scaled_e4m3": (scaled(_fp8(e4m3), _fp8(e5m2), _powers, 32, 64), 1e-4),
    "scaled_e2m1": (scaled(_fp4, _fp4, _powers, 32, 128), 1e-5),
    "scaled_nvfp4": (scaled(_fp4, _fp4, _scales, 16, 128), 1e-5),
    "scaled_mixed": (scaled(_fp8(e4m3), _fp4, _powers, 32, 128), 1e-5),
    "rows": (rows, 0), "softmax_dependent": (softmax, 1e-5),
}
"""What makes a launch of a kernel, and by how much results may be off, as a part of the largest."""
TESTED = """matmul_bf16_90 descriptors_e5m2_90 persistent_specialised_90 split_k_90 grouped_90 attention_bf16_90
    descriptors_f16_100 attention_bf16_100 attention_specialised_100 matmul_int8_100
    scaled_nvfp4_100 rows_100""".split()
"""Those that the suite runs; ``python tests/foreign/test_triton.py`` runs all that are kept, sanitized and seeded."""
SANITIZED = "descriptors_f16_90 attention_f16_100".split()


def check(name: str, rng: Rng, **options: Any) -> None:
    of = unit(name)
    made, allowed = CASES[name.rpartition("_")[0]]
    grid, arguments, found = made(of, rng)
    of.launch(grid, arguments, **options)
    for got, right in found:
        if isinstance(got, list):  # kept alive
            continue
        got = got.numpy() if view(got) is not None and not isinstance(got, np.ndarray) else got
        error = np.abs(wide(np.asarray(got)).reshape(right.shape) - right).max()
        assert error <= allowed * np.abs(right).max(), error


@pytest.mark.parametrize("name", TESTED)
def test_kernel_is_right(name: str, rng: Rng) -> None:
    check(name, rng, seed=int(rng.integers(1000)) if name.endswith("specialised_90") else None)


@pytest.mark.parametrize("name", SANITIZED)
def test_nothing_is_found(name: str, rng: Rng) -> None:
    check(name, rng, sanitize="all")


def main() -> None:
    for place in sorted(FOLDER.glob("ptx/*.ptx.xz")):
        name = place.name.partition(".")[0]
        if name.rpartition("_")[0] not in CASES:
            continue
        for options in ({}, {"seed": 1}, {"seed": 2}, {"sanitize": "all"}):
            with ptxdsl.use("emulator"):
                check(name, np.random.default_rng(), **options)
        print(name, "is right")


if __name__ == "__main__":
    main()

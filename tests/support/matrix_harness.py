"""Matrix instructions on PTX text: fragments are packed here by the manual's formulas, not by the emulator's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

import ptxdsl

__all__ = [
    "BITS",
    "FILL_TILES",
    "FLOATS",
    "LANES",
    "check_product",
    "codes",
    "drawn",
    "kernel_text",
    "metadata",
    "packed",
    "places",
    "registers",
    "run_mma",
    "sizes_of",
    "sparse",
    "unpacked",
    "words_of_scales",
]

FILL_TILES = """    shl.b32 %n, %t, 2;
COPY:
    cvt.u64.u32 %at, %n;
    add.u64 %at, %at, %image;
    ld.global.b32 %x, [%at];
    {{ .reg .b32 %s; mov.u32 %s, tiles; add.u32 %s, %s, %n; st.shared.b32 [%s], %x; }}
    add.u32 %n, %n, 512;
    setp.lt.u32 %p, %n, {nbytes};
    @%p bra COPY;
    fence.proxy.async;
"""
"""PTX: 128 threads %t copy {nbytes} bytes from %image on to `tiles`, which the async proxy may read then."""

Rng = np.random.Generator
LANES = 32
FLOATS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn, "e2m1x": ml_dtypes.float4_e2m1fn,
}
"""``e2m1x`` is FP4 with two elements a byte; ``e2m1`` has a byte for each."""
RANGES = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2), "s32": (-1000, 1000)}
BITS = {
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16,
    "e3m2": 8, "e2m3": 8, "e2m1": 8, "e2m1x": 4,
}


def sizes_of(shape: str) -> tuple[int, int, int]:
    """m, n and k of ``m16n8k16``."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    return m, n, k


def drawn(rng: Rng, kind: str, shape: tuple[int, ...]) -> Any:
    """Small whole numbers that the type has, so that sums of floats are exact in any order."""
    if kind.startswith("e2m1"):
        return rng.choice([-6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6], shape)
    low, high = RANGES.get(kind, (-6, 7))
    return rng.integers(low, high, shape)


def codes(values: Any, kind: str) -> Any:
    """The bits of each element as Python integers, in the place that they have in its byte."""
    bits = BITS.get(kind, 32)
    if kind in FLOATS:
        values = values.astype(FLOATS[kind]).view(f"u{max(bits, 8) // 8}")
    return (values.astype(object) & ((1 << bits) - 1)) << (2 if kind == "e2m1" else 0)


def places(shape: str, kind: str, which: str, lane: int) -> list[list[tuple[int, int]]]:
    """The elements in each register of a lane, the lowest first: Matrix Fragments in the manual."""
    m, n, k = sizes_of(shape)
    g, t, run = lane >> 2, lane & 3, max(1, 32 // BITS[kind])
    if which == "a":
        registers = m * k // LANES // run
        return [[(g + 8 * (r % (m // 8)), t * run + i + 4 * run * (r // (m // 8))) for i in range(run)]
                for r in range(registers)]
    if which == "b":
        return [[(t * run + i + 4 * run * r, g) for i in range(run)] for r in range(n * k // LANES // run)]
    return [[(g + 8 * (r // 2), 2 * t + r % 2)] for r in range(m * n // LANES)]


def packed(matrix: Any, shape: str, kind: str, which: str, as_kind: str | None = None) -> Any:
    """The registers of all lanes, one row a lane."""
    bits, table = BITS.get(as_kind or kind, 32), codes(matrix, as_kind or kind)
    if which == "c" and as_kind == "f16":
        pairs = [
            [[register[0] for register in held[n : n + 2]] for n in range(0, len(held), 2)]
            for held in (places(shape, kind, which, lane) for lane in range(LANES))
        ]
    else:
        pairs = [places(shape, kind, which, lane) for lane in range(LANES)]
    rows = [
        [sum(int(table[at]) << bits * number for number, at in enumerate(register)) for register in held]
        for held in pairs
    ]
    return np.array(rows, np.uint64 if bits == 64 else np.uint32)


def unpacked(words: Any, shape: str, kind: str, result: str) -> Any:
    """The matrix D that lies in registers."""
    m, n, _ = sizes_of(shape)
    found = np.empty((m, n), FLOATS.get(result, np.int32))
    values = np.ascontiguousarray(words).view(found.dtype)
    for lane in range(LANES):
        for number, register in enumerate(places(shape, kind, "c", lane)):
            found[register[0]] = values[lane, number]
    return found


def sparse(rng: Rng, depth: int, kind: str, ordered: bool = True) -> tuple[Any, Any]:
    """Of 16 rows the columns that are kept, and a code of four bits for each chunk."""
    size = {32: 2, 4: 8}.get(BITS[kind], 4)
    step = 2 if size == 8 else 1
    kept, found = np.zeros((16, depth // 2), int), np.zeros((16, depth // size), int)
    for row in range(16):
        for chunk in range(depth // size):
            picked = rng.permutation(4)[:2] if size > 2 else rng.permutation(2)[:1]
            picked = np.sort(picked) if ordered else picked
            at = [chunk * size + int(index) * step + part for index in picked for part in range(step)]
            kept[row, chunk * size // 2 : (chunk + 1) * size // 2] = at
            found[row, chunk] = picked[0] | picked[1] << 2 if size > 2 else (0x4, 0xE)[picked[0]]
    return kept, found


def metadata(rng: Rng, found: Any, kind: str, selector: int) -> Any:
    """The metadata register of each lane; those that hold none have something else.

    Of 16- and 32-bit elements a lane has the codes of 4 chunks of row g in its lower half, of row g + 8 in the upper;
    of 8- and 4-bit ones those of 8 chunks, the first lane of two row g, the second row g + 8.
    """
    words = rng.integers(0, 2**32, LANES, np.uint32)
    narrow = BITS[kind] <= 8
    lanes = found.shape[1] // 4
    for g in range(8):
        for number in range(lanes):
            lane = 4 * g + selector * lanes + number
            if narrow:
                row, first = g + 8 * (number % 2), number // 2 * 8
                mine = [found[row, first + i] for i in range(8)]
            else:
                mine = [found[g + 8 * (i // 4), 4 * number + i % 4] for i in range(8)]
            words[lane] = sum(int(code) << 4 * i for i, code in enumerate(mine))
    return words


def words_of_scales(rng: Rng, scales: Any, which: str, byte: int, thread: int) -> Any:
    """The register with the scales of rows of A or columns of B in each lane; others have something else.

    Row g of A is in lane 0 of a quad's pair ``thread``, row g + 8 in lane 1; a column of B in lane ``thread``.
    """
    words = rng.integers(0, 2**32, LANES, np.uint32)
    for line, mine in enumerate(scales):
        lane = 4 * (line % 8) + 2 * thread + line // 8 if which == "a" else 4 * line + thread
        value = int(words[lane])
        for number, code in enumerate(mine):
            shift = 8 * (byte + number)
            value = value & ~(0xFF << shift) | int(code) << shift
        words[lane] = value
    return words


def registers(count: int, name: str) -> str:
    return "{" + ", ".join(f"%{name}{number}" for number in range(count)) + "}"


def kernel_text(mnemonic: str, a: Any, b: Any, c: Any, d: int, extra: tuple[Any, ...], form: str, target: str) -> str:
    """A kernel of a warp: registers a, b, c and ``extra`` from memory, d to it; ``form`` names those, %xa0."""
    parts, text = [("a", a), ("b", b), ("c", c), *((f"x{chr(97 + n)}", x[:, None]) for n, x in enumerate(extra))], []
    sizes = {name: array.dtype.itemsize for name, array in parts}
    for name, array in parts:
        size, width = sizes[name], array.shape[1]
        text += [f"ld.param.u64 %rd0, [{name}]; mad.lo.u64 %rd1, %rd2, {width * size}, %rd0;"]
        text += [f"ld.global.b{8 * size} %{name}{n}, [%rd1+{n * size}];" for n in range(width)]
    lists = {name: registers(array.shape[1], name) for name, array in parts}
    operands = f"{registers(d, 'd')}, {lists['a']}, {lists['b']}, {lists['c']}"
    size = sizes["c"]
    text += [
        f"{mnemonic} {operands}{form};",
        f"ld.param.u64 %rd0, [d]; mad.lo.u64 %rd1, %rd2, {d * size}, %rd0;",
        *(f"st.global.b{8 * size} [%rd1+{n * size}], %d{n};" for n in range(d)),
    ]
    kinds = {8: "f64", 4: "b32", 2: "b16"}
    declared = " ".join(f".reg .{kinds[sizes[name]]} %{name}<{array.shape[1]}>;" for name, array in parts)
    lines = "\n".join(text)
    parameters = ", ".join(f".param .u64 {name}" for name in [name for name, _ in parts] + ["d"])
    return f"""
.version 8.7
.target {target}
.address_size 64
.entry k({parameters}) {{
    .reg .b32 %t; .reg .b64 %rd<3>; .reg .{kinds[size]} %d<{d}>; {declared}
    mov.u32 %t, %tid.x;
    cvt.u64.u32 %rd2, %t;
    {lines}
    ret;
}}"""


def run_mma(
    mnemonic: str, a: Any, b: Any, c: Any, d: int = 0, extra: tuple[Any, ...] = (), form: str = "",
    target: str = "sm_120a", **options: Any,
) -> Any:
    """One mma on the registers of each lane; those of the result, ``d`` of them."""
    module = ptxdsl.load(kernel_text(mnemonic, a, b, c, d or c.shape[1], extra, form, target))
    out = np.zeros((LANES, d or c.shape[1]), c.dtype)
    module["k"].configure(1, 32, backend="emulator", **options)(a, b, c, *extra, out)
    return out


def check_product(launch: Any, rng: np.random.Generator, m: int, n: int, k: int, **options: Any) -> None:
    """``launch(a, b, c, **options)`` makes ``c = a @ b.T`` of bf16, with sums in f32."""
    a, b = (rng.standard_normal((rows, -(-k // 8) * 8)).astype(ml_dtypes.bfloat16)[:, :k] for rows in (m, n))
    c = np.full((m, n), np.nan, np.float32)
    launch(a, b, c, **options)
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert (abs(c - x @ y.T) <= (k + 192) * 2.0**-24 * (abs(x) @ abs(y).T)).all()

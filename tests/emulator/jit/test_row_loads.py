"""Loads of neighbouring fields, and accesses of a few lanes: what the first tier gives, to the bit, faults included."""

from __future__ import annotations

import ctypes
import platform
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from emulator_harness import kernel, launch
from llvmlite import ir
from two_tiers import outcomes, same

from ptxdsl.config import override
from ptxdsl.emulator.codegen.library import library

WIDTHS = {"u8": 1, "u16": 2, "s16": 2, "b32": 4, "b64": 8}
BLOCKS = [(128,), (64,), (48,), (8, 4), (20,), (33,)]


def fields(draw: random.Random, stride: int) -> list[tuple[str, int, int]]:
    """Type, offset and number of elements of loads within a structure, most of them of one type."""
    usual, found = draw.choice([*WIDTHS, "b32", "b32"]), []
    for _ in range(draw.randrange(2, 9)):
        kind = usual if draw.random() < 0.8 else draw.choice([*WIDTHS])
        count = draw.choice((1, 1, 1, 2, 4)) if kind in ("b32", "u8") else 1
        nbytes = WIDTHS[kind] * count
        if nbytes <= stride:
            found.append((kind, draw.randrange((stride - nbytes) // nbytes + 1) * nbytes, count))
    return found


def drawn(draw: random.Random, threads: int) -> tuple[str, int]:
    """A kernel over structures, and the bytes of one."""
    stride = draw.choice((4, 8, 12, 16, 24, 32, 48))
    body = f""".shared .align 8 .b8 s[64];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
        mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r4, {threads}, %r1; ld.param.u64 %rd0, [x]; ld.param.u64 %rd2, [out];
        mul.wide.u32 %rd3, %r2, 8; add.u64 %rd2, %rd2, %rd3; mov.u64 %rd9, 0;
        {''.join(f'mov.u16 %h{n}, {n};' for n in range(4, 20))} {''.join(f'mov.u32 %r{n}, {n};' for n in range(10, 26))}
        {''.join(f'mov.u64 %rd{n}, {n};' for n in range(11, 20))}
        and.b32 %r5, %r1, 5; setp.ne.u32 %p1, %r5, 4; setp.lt.u32 %p2, %r1, {draw.randrange(threads + 1)};"""
    if draw.random() < 0.6:  # any structure
        body += """ld.param.u64 %rd4, [order]; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd4, %rd3;
            ld.global.u32 %r9, [%rd4];"""
    else:
        body += "mov.u32 %r9, %r2;"
    body += f"mul.wide.u32 %rd7, %r9, {stride}; add.u64 %rd1, %rd0, %rd7;"
    turns = draw.random() < 0.6
    if turns:  # lanes leave the loop one after the other, and some never enter it
        body += "and.b32 %r6, %r2, 3; setp.eq.u32 %p3, %r6, 0; @%p3 bra DONE; AGAIN: "
    for number, (kind, offset, count) in enumerate(fields(draw, stride)):
        guard = draw.choice(("", "", "", "@%p1 ", "@!%p2 "))
        name = {"u8": "h", "u16": "h", "s16": "h", "b32": "r", "b64": "rd"}[kind]
        first = {"h": 4, "r": 10, "rd": 11}[name]
        registers = [f"%{name}{first + n + 4 * (number % 2)}" for n in range(count)]
        vector, items = (f".v{count}", f"{{{', '.join(registers)}}}") if count > 1 else ("", registers[0])
        body += f"{guard}ld.global{vector}.{kind} {items}, [%rd1+{offset}];"
        for register in registers:
            wide = {"h": f"cvt.u64.u16 %rd8, {register};", "r": f"cvt.u64.u32 %rd8, {register};"}
            body += wide.get(name, f"mov.b64 %rd8, {register};")
            body += "mul.lo.u64 %rd9, %rd9, 31; add.u64 %rd9, %rd9, %rd8;"
        if draw.random() < 0.3:  # loads of x may be made before it
            body += f"st.shared.u32 [s+{4 * number}], %r{10 + number};"
        if draw.random() < 0.15:
            stored = kind if kind != "s16" else "u16"
            body += f"{draw.choice(('', '@%p1 '))}st.global{vector}.{stored} [%rd1+{offset}], {items};"
            body += f"cvt.u32.u64 %r7, %rd9; cvt.u16.u64 %h3, %rd9; st.global.{draw.choice(('u8', 'b16'))} [%rd1], %h3;"
    if turns:
        body += "sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra AGAIN; DONE: "
    return kernel("u64 x, u64 order, u64 out", body + "st.global.u64 [%rd2], %rd9; ret;"), stride


@pytest.mark.parametrize("number", range(12))
def test_fields_of_structures(number: int, rng: np.random.Generator) -> None:
    draw = random.Random(int(rng.integers(1 << 62)))
    block, grid = BLOCKS[number % len(BLOCKS)], 3
    threads = int(np.prod(block)) * grid
    text, stride = drawn(draw, threads // grid)
    missing = draw.choice((0, 0, 0, 1, stride))  # bytes at the end
    x = rng.integers(0, 256, threads * stride + 16, np.uint8)[16 :][: threads * stride - missing]
    order = rng.permutation(threads).astype(np.uint32)
    if draw.random() < 0.2:
        order[rng.integers(threads)] = 1 << draw.choice((12, 31))
    out = np.zeros(threads, np.uint64)
    first, second = outcomes(text, grid, block, None, None, x=x, order=order, out=out)
    assert second[0] == first[0], text
    assert first[0] or second == first, text  # at a fault, other warps may have come further


ALIASED = """mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2; ld.global.u32 %r3, [%rd1+4];
    ld.global.u32 %r4, [%rd1+8]; add.u32 %r3, %r3, %r4; st.global.u32 [%rd1+12], %r3; ret;"""


def test_a_load_is_not_made_before_a_store(rng: np.random.Generator) -> None:
    x = rng.integers(0, 1 << 31, (64, 4), np.uint32)
    before = x.copy()
    launch(kernel("u64 x", ALIASED), 1, 64, second_tier=True, x=x)
    assert np.array_equal(x[:, 1], before[:, 0] + 1)
    assert np.array_equal(x[:, 3], before[:, 0] + 1 + before[:, 2])


LOOP = """mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [order]; ld.param.u64 %rd3, [out];
    mul.wide.u32 %rd4, %r1, 4; add.u64 %rd2, %rd2, %rd4; mul.wide.u32 %rd4, %r1, {size}; add.u64 %rd3, %rd3, %rd4;
    ld.global.u32 %r2, [%rd2]; and.b32 %r3, %r2, 7; setp.eq.u32 %p1, %r3, 0; mov.u32 %r4, 0; @%p1 bra DONE;
    AGAIN: mul.wide.u32 %rd5, %r2, {size}; add.u64 %rd5, %rd1, %rd5; ld.global.{kind} {value}, [%rd5]; {use}
    mad.lo.u32 %r2, %r2, 5, 3; and.b32 %r2, %r2, 1023; sub.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra AGAIN;
    DONE: ret;"""


@pytest.mark.parametrize(("kind", "value"), [("u8", "%h1"), ("u16", "%h1"), ("u32", "%r5"), ("u64", "%rd6")])
@pytest.mark.parametrize("lanes", ["some", "one", "few"])
def test_gathers_and_scatters_of_a_few_lanes(kind: str, value: str, lanes: str, rng: np.random.Generator) -> None:
    size = int(kind[1:]) // 8
    use = f"st.global.{kind} [%rd3], {value}; mul.wide.u32 %rd7, %r2, {size}; xor.b64 %rd7, %rd7, {size}; "
    use += f"add.u64 %rd7, %rd1, %rd7; st.global.{kind} [%rd7], {value};"
    text = kernel("u64 x, u64 order, u64 out", LOOP.format(size=size, kind=kind, value=value, use=use))
    order = rng.integers(0, 1024, 128, np.uint32)
    if lanes != "some":
        order &= ~np.uint32(7)
        order[rng.integers(0, 128, 1 if lanes == "one" else 5)] |= 3
    x = rng.integers(0, 1 << 8 * size, 1025, np.dtype(f"u{size}"))[1:]
    if size < 4:
        x = x[1:] if rng.random() < 0.2 else x
    same(text, 1, 128, x=x, order=order, out=np.zeros(128, x.dtype))


@pytest.mark.parametrize("step", [3, 64, -7, -16, 1])
@pytest.mark.parametrize("kind", ["b32", "b64", "u8"])
def test_strides_of_lanes_below_a_bound(step: int, kind: str, rng: np.random.Generator) -> None:
    """Lanes that take no part may be out of bounds; the first and the last of the others are looked at."""
    nbytes, threads, bound = WIDTHS[kind], 128, int(rng.integers(1, 129))
    name = {"u8": "h", "b32": "r", "b64": "rd"}[kind]
    least = min(0, (bound - 1) * step)
    loop = f"""mov.u32 %r1, %tid.x; ld.param.u64 %rd5, [x]; add.u64 %rd6, %rd5, {-least * nbytes};
        ld.param.u32 %r4, [n]; mul.wide.s32 %rd2, %r1, {step * nbytes}; add.u64 %rd1, %rd6, %rd2; mov.u32 %r2, 0;
        AGAIN: setp.ge.u32 %p1, %r1, %r4; @%p1 bra SKIP;
        ld.global.{kind} %{name}8, [%rd1]; ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, {nbytes};
        add.u64 %rd3, %rd3, %rd4; st.global.{kind} [%rd3], %{name}8; st.global.{kind} [%rd1], %{name}8;
        SKIP: bar.sync 0; shr.u32 %r4, %r4, 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra AGAIN; ret;"""
    text = kernel("u64 x, u64 out, u32 n", loop)
    x = rng.integers(0, 256, ((bound - 1) * abs(step) + 1) * nbytes, np.uint8)
    for missing in (0, 1):
        out = np.zeros(threads * nbytes, np.uint8)
        given = {"x": x[: x.size - missing * nbytes], "out": out, "n": np.uint32(bound)}
        first, second = outcomes(text, 2, threads, None, None, **given)
        assert second[0] == first[0]
        assert bool(first[0]) == bool(missing)
        assert missing or second == first


_DENORMAL = 2
"""The bit of MXCSR that a denormal operand sets."""


@pytest.fixture
def denormals() -> Iterator[Callable[[], bool]]:
    """Whether the CPU has computed with denormal floats on this thread since it was last asked."""
    def build(module: ir.Module) -> None:
        place = ir.IntType(8).as_pointer()
        for name in ("st", "ld"):
            function = ir.Function(module, ir.FunctionType(ir.VoidType(), [place]), f"{name}_status")
            flags = ir.Function(module, ir.FunctionType(ir.VoidType(), [place]), f"llvm.x86.sse.{name}mxcsr")
            body = ir.IRBuilder(function.append_basic_block())
            body.call(flags, function.args)
            body.ret_void()

    addresses = library().compile_once(build, ["st_status", "ld_status"])
    store, load = (ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address) for address in addresses)
    status = ctypes.c_uint32()

    def asked() -> bool:
        store(ctypes.addressof(status))
        before = status.value
        status.value = before & ~_DENORMAL
        load(ctypes.addressof(status))
        return bool(before & _DENORMAL)

    yield asked
    asked()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other CPUs have no such flag")
def test_inactive_lanes_compute_with_no_denormals(denormals: Callable[[], bool], rng: np.random.Generator) -> None:
    """Computing with such takes a hundred times as long: the numbers of lanes that have left a loop are of no use."""
    threads = 256
    turns, rows = rng.integers(0, 7, threads, np.uint32), rng.permutation(threads).astype(np.uint32)
    x, out = rng.uniform(1, 2, (threads + 8, 4)).astype(np.float32), np.zeros(threads, np.float32)
    text = kernel("u64 turns, u64 rows, u64 x, u64 out", """
        mov.u32 %r1, %tid.x; ld.param.u64 %rd0, [turns]; mad.wide.u32 %rd0, %r1, 4, %rd0; ld.global.u32 %r2, [%rd0];
        ld.param.u64 %rd1, [rows]; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.global.u32 %r3, [%rd1];
        ld.param.u64 %rd2, [x]; mad.wide.u32 %rd2, %r3, 16, %rd2; mov.f32 %f0, 0f3F800000;
        setp.eq.u32 %p0, %r2, 0; @%p0 bra DONE;
        AGAIN: ld.global.f32 %f1, [%rd2]; ld.global.f32 %f2, [%rd2+4]; ld.global.f32 %f3, [%rd2+8];
        ld.global.f32 %f4, [%rd2+12]; mul.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f3, %f4, %f1; add.f32 %f0, %f0, %f1;
        add.u64 %rd2, %rd2, 16; sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra AGAIN;
        DONE: ld.param.u64 %rd3, [out]; mad.wide.u32 %rd3, %r1, 4, %rd3; st.global.f32 [%rd3], %f0; ret;
    """)
    with override(emulator_threads=1):
        for _ in range(2):
            denormals()
            launch(text, 1, threads, turns=turns, rows=rows, x=x, out=out, second_tier=True)
            found = denormals()
    wide = x.astype(np.float64)
    sums = wide[:, 0] * wide[:, 1] + wide[:, 2] * wide[:, 3]
    expected = [1 + sums[row : row + count].sum() for row, count in zip(rows, turns)]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert not found


@pytest.mark.parametrize("lanes", [0xFF << 8, 0xFF << 24, 0x00FF0000, 1 << 13, 0xFF00FF00, 0x0100_0080, 0, 0xFFFFFFFF])
def test_groups_of_lanes_of_which_some_are_active(lanes: int, rng: np.random.Generator) -> None:
    """A group that is gathered or scattered at once is skipped where none of its lanes is active, and only then.

    The first two lanes lie side by side, as all do where nothing has to be gathered.
    """
    threads = 96
    first, last = rng.permutation(threads), rng.permutation(threads)
    for each in (first, last):
        each[:] = [0, 1, *each[each > 1]]
    places = np.concatenate([first, last]).astype(np.uint32)
    table, out = rng.integers(1, 1 << 32, threads, np.uint32), np.zeros((2, threads), np.uint32)
    text = kernel("u64 places, u64 table, u64 out", f"""
        .shared .align 4 .b32 cells[{threads}];
        mov.u32 %r1, %tid.x; shl.b32 %r9, %r1, 2; mov.u32 %r2, cells; add.u32 %r9, %r2, %r9; st.shared.u32 [%r9], 0;
        ld.param.u64 %rd0, [places]; mad.wide.u32 %rd0, %r1, 4, %rd0; ld.global.u32 %r3, [%rd0];
        ld.global.u32 %r4, [%rd0+{4 * threads}]; ld.param.u64 %rd1, [table]; ld.param.u64 %rd2, [out]; bar.sync 0;
        and.b32 %r5, %r1, 31; mov.u32 %r6, {lanes}; shr.u32 %r6, %r6, %r5; and.b32 %r6, %r6, 1;
        setp.eq.u32 %p0, %r6, 0; @%p0 bra DONE;
        mad.wide.u32 %rd3, %r3, 4, %rd1; ld.global.u32 %r7, [%rd3];
        shl.b32 %r8, %r4, 2; add.u32 %r8, %r2, %r8; st.shared.u32 [%r8], %r7;
        mad.wide.u32 %rd4, %r4, 4, %rd2; st.global.u32 [%rd4], %r7;
        DONE: bar.sync 0; ld.shared.u32 %r7, [%r9]; mad.wide.u32 %rd5, %r1, 4, %rd2;
        st.global.u32 [%rd5+{4 * threads}], %r7; ret;
    """)
    launch(text, 1, threads, places=places, table=table, out=out, second_tier=True)
    active = [lane for lane in range(threads) if lanes >> lane % 32 & 1]
    expected = np.zeros(threads, np.uint32)
    expected[places[threads:][active]] = table[places[:threads][active]]
    np.testing.assert_array_equal(out, [expected, expected])

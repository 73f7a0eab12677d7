"""Registers that a thread reads before it has written them: found where it matters, told where it is read."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl
from ptxdsl import UninitializedError, use
from ptxdsl.emulator.sanitizer.sanitizer import collect

MODULE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{{
  .reg .b64 %rd<8>;
  .reg .b32 %r<16>;
  .reg .b16 %h<8>;
  .reg .pred %p<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  setp.lt.u32 %p1, %r2, %r1;
{body}
  ret;
}}
"""
FIRST = 16
"""Line of the body's first instruction."""
HALVES = """@%p1 mov.u64 %rd5, 0;
@!%p1 mov.b64 {%r5, %r6}, %rd5;
@!%p1 add.u32 %r7, %r5, 1;
@!%p1 st.global.u32 [%rd1], %r7;"""
LOOP = """mov.u32 %r9, 0;
L:
@%p3 add.u32 %r3, %r2, 1;
setp.eq.u32 %p3, %r9, %r9;
add.u32 %r9, %r9, 1;
setp.lt.u32 %p4, %r9, 3;
@%p4 bra L;"""


SHUFFLE = """@%p1 mov.u32 %r4, 5;
shfl.sync.idx.b32 %r3, %r4, {}, 31, -1;
st.global.u32 [%rd1], %r3;"""
STORE = "\nst.global.u32 [%rd1], %r3;"


def run(body: str, n: int = 0, threads: int = 32, sanitize: str | None = "init") -> list[tuple[int | None, str]]:
    """The line and the register of each finding."""
    out = np.full(threads, 7, np.uint32)
    kernel = ptxdsl.load(MODULE.format(body=body))["k"]
    with use("emulator"), collect() as findings:
        kernel.configure(1, threads, sanitize=sanitize)(out, n)
    return [(finding.access.ptx_line, finding.array) for finding in findings]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("add.u32 %r3, %r4, 1;", []),
        ("add.u32 %r3, %r4, 1;" + STORE, [(FIRST, "%r4")]),
        ("add.u32 %r3, %r4, %r5;\nadd.u32 %r3, %r4, %r5;" + STORE, [(FIRST, "%r4")]),
        ("@%p1 mov.u32 %r4, 5;\nadd.u32 %r3, %r4, 1;" + STORE, [(FIRST + 1, "%r4")]),
        ("@%p1 mov.u32 %r4, 5;\nadd.u32 %r3, %r4, 1;\n@%p1 st.global.u32 [%rd1], %r3;", []),
        ("@%p1 mov.u32 %r4, 5;\nadd.u32 %r3, %r4, 1;\nselp.u32 %r3, %r3, 7, %p1;" + STORE, []),
        ("@%p1 mov.u32 %r4, 5;\n@%p1 add.u32 %r3, %r4, 1;", []),
        ("@%p1 mov.u32 %r4, 5;\n@!%p1 add.u32 %r3, %r4, 1;\n@!%p1 st.global.u32 [%rd1], %r3;", [(FIRST + 1, "%r4")]),
        ("@%p1 mov.u32 %r4, 5;\n@!%p1 mov.u32 %r4, 6;\nadd.u32 %r3, %r4, 1;", []),
        ("@%p1 bra A;\nmov.u32 %r4, 5;\nA:\nadd.u32 %r3, %r4, 1;" + STORE, [(FIRST + 3, "%r4")]),
        ("@%p1 bra A;\nmov.u32 %r4, 5;\nbra B;\nA:\nmov.u32 %r4, 6;\nB:\nadd.u32 %r3, %r4, 1;", []),
        ("mov.u32 %r5, %r4;\nmov.u32 %r6, %r5;", []),
        ("mov.u32 %r5, %r4;\nmov.u32 %r6, %r5;\nst.global.u32 [%rd1], %r6;", [(FIRST + 2, "%r6")]),
        ("mov.b64 %rd4, {%r2, %r4};\nmov.b64 {%r5, %r6}, %rd4;\nadd.u32 %r3, %r6, 1;" + STORE, [(FIRST + 2, "%r6")]),
        ("@%p2 add.u32 %r3, %r2, 1;", [(FIRST, "%p2")]),
        ("@%p1 mov.u64 %rd5, %rd1;\n@%p1 ld.global.u32 %r3, [%rd5];", []),
        (HALVES, [(FIRST + 2, "%r5")]),
        (SHUFFLE.format(3), []),  # lane 3 has written what all lanes take
        (SHUFFLE.format(20), [(FIRST + 2, "%r3")]),
        (LOOP, [(FIRST + 2, "%p3")]),
    ],
)
def test_found_where_it_is_read(body: str, found: list[tuple[int, str]]) -> None:
    assert run(body, 9) == found
    assert run(body, 9, sanitize=None) == []


PACK, HIGH, LOW = "mov.b64 %rd4, {%r4, %r2};\n", "mov.b64 %rd4, {%r2, %r4};\n", "cvt.u32.u64 %r3, %rd4;"
PAIR = "mov.b32 %r5, {%h1, %h2};\n"
UPPER = "shr.u64 %rd5, %rd4, 32;\ncvt.u32.u64 %r3, %rd5;"


@pytest.mark.parametrize(("body", "right"), [  # %r4, %h1 and, in some lanes, %h2 are never written
    (PACK + UPPER, True), (HIGH + UPPER, False), (HIGH + LOW, True), (PACK + LOW, False),
    (PACK + "mov.b64 {%r5, %r3}, %rd4;", True), (PACK + "mov.b64 {%r3, %r5}, %rd4;", False),
    (PACK + "mov.b64 {%h1, %h2, %h3, %h4}, %rd4;\ncvt.u32.u16 %r3, %h3;", True),
    (PACK + "mov.b64 {%h1, %h2, %h3, %h4}, %rd4;\ncvt.u32.u16 %r3, %h2;", False),
    (PACK + "mov.b64 %rd6, %rd4;\nmov.b64 {%r5, %r3}, %rd6;", True),
    (PACK + "mov.b64 %rd6, %rd4;\nmov.b64 {%r3, %r5}, %rd6;", False),
    (PACK + "shr.u64 %rd5, %rd4, 31;\ncvt.u32.u64 %r3, %rd5;", False),
    (PACK + "shr.u64 %rd4, %rd4, 32;\n" + LOW, True),
    (PACK + "add.u64 %rd4, %rd4, 1;\n" + UPPER, False),
    ("mov.u64 %rd4, 1;\n@%p1 " + PACK + UPPER, True), ("@%p1 " + PACK + UPPER, False),
    ("@%p1 " + PACK + "@!%p1 " + HIGH + UPPER, False),
    ("mov.u16 %h2, 3;\n" + PAIR + "shr.u32 %r3, %r5, 16;", True),
    ("@%p1 mov.u16 %h2, 3;\n" + PAIR + "shr.u32 %r3, %r5, 16;", False),
    ("mov.u16 %h2, 3;\n" + PAIR + "and.b32 %r3, %r5, 0xff0000;", True),
    ("mov.u16 %h2, 3;\n" + PAIR + "and.b32 %r3, %r5, 0xff8000;", False),
    ("mov.u16 %h2, 3;\n" + PAIR + "bfe.u32 %r3, %r5, 20, 4;", True),
    ("mov.u16 %h2, 3;\n" + PAIR + "bfe.u32 %r3, %r5, 12, 8;", False),
    ("mov.u16 %h1, 3;\n" + PAIR + "shl.b32 %r3, %r5, 16;", True),
    ("mov.u16 %h1, 3;\n" + PAIR + "shl.b32 %r3, %r5, 15;", False),
    ("mov.u16 %h2, 3;\n" + PAIR + "mul.lo.u32 %r3, %r5, 16;", False),
])
def test_parts_of_packed_words(body: str, right: bool) -> None:
    """Compilers pack what is undefined and take the other part out again."""
    assert bool(run(body + STORE, 9)) != right


def test_the_message() -> None:
    body = "  @%p1 mov.u32 %r4, 5;\n  add.u32 %r3, %r4, 1;\n  st.global.u32 [%rd1], %r3;"
    with use("emulator"), pytest.raises(UninitializedError) as caught:
        ptxdsl.load(MODULE.format(body=body))["k"].configure(1, 64, sanitize="init")(np.zeros(64, np.uint32), 40)
    assert str(caught.value) == (
        "`add.u32 %r3, %r4, 1` reads %r4, which this thread has not written\n"
        "  used by the store by thread (40, 0, 0) of block (0, 0, 0) (PTX line 18: st.global.u32 [%rd1], %r3)\n"
        "  in block (0, 0, 0), thread (40, 0, 0)\n"
        "  PTX line 17: add.u32 %r3, %r4, 1\n"
        "  hint: write %r4 on every way to this instruction, also where a guard does not hold"
    )


def test_the_result_is_that_of_an_ordinary_run() -> None:
    body = "mov.u32 %r4, 1;\n@%p1 mov.u32 %r5, 41;\n@%p1 add.u32 %r4, %r4, %r5;\nst.global.u32 [%rd1], %r4;"
    out = np.full(40, 7, np.uint32)
    with use("emulator"):
        ptxdsl.load(MODULE.format(body=body))["k"].configure(1, 40, sanitize="all")(out, 33)
    assert np.array_equal(out, np.where(np.arange(40) < 33, 42, 1))


def test_random_programs() -> None:
    """Against sets of registers, lane by lane: whether what is stored at the end has a value in all lanes."""
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    for _ in range(30):
        lines = []
        known = [{2} for _ in range(32)]
        for _ in range(int(rng.integers(4, 14))):
            to, a, b = (int(x) for x in rng.integers(3, 9, 3))
            a = 2 if rng.random() < 0.3 else a
            guard = ("", "@%p1 ", "@!%p1 ")[int(rng.integers(3))]
            kind = str(rng.choice(["number", "copy", "add", "choice"]))
            lines.append(guard + {
                "number": f"mov.u32 %r{to}, 3;", "copy": f"mov.u32 %r{to}, %r{a};",
                "add": f"add.u32 %r{to}, %r{a}, %r{b};", "choice": f"selp.u32 %r{to}, %r{a}, %r{b}, %p1;",
            }[kind])
            for lane in range(32):
                if guard and (lane < 9) != (guard == "@%p1 "):
                    continue
                needs = {"number": {2}, "copy": {a}, "add": {a, b}, "choice": {a if lane < 9 else b}}[kind]
                (known[lane].add if needs <= known[lane] else known[lane].discard)(to)
        last = int(rng.integers(3, 9))
        lines.append(f"st.global.u32 [%rd1], %r{last};")
        assert bool(run("\n".join(lines), 9)) == any(last not in lane for lane in known), (seed, lines)

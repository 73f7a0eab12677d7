"""Every form of the table can be written in the language: by both spellings, into regs and into new values.

The forms are drawn from the rows, each value of each slot at least once; ``tests/reach_report.py`` does the same for a
file of forms. What the rows do not say is written out below: calls, labels, what may stand for an address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from isa_modules import instruction, module, sample
from reaching import reached, spelled
from tracing_helpers import ptx as traced
from tracing_helpers import refused, said

from ptxdsl import (
    Ptr, TensorMap, TraceError, assemble, f32, global_, label, ptx, ptx_func, ptx_kernel, reg, s32, texref, u32, u64,
    use,
)
from ptxdsl import isa
from ptxdsl.isa.targets import lowest
from ptxdsl.text import parse, to_text
from ptxdsl.language import trace
from ptxdsl.verify import verify


@pytest.mark.parametrize("part", range(8))
def test_every_row(part: int, rng: np.random.Generator) -> None:
    """Each form of each row, traced from arguments and compared operand by operand."""
    wrong, count = [], 0
    for opcode in list(isa.opcodes())[part::8]:
        for row in isa.rows(opcode) if opcode != "call" else ():
            for form in sample(row, rng, 0):
                if form.row.until is not None:
                    continue
                version, target = lowest(form.needs)
                parsed = parse(module([instruction(form)], target, version)[0])
                function = parsed.functions[-1]
                found = next(each for each in function.instructions() if each.form.mnemonic == form.mnemonic)
                count += 1
                why = reached(found, function, parsed)
                if why is not None:
                    wrong.append(f"{instruction(form)}  {why}")
    assert not wrong, "\n".join(wrong[:20])
    assert count > 100


@pytest.mark.parametrize(
    "name", ["ld.global.nc.v4.f32", "mbarrier.arrive.expect_tx.shared::cta.b64", "and.b32", "tex.2d.v4.f32.s32"]
)
def test_spellings_agree(name: str) -> None:
    assert spelled(name).mnemonic == ptx[name].mnemonic == name


# -- what stands for what


def test_part_of_register() -> None:
    def kernel(x: Ptr[u32]):
        a, d = x[0], reg(u32, 0)
        ptx["vadd.u32.u32.u32"](a.part("b1"), a.part("h1"), d, out=d.part("h0"))

    assert traced(kernel)[-2:] == ["vadd.u32.u32.u32 %d.h0, %r0.b1, %r0.h1, %d", "ret"]


def test_minus_of_a_part() -> None:
    def kernel(x: Ptr[s32]):
        a = x[0]
        x[1] = ptx["vmad.s32.s32.s32"](-a.part("h0"), a.part("h1"), -a.part())

    assert "vmad.s32.s32.s32 %r1, -%r0.h0, %r0.h1, -%r0" in traced(kernel)


def test_special_register_by_name() -> None:
    def kernel(x: Ptr[u32]):
        x[0] = ptx.mov.u32("%smid") + ptx["mov.v4.u32"]("%tid")[1]

    lines = traced(kernel)
    assert "mov.u32 %r0, %smid" in lines
    assert "mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid" in lines


def test_parameter_by_name() -> None:
    def kernel(n: u64, m: TensorMap):
        ptx.ld.param.u32("n+4")
        ptx.prefetch.param.tensormap("m")
        ptx.mov.u64("m")

    text = to_text(trace(kernel))
    assert "ld.param.u32 %r0, [n+4];" in text
    assert "prefetch.param.tensormap [m];" in text
    assert "mov.u64 %rd1, m;" in text


def test_texture_reference() -> None:
    def kernel(x: Ptr[f32]):
        image = global_(texref)
        x[0] = ptx["tex.2d.v4.f32.s32"]((image, [ptx.tid.x.bits(s32), reg(s32, 0)]))[0]

    assert any(line.startswith("tex.2d.v4.f32.s32 {") and "[kernel_image, {" in line for line in traced(kernel))
    assert ".global .texref kernel_image;" in to_text(trace(kernel))


def test_branch_table() -> None:
    """``brx.idx`` takes a list of labels."""

    @ptx_kernel
    def kernel(x: Ptr[u32]):
        v = reg(u32, 0)
        one, two = label(here=False), label(here=False)
        ptx.brx.idx(ptx.tid.x, [one, two, "end"])
        one.here()
        v += 10
        two.here()
        v += 1
        label("end")
        x[ptx.tid.x] = v

    x = np.full(3, 99, np.uint32)
    with use("emulator"):
        kernel[1, 3](x)
    assert x.tolist() == [11, 1, 0]


def test_variable_in_global_memory() -> None:
    """``global_`` is one array for all blocks."""

    @ptx_kernel
    def kernel(out: Ptr[u32]):
        out[ptx.ctaid.x] = ptx.atom.global_.add.u32(global_(u32, 2) + 1, 1)

    out = np.full(5, 99, np.uint32)
    with use("emulator"):
        kernel[5, 1](out)
    assert sorted(out.tolist()) == [0, 1, 2, 3, 4]


@ptx_func
def increment(a: u32) -> u32:
    return a + 1


def test_calls() -> None:
    """``ptx.call``: guarded, uniform, through an address; the module verifies and survives printing."""

    def kernel(n: u32, x: Ptr[u32]):
        v = reg(u32, 0)
        ptx.call(increment, n, out=v, pred=n > 3)
        x[0] = v + ptx.call.uni(increment, n)
        x[1] = ptx.call(ptx.mov.u64(increment), n, prototype=increment)

    lines = traced(kernel)
    calls = [line for line in lines if "call" in line and not line.startswith("as_")]
    assert calls == [
        "@%p0 call (%v), increment, (%r0)", "call.uni (%r1), increment, (%r0)",
        "call (%r3), %rd1, (%r0), as_increment",
    ]
    made = trace(kernel)
    verify(made)
    assert parse(to_text(made)) == made


# -- and what does not


def call_of_nothing(n: u32):
    ptx.call("increment", n)


def call_guarded(n: u32):
    ptx.call(increment, n, pred=n > 3)


def call_into_a_float(n: u32):
    ptx.call(increment, n, out=reg(f32))


def call_through_32_bits(n: u32):
    ptx.call(n, n, prototype=increment)


def unknown_parameter(n: u32):
    ptx.ld.param.u32("m")


def unknown_special(n: u32):
    ptx.mov.u32("%tidx")


def part_where_none_is(n: u32):
    ptx.add.u32(n.part("b0"), n)


def part_that_is_none(n: u32):
    ptx["vadd.u32.u32.u32"](n.part("b4"), n)


def part_of_a_value(n: u32):
    ptx["vadd.u32.u32.u32"](n, n, n, out=n.part("b0"))


def branch_to_no_list(n: u32):
    ptx.brx.idx(n, "end")


def shaped_texture(n: u32):
    global_(texref, 4)


WRONG: list[tuple[Callable[..., None], tuple[str, ...]]] = [
    (call_of_nothing, (
        "PtxTypeError",
        "`ptx.call` of the str 'increment'",
        'ptx.call("increment", n)',
        "`ptx.call(f, ..)` takes a `@ptx_func`; `ptx.call(address, .., prototype=f)` a u64, the address of one",
    )),
    (call_guarded, (
        "PtxTypeError",
        "a guarded call may compute nothing, and a Value has always been computed",
        "ptx.call(increment, n, pred=n > 3)",
        "`v = reg(u32, 0)` before it, then `out=v, pred=..`",
    )),
    (call_into_a_float, (
        "PtxTypeError",
        "out of the call of `increment` is a reg of u32, not a reg of f32",
        "ptx.call(increment, n, out=reg(f32))",
        "`reg(u32)`",
    )),
    (call_through_32_bits, (
        "PtxTypeError",
        "the address of a function is a u64, not a u32",
        "ptx.call(n, n, prototype=increment)",
        "`a = ptx.mov.u64(f)`",
    )),
    (unknown_parameter, (
        "PtxTypeError",
        "operand `a` of `ld.param.u32 d, [a]` is an address, not the str 'm'",
        'ptx.ld.param.u32("m")',
        "a pointer `x + i`; `.param` instructions name a parameter: `n`",
    )),
    (unknown_special, (
        "PtxTypeError",
        "operand `a` of `mov.u32 d, a` is a u32: PTX has no special register `%tidx`",
        'ptx.mov.u32("%tidx")',
        '`ptx.tid.x`, or as here `"%tid.x"`',
    )),
    (part_where_none_is, (
        "PtxTypeError",
        "operand `a` of `add.u32 d, a, b` is a whole register: it is the part .b0 of the .b32 register %r0",
        'ptx.add.u32(n.part("b0"), n)',
        "`v` without `.part()`",
    )),
    (part_that_is_none, (
        "PtxTypeError",
        "operand `a` of `vadd.u32.u32.u32 d, a, b` has no such part: it is the part .b4 of the .b32 register %r0",
        'ptx["vadd.u32.u32.u32"](n.part("b4"), n)',
        '`v.part("b0")` to "b3", `v.part("h0")`, `v.part("h1")`',
    )),
    (part_of_a_value, (
        "PtxTypeError",
        "out of `vadd.u32.u32.u32 d, a, b, c` is written by the instruction, and a Value is not",
        'ptx["vadd.u32.u32.u32"](n, n, n, out=n.part("b0"))',
        '`v = reg(u32, 0)`, `v.part("b0")`',
    )),
    (branch_to_no_list, (
        "PtxTypeError",
        "operand `targets` of `brx.idx index, targets` is a list of labels, not the str 'end'",
        'ptx.brx.idx(n, "end")',
        "`ptx.brx.idx(i, [first, second])`",
    )),
    (shaped_texture, (
        "PtxTypeError",
        "a texref has no shape",
        "global_(texref, 4)",
        "`global_(texref)`",
    )),
]


@pytest.mark.parametrize(("kernel", "words"), WRONG, ids=[kernel.__name__ for kernel, _ in WRONG])
def test_mistakes(kernel: Callable[..., None], words: tuple[str, ...]) -> None:
    assert said(refused(kernel), kernel) == words


# -- what stands at the head of a kernel


@pytest.mark.parametrize(("options", "head"), [
    ({"maxntid": (16, 16), "minnctapersm": 2}, ".maxntid 16, 16\n.minnctapersm 2"),
    ({"reqntid": 128, "reqnctapercluster": 2, "blocksareclusters": True},
     ".reqntid 128\n.reqnctapercluster 2\n.blocksareclusters"),
    ({"explicitcluster": True, "maxclusterrank": 8}, ".explicitcluster\n.maxclusterrank 8"),
    ({"maxnreg": 32, "explicitcluster": False}, ".maxnreg 32"),
    ({"minperctamemory": 1024}, ".minperctamemory 1024"),
    ({"pragma": "nounroll"}, '.pragma "nounroll";'),
])
def test_directives(options: dict[str, Any], head: str) -> None:
    def kernel(n: u32):
        ptx.ret()

    made = ptx_kernel(**options)(kernel)
    assert f")\n{head}\n{{" in made.ptx()
    assert parse(made.ptx()) == made.ir()
    assemble(made.ptx(), made.ir().target)


@pytest.mark.parametrize(("options", "message"), [
    ({"explicitcluster": 2}, "explicitcluster takes no number; it is True or False, not 2"),
    ({"pragma": 3}, "pragma is a str or a tuple of them, not 3"),
    ({"maxntid": True}, "maxntid is a positive int or a tuple of 1 to 3, not True"),
])
def test_wrong_directives(options: dict[str, Any], message: str) -> None:
    def kernel(n: u32):
        ptx.ret()

    with pytest.raises(TraceError) as caught:
        ptx_kernel(**options)(kernel)
    assert caught.value.message == message
    assert caught.value.loc is not None
    assert caught.value.loc.line == kernel.__code__.co_firstlineno

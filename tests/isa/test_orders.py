"""Modifiers in any order: what NVIDIA's assembler takes is read as the row that it means, the rest refused."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from isa_modules import instruction, module, refused, sample

from ptxdsl import isa
from ptxdsl.errors import ParseError, PtxError
from ptxdsl.ir import Instruction
from ptxdsl.isa.forms import Form
from ptxdsl.isa.orders import reordered
from ptxdsl.isa.targets import LATEST, Version, lowest
from ptxdsl.text import parse, to_text
from ptxdsl.verify import verify

HEAD = ".version 9.5\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;"


def read(line: str) -> Instruction:
    found = parse(f"{HEAD}.entry k() {{ {REGISTERS}\n{line}\n}}")
    assert parse(to_text(found)) == found
    verify(found, foreign=True)
    return next(found.function("k").instructions())


@pytest.mark.parametrize(("line", "meant"), [
    ("vote.ballot.sync.b32 %r1, %p1, %r2;", "vote.sync.ballot.b32"),
    ("div.ftz.rn.f32 %f1, %f2, %f3;", "div.rn.ftz.f32"),
    ("ld.global.acquire.gpu.u32 %r1, [%rd1];", "ld.acquire.gpu.global.u32"),
    ("ld.global.L1::no_allocate.nc.u32 %r1, [%rd1];", "ld.global.nc.L1::no_allocate.u32"),
    ("ldmatrix.sync.x4.m8n8.aligned.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
    ("atom.add.release.gpu.u32 %r1, [%rd1], %r2;", "atom.release.gpu.add.u32"),
    ("atom.global.gpu.acq_rel.cas.b32 %r1, [%rd1], %r2, %r3;", "atom.acq_rel.gpu.global.cas.b32"),
    ("shfl.down.sync.b32 %r1|%p1, %r2, 1, 31, -1;", "shfl.sync.down.b32"),
    ("cvt.f16.rn.f32 %h1, %f1;", "cvt.rn.f16.f32"),
    ("fma.f32.rn %f1, %f2, %f3, %f4;", "fma.rn.f32"),
    ("mbarrier.try_wait.parity.b64.shared::cta %p1, [%r1], %r2;", "mbarrier.try_wait.parity.shared::cta.b64"),
    ("cp.async.cg.L2::128B.shared.global [%r1], [%rd1], 16;", "cp.async.cg.shared.global.L2::128B"),
    ("add  .u32 %r1, %r2, %r3;", "add.u32"),
    ("add\n\t.sat\n\t.s32 %r1, %r2, %r3;", "add.sat.s32"),
])
def test_an_order_that_libraries_write(line: str, meant: str) -> None:
    assert read(line).form.mnemonic == meant


@pytest.mark.parametrize(("line", "hint"), [
    ("mad.u32.lo %r1, %r2, %r3, %r4;", "these modifiers are in the order `mad.lo.u32`"),
    ("bar.sync.warp %r1;", "these modifiers are in the order `bar.warp.sync`"),
    ("cp.async.ca.global.shared [%r1], [%rd1], 16;", "these modifiers are in the order `cp.async.ca.shared.global`"),
    ("cp.bulk.async.commit_group;", "these modifiers are in the order `cp.async.bulk.commit_group`"),
    ("mma.sync.aligned.m16n8k4.col.row.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4};",
     "these modifiers are in the order `mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32`"),
])
def test_an_order_that_means_nothing(line: str, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        read(line)
    assert (caught.value.hint, caught.value.loc and caught.value.loc.line) == (hint, 5)


def test_the_order_of_what_is_of_one_kind_has_a_meaning() -> None:
    assert reordered("cvt.sat.s32.u32") == ("cvt.sat.s32.u32",)
    assert reordered("mma.sync.aligned.col.row.m8n8k4.f32.f16.f16.f32") == (
        "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32",
    )
    assert reordered("vset.ge.s32.u32") == ("vset.s32.u32.ge",)


@pytest.mark.ptxas
def test_the_assembler_takes_the_same_orders(rng: np.random.Generator) -> None:
    groups: dict[tuple[Version, str], list[tuple[str, Form]]] = defaultdict(list)
    for opcode in isa.opcodes():
        for row in isa.rows(opcode) if opcode != "call" else ():
            for form in sample(row, rng, 1)[-1:]:
                order = [form.tokens[index] for index in rng.permutation(len(form.tokens))]
                if rng.random() < 0.5:  # in the right half, so that what is taken is as frequent as what is not
                    cut = len(order) // 2 + 1
                    order = [*form.tokens[:cut], *form.tokens[:cut - 1:-1]]
                spelled = ".".join((opcode, *order))
                if opcode != "cvta" or "u32" not in order:
                    line = spelled + instruction(form)[len(form.mnemonic):]
                    needed = lowest(form.needs)
                    groups[needed if row.until else (LATEST, needed[1])].append((line, form))
    wrong, taken, count = [], 0, 0
    for (version, target), pairs in groups.items():
        out = refused([line for line, _ in pairs], target, version)
        for at, (line, form) in enumerate(pairs):
            why = _offence(module([line], target, version)[0], form)
            count, taken = count + 1, taken + (at not in out)
            if (why is None) != (at not in out):
                wrong.append(f"{line} PTX {version} {target}: ptxas {out.get(at, 'takes it')!r}, and here {why}")
    assert not wrong, "\n".join(wrong)
    assert count > 400
    assert 0.2 < taken / count < 0.9


def _offence(text: str, form: Form) -> str | None:
    try:
        found = parse(text)
        verify(found, foreign=True)
    except PtxError as error:
        return error.message
    read = next(s for s in found.function("kernel").instructions() if s.form.opcode == form.opcode)
    assert sorted(read.form.tokens) == sorted(form.tokens)
    return None

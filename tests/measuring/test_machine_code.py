"""The kernels whose machine code is compared with nvcc's compute what they shall, and how their code is counted."""

from __future__ import annotations

import numpy as np
import pytest
from paired.listing import listing
from paired.pair import ARCH, Pair, pairs

from ptxdsl import Ptr, f32, loop, ptx_kernel, reg, u32
from ptxdsl.gpu.assembler import assemble_module
from ptxdsl.gpu.cubin import disassemble

SASS = """
	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_1:
        /*0020*/                   MOV R2, RZ ;
.L_x_0:
        /*0030*/                   LDG.E R3, desc[UR4][R2.64] ;
        /*0040*/                   LDG.E R5, desc[UR4][R2.64+0x4] ;
        /*0050*/              @!P1 BRA `(.L_x_0) ;
        /*0060*/                   LDG.E R7, desc[UR4][R2.64] ;
        /*0070*/              @!UP2 BRA `(.L_x_1) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2);
        /*00a0*/                   NOP;
        /*00b0*/                   NOP;

	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
.L_x_3:
        /*0010*/                   BRA `(.L_x_3);
"""


def test_padding_does_not_count_and_only_inner_loops_are_hot() -> None:
    found = listing(SASS, "k")
    assert found.opcodes == ["LDC", "EXIT", "MOV", "LDG.E", "LDG.E", "BRA", "LDG.E", "BRA", "EXIT"]
    assert found.loops == [(3, 6)]
    hot = found.hot("LDG")
    assert hot is not None and hot == (3, 2) and hot.each == 1.5
    assert found.hot("FFMA") is None
    assert listing(SASS, "other") == (["EXIT"], [])


@pytest.mark.ptxas
def test_the_code_of_a_loop() -> None:
    @ptx_kernel
    def total(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
        acc = reg(f32, 0.0)
        with loop(0, n, 32, unroll=4) as i:
            acc += x[i]
        y[0] = acc

    hot = listing(disassemble(assemble_module(total.ptx(), ARCH).cubin), "total").hot("LDG")
    assert hot is not None and hot.work % 4 == 0 and hot.each < 4


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.name)
def test_results(pair: Pair, rng: np.random.Generator) -> None:
    case = pair.case(rng)
    pair.kernel.configure(case.grid, case.block, backend="emulator", sanitize="all")(*case.arguments)
    for place in case.expected:
        assert case.error(place) <= case.allowed

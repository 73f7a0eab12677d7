"""Variables and functions that other modules see or have, functions that never return, remarks to the assembler."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxdsl import Kernel, Ptr, f32, global_, loop, ptx, ptx_func, ptx_kernel, u32, when
from ptxdsl.errors import EmulationError, LaunchError, PtxTypeError, TraceError, TrapError
from ptxdsl.gpu.assembler import assemble


@pytest.mark.parametrize("linkage", ["visible", "weak", "common"])
def test_a_variable_with_a_linkage(linkage: str) -> None:
    @ptx_kernel
    def k(out: Ptr[u32], *, linkage: str = "weak"):
        counter = global_(u32, 4, linkage=linkage, managed=True)
        out[ptx.ctaid.x] = ptx.atom.global_.add.u32(counter, 1)

    text = k.ptx(linkage=linkage)
    assert f".{linkage} .global .attribute(.managed) .align 16 .u32 counter[4];" in text
    out = np.zeros(4, np.uint32)
    k.configure(4, 1)(out, linkage=linkage)
    assert sorted(out.tolist()) == [0, 1, 2, 3]


def launched(kernel: Kernel, *arguments: int) -> list[float]:
    x = np.arange(4, dtype=np.float32)
    kernel.configure(1, 1)(x, *arguments)
    return x.tolist()


def assembles(kernel: Kernel) -> bool:
    return assemble(kernel.ptx(), options=["-c"])[:4] == b"\x7fELF"


@ptx_func(linkage="extern")
def elsewhere(a: f32) -> f32:
    """Another module's."""


@ptx_func(noreturn=True)
def stop(n: u32) -> None:
    ptx.trap()


@ptx_func(noreturn=True)
def goes_on(n: u32) -> None:
    """It should end, and does not."""


@ptx_kernel
def calls_elsewhere(x: Ptr[f32], n: u32):
    with when(n > 5):
        x[0] = elsewhere(x[1])  # line of the call


@ptx_kernel
def reads_elsewhere(x: Ptr[f32]):
    table = global_(f32, 16, linkage="extern")
    x[0] = table[3]


@ptx_kernel
def stops(x: Ptr[f32], n: u32):
    with when(n > 5):
        stop(n)
    x[0] = 7


@ptx_kernel
def returns(x: Ptr[f32], n: u32):
    goes_on(n)  # line of the call
    x[0] = 7


@ptx_kernel
def remarks(x: Ptr[f32], n: u32):
    with loop(n) as i:
        ptx.pragma("nounroll")
        x[i] = x[i] + 1


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", [calls_elsewhere, reads_elsewhere, stops, remarks], ids=lambda kernel: kernel.entry)
def test_they_assemble(kernel: Kernel) -> None:
    assert assembles(kernel)


@pytest.mark.emulator(reason="about what the emulator cannot link")
def test_a_function_of_another_module() -> None:
    text = calls_elsewhere.ptx()
    assert ".extern .func (.param .f32 result) elsewhere(\n    .param .f32 a\n);" in text
    assert launched(calls_elsewhere, 3) == [0, 1, 2, 3]
    with pytest.raises(EmulationError, match="the function elsewhere is called but not defined") as caught:
        launched(calls_elsewhere, 9)
    assert "# line of the call" in str(caught.value)


@pytest.mark.emulator(reason="about what the emulator cannot link")
def test_a_variable_of_another_module() -> None:
    assert ".extern .global .align 16 .f32 table[16];" in reads_elsewhere.ptx()
    with pytest.raises(LaunchError) as caught:
        launched(reads_elsewhere)
    assert caught.value.message == (
        "the kernel uses table, which is `.extern`: another module has it, and is not linked"
    )


@pytest.mark.emulator(reason="it makes faults")
def test_a_function_that_never_returns() -> None:
    assert ".noreturn" in stops.ptx()
    assert launched(stops, 3)[0] == 7
    with pytest.raises(TrapError):
        launched(stops, 9)
    with pytest.raises(EmulationError, match="the function goes_on is `.noreturn`, and has returned") as caught:
        launched(returns, 1)
    assert "# line of the call" in str(caught.value)


def test_a_pragma_among_the_instructions() -> None:
    assert re.search(r"\$loop_\d+:\n +\.pragma \"nounroll\";\n", remarks.ptx())
    assert launched(remarks, 3) == [1, 2, 3, 3]


def test_a_linkage_that_is_none() -> None:
    @ptx_kernel
    def k(out: Ptr[u32]):
        global_(u32, 4, linkage="outside")

    with pytest.raises(TraceError) as caught:
        k.configure(1, 1)(np.zeros(4, np.uint32))
    assert caught.value.message == "`global_` has no linkage 'outside'"
    assert caught.value.hint == "there are 'visible', 'weak', 'common', 'extern'"
    with pytest.raises(TraceError) as caught:
        ptx_func(linkage="common")
    assert caught.value.message == "`ptx_func` has no linkage 'common'"


def test_what_a_function_with_a_linkage_cannot_be() -> None:
    def body(a: f32) -> f32:
        return a

    def many(a: f32, *, n: int) -> f32:
        return a

    for options, function, message in (
        ({"linkage": "extern"}, body, "function `body` is another module's, and has a body here"),
        ({"noreturn": True}, body, "function `body` never returns, and is annotated `-> f32`"),
        ({"linkage": "weak"}, many, ("function `many` has one name for other modules, and `n` is a compile-time "
         "constant, with which there may be several of it")),
    ):
        with pytest.raises(TraceError) as caught:
            ptx_func(**options)(function)
        assert caught.value.message == message


def test_the_name_for_other_modules_is_kept() -> None:
    @ptx_kernel
    def k(x: Ptr[f32], seen: u32):
        for _ in range(2):
            seen = global_(f32, 4, linkage="visible")

    with pytest.raises(TraceError) as caught:
        k.ptx()
    assert caught.value.message == (
        "the variable `seen` is called so in other modules, and the kernel has another `seen`"
    )


def test_a_pragma_is_a_text() -> None:
    @ptx_kernel
    def k(x: Ptr[f32]):
        ptx.pragma(4)

    with pytest.raises(PtxTypeError) as caught:
        k.ptx()
    assert caught.value.message == "`ptx.pragma(4)`: a pragma is a text"
    assert caught.value.hint == 'write `ptx.pragma("nounroll")`'

"""Variables of the module that other modules see, and managed ones."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl import Ptr, global_, ptx, ptx_kernel, u32
from ptxdsl.errors import TraceError


@pytest.mark.parametrize("linkage", ["visible", "weak", "common"])
def test_a_variable_with_a_linkage(linkage: str) -> None:
    @ptx_kernel
    def k(out: Ptr[u32], *, linkage: str = "weak"):
        counter = global_(u32, 4, linkage=linkage, managed=True)
        out[ptx.ctaid.x] = ptx.atom.global_.add.u32(counter, 1)

    text = k.ptx(linkage=linkage)
    assert f".{linkage} .global .attribute(.managed) .align 16 .u32 counter[4];" in text
    out = np.zeros(4, np.uint32)
    k.configure(4, 1, backend="emulator")(out, linkage=linkage)
    assert sorted(out.tolist()) == [0, 1, 2, 3]


def test_a_linkage_that_is_none() -> None:
    @ptx_kernel
    def k(out: Ptr[u32]):
        global_(u32, 4, linkage="extern")

    with pytest.raises(TraceError) as caught:
        k.configure(1, 1, backend="emulator")(np.zeros(4, np.uint32))
    assert caught.value.message == "`global_` has no linkage 'extern'"
    assert caught.value.hint == "there are 'visible', 'weak', 'common'"

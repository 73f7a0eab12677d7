"""Elements of arrays by their index, and components of special registers, which only text by hand has."""

from __future__ import annotations

import numpy as np
import ptxdsl
import pytest

TEXT = """
.version 8.6
.target sm_90
.address_size 64
.global .align 8 .{kind} table[5] = {{{values}}};
.shared .{kind} row[2][32];
.func last(.param .b32 index, .param .b64 to, .param .b8 more[])
{{
    .reg .b32 %i; .reg .b64 %p; .reg .{kind} %v;
    ld.param.b32 %i, [index]; ld.param.b64 %p, [to];
    ld.global.{kind} %v, table[%i]; st.global.{kind} [%p], %v;
    ret;
}}
.visible .entry k(.param .u64 x)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .{kind} %v<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.r; mov.u32 %r2, %ntid.a;
    rem.u32 %r3, %r1, 5; cvt.u64.u32 %rd2, %r3;
    ld.global.{kind} %v1, table[%r3];
    mov.u64 %rd3, table[%rd2]; ld.global.{kind} %v2, [%rd3+0];
    mov.u32 %r3, row[%r1]; st.shared.{kind} [%r3+{row}], %v1;
    bar.warp.sync -1;
    ld.shared.{kind} %v3, row[32];
    mad.wide.u32 %rd4, %r1, {bytes}, %rd1;
    st.global.{kind} [%rd4], %v1; st.global.{kind} [%rd4+{row}], %v2;
    st.global.{kind} [%rd4+{twice}], %v3;
    add.u64 %rd5, %rd4, {thrice}; add.u32 %r2, %r2, 4;
    {{ .param .b32 a; .param .b64 b; st.param.b32 [a], %r2; st.param.b64 [b], %rd5; call last, (a, b); }}
    ret;
}}
"""


@pytest.mark.parametrize("kind", ["u32", "u64", "u16"])
def test_elements_of_arrays(kind: str, rng: np.random.Generator) -> None:
    dtype = np.dtype(f"u{int(kind[1:]) // 8}")
    table = rng.integers(0, np.iinfo(dtype).max, 5, dtype)
    row = 32 * dtype.itemsize
    text = TEXT.format(kind=kind, values=", ".join(map(str, table)), bytes=dtype.itemsize, row=row, twice=2 * row,
                       thrice=3 * row)
    x = rng.integers(0, np.iinfo(dtype).max, (4, 32), dtype)
    ptxdsl.load(text)["k"].configure(1, 32, sanitize="all")(x)
    expected = np.resize(table, 32)
    np.testing.assert_array_equal(x, [expected, expected, np.full(32, table[0]), np.full(32, table[4])])

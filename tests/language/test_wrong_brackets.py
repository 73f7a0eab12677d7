"""Objects of ours that are called or indexed and cannot be, told with the user's expression and what to write."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, TensorMap, f32, label, loop, ptx, reg, select, shared, when
from ptxdsl.errors import PtxTypeError
from ptxdsl.language import trace

CASES = [
    ("x[ptx.laneid()] = 0.0", "`ptx.laneid` is a special register, not a function", "`ptx.laneid`, without `()`"),
    ("v = ptx.clock64()", "`ptx.clock64` is a special register, not a function", "`ptx.clock64`, without `()`"),
    ("x[ptx.tid.x()] = 0.0", "`ptx.tid.x` is a special register, not a function", "`ptx.tid.x`, without `()`"),
    ("v = ptx.tid(0)", "`ptx.tid` has components, and is no value itself",
     "write `ptx.tid.x` or `ptx.tid.y` or `ptx.tid.z`"),
    ("ptx('add.u32')", "`ptx` is called, and names the instructions", '`ptx.add.u32(a, b)`, `ptx["add.u32"](a, b)`'),
    ("v = x(0)", "`x`, a run-time pointer to f32, is not called", "`x[0]` is an element, `x.at(0)` its address"),
    ("v = x()", "`x`, a run-time pointer to f32, is not called", "`x[i]` is an element, `x.at(i)` its address"),
    ("a(n, 2)", "`a`, a run-time array of f32, is not called", "`a[n, 2]` is an element, `a.at(n, 2)` its address"),
    ("tile = shared(f32, 4, 4); tile(0, 1)", "`tile`, a run-time array of f32, is not called",
     "`tile[0, 1]` is an element, `tile.at(0, 1)` its address"),
    ("v = n(1)", "`n`, a run-time u32, is not called", "`n`, without `(1)`; a product is `n * (1)`"),
    ("v = reg(f32, 0.0); v()", "`v`, a run-time f32, is not called", "`v`, without `()`"),
    ("v = (n + 1)(n + 2)", "`n + 1`, a run-time value, is not called",
     "`n + 1`, without `(n + 2)`; a product is `(n + 1) * (n + 2)`"),
    ("v = x[0](1.0)", "`x[0]`, a run-time value, is not called",
     "`x[0]`, without `(1.0)`; a product is `x[0] * (1.0)`"),
    ("p = n > 3; w = when(p())", "`p`, a run-time predicate, is not called", "`with when(p):`, `select(p, a, b)`"),
    ("v = x.load(0, width=4); v(1)", "`v`, a Vec, is not called", "`v[1]` is one of its values"),
    ("m(0)", "`m`, a run-time TensorMap, is not called",
     "`ptxdsl.tma.load(tile, m, (row, column), bar)` copies a box of it"),
    ("top = label(); top()", "`top`, a label, is not called", "`top.here()` places it, `ptx.bra(top)` goes there"),
    ("v = Ptr[f32](x)", "`Ptr[f32]` is the type of a parameter, not a conversion",
     "`p.cast(u32)` makes another pointer of one"),
    ("v = a.shape(1)", "`a.shape`, a tuple, is not called", "`a.shape[1]`"),
    ("v = ptxdsl.warp(x[0])", "`ptxdsl.warp` is a module, not a function",
     "it has `ptxdsl.warp.broadcast`, `ptxdsl.warp.lane`, `ptxdsl.warp.reduce`, `ptxdsl.warp.reduce_max`, .."),
    ("tile = shared[f32, 16, 17]", "`shared` is called, not indexed", "`shared(f32, 16, 17)`"),
    ("w = when[n > 3]", "`when` is called, not indexed", "`when(n > 3)`"),
    ("v = loop[16]", "`loop` is called, not indexed", "`loop(16)`"),
    ("v = select[n > 3, n, 3]", "`select` is called, not indexed", "`select(n > 3, n, 3)`"),
    ("v = x.at[n]", "`x.at` is called, not indexed", "`x.at(n)`"),
    ("v = x[0].to[u32]", "`x[0].to` is called, not indexed", "`x[0].to(u32)`"),
    ("v = ptxdsl.warp.reduce_sum[x[0]]", "`ptxdsl.warp.reduce_sum` is called, not indexed",
     "`ptxdsl.warp.reduce_sum(x[0])`"),
    ("v = f32[4]", "f32 is the type of one number, and has no elements",
     "`shared(f32, 4)`, `local(f32, 4)`; a parameter is `x: Ptr[f32]`, `x: Array[f32, 1]`"),
    ("v = f32[4, 8]", "f32 is the type of one number, and has no elements",
     "`shared(f32, 4, 8)`, `local(f32, 4, 8)`; a parameter is `x: Ptr[f32]`, `x: Array[f32, 2]`"),
    ("v = u32[:, :]", "u32 is the type of one number, and has no elements", "`x: Ptr[u32]`, `x: Array[u32, 2]`"),
]


@pytest.mark.parametrize(("line", "message", "hint"), CASES, ids=[case[0] for case in CASES])
def test_messages(line: str, message: str, hint: str, kernel_of) -> None:
    with pytest.raises(PtxTypeError) as caught:
        trace(kernel_of(line))
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert error.loc is not None and error.loc.source == line


@pytest.fixture
def kernel_of(tmp_path):
    """Makes a kernel function of one line, in a file of its own."""

    def made(line: str):
        path = tmp_path / "kernel.py"
        path.write_text(f"def kernel(n: u32, x: Ptr[f32], a: Array[f32, 2], m: TensorMap):\n    {line}\n")
        scope = {**vars(ptxdsl), **globals()}
        exec(compile(path.read_text(), path, "exec"), scope)
        return scope["kernel"]

    return made


def test_in_a_helper(kernel_of) -> None:
    with pytest.raises(PtxTypeError) as caught:
        trace(kernel_of("def helper(i): return x(i + 1)\n    helper(n)"))
    assert caught.value.message == "`x`, a run-time pointer to f32, is not called"
    assert caught.value.hint == "`x[i + 1]` is an element, `x.at(i + 1)` its address"


@pytest.mark.parametrize("line", [
    "v = 3(n)", "v = (1, 2)(n)", "v = [1](0)", "v = np.pi(0)", "v = len[3]", "v = (lambda: 0)[0]",
])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_what_is_not_ours_is_the_users(line: str, kernel_of) -> None:
    with pytest.raises(TypeError) as caught:
        trace(kernel_of(line))
    assert not isinstance(caught.value, PtxTypeError)


def test_annotations_of_numba() -> None:
    with pytest.raises(PtxTypeError) as caught:
        exec(compile("def kernel(x: f32[:, :]): ...", "kernel.py", "exec", dont_inherit=True), {"f32": f32})
    assert caught.value.hint == "`x: Ptr[f32]`, `x: Array[f32, 2]`"
    with pytest.raises(PtxTypeError) as caught:
        @ptxdsl.ptx_kernel
        def kernel(x: f32[:]) -> None: ...
    assert (caught.value.message, caught.value.hint) == (
        "f32 is the type of one number, and has no elements", "`x: Ptr[f32]`, `x: Array[f32, 1]`"
    )


USED = np, TensorMap, label, loop, ptx, reg, select, shared, when, Array

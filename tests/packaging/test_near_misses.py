"""What people write who know numpy, CUDA, Numba or Triton, and misspelt names and options: each error says what is."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np
import pytest

import ptxdsl
from ptxdsl import LaunchError, Ptr, compare, f32, profile, ptx_kernel, tensor_map, u32, use
from ptxdsl.errors import ConfigError, PtxError, PtxTypeError, TraceError
from ptxdsl.types import TYPES, OTHER_NAMES, type_meant

IMPORTS = {
    "where": "numpy's where is `select(p, v, w)`", "bool_": "bool_ is `pred`", "float32": "float32 is `f32`",
    "int": "int is `s32` in a kernel", "i32": "i32 is `s32`", "fp16": "fp16 is `f16`", "half": "half is `f16`",
    "jit": "jit is `@ptx_kernel`", "program_id": "program_id is `ptx.ctaid.x`",
    "cuda": "cuda is `ptx` for instructions and indices, `@ptx_kernel` for the decorator",
    "constexpr": "constexpr is a keyword-only parameter of the kernel: `*, tile: int = 16`",
    "Pointer": "Pointer is `Ptr`: `x: Ptr[f32]`", "SharedMemory": "SharedMemory is `shared(f32, 256)`",
    "__syncthreads": "CUDA's __syncthreads is `ptx.bar.sync(0)`", "if_": "if_ is `with when(p):`",
    "asarray": "numpy's asarray is `ptxdsl.to_device(values)`",
    "reduce_sum": "`from ptxdsl.warp import reduce_sum`", "sigmoid": "`from ptxdsl.math import sigmoid`",
    "Tile": "`from ptxdsl.tiles import Tile`", "range": "`range` is Python's own, and needs no import",
    "select_": "did you mean `select`?", "ptx_kernal": "did you mean `ptx_kernel`?", "qwertz": None,
}


@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from ptxdsl import {name}")
    *_, last = str(caught.value).splitlines()
    assert last == (f"  hint: {IMPORTS[name]}" if IMPORTS[name] else "  at <string>:1")


def test_names_that_nobody_has_imported() -> None:
    @ptx_kernel
    def k(x: Ptr[f32]):
        x[0] = where(x[0] > 0, x[0], 0.0)

    with pytest.raises(PtxError) as caught:
        k.ptx()
    assert caught.value.hint == "numpy's where is `select(p, v, w)`"


def test_types_of_others() -> None:
    assert all(TYPES[kind] is type_meant(name) for name, kind in OTHER_NAMES.items())
    assert type_meant(np.float16) is type_meant(np.dtype("e")) is TYPES["f16"]
    assert type_meant(np.bool_) is type_meant(bool) is TYPES["pred"]
    for none in (None, 3, np.zeros(3, np.float32), "x", object, np.ndarray, list[f32], [], "float32*"):
        assert type_meant(none) is None, none


@pytest.mark.parametrize(("line", "message", "hint"), [
    ("x[0].to(np.int64)", "`.to()` takes a type, not the type <class 'numpy.int64'>", "write `v.to(s64)`"),
    ("x[0].bits(np.int32)", "`.bits()` takes a type, not the type <class 'numpy.int32'>", "write `v.bits(s32)`"),
    ("x[0].to('f64')", "`.to()` takes a type, not the str 'f64'", "write `v.to(f64)`"),
    ("x[0].to(bool)", "`.to()` takes a type, not the type <class 'bool'>", "write `v.to(pred)`"),
    ("x[0].unpack(np.uint16)", "`.unpack()` takes a type, not the type <class 'numpy.uint16'>",
     "write `v.unpack(u16)`"),
    ("x.cast(np.uint8)", "`.cast()` takes a type, not the type <class 'numpy.uint8'>", "`p.cast(u8)`"),
    ("reg(int, 0)", "`reg` takes a type, not the type <class 'int'>", "write `reg(s32, 0)`"),
    ("reg('double')", "`reg` takes a type, not the str 'double'", "write `reg(f64, 0.0)`"),
    ("shared(np.float16, 8, 9)", "`shared` takes a type first, not the type <class 'numpy.float16'>",
     "write `shared(f16, 8, 9)`"),
    ("shared(16, f32)", "`shared` takes a type first, not the int 16", "write `shared(f32, 256)`"),
    ("pack(np.uint64, n, n)", "`pack` takes a type first, not the type <class 'numpy.uint64'>",
     "write `pack(u64, lo, hi)`"),
    ("ptx.shfl.sync.bfly.b32(n, 1, 31, -1)",
     ("operand `membermask` of `shfl.sync.bfly.b32 d, a, b, c, membermask` is a u32: -1 does not fit in u32, which "
      "holds 0 to 4294967295"), "`0xffffffff` has its bits"),
    ("reg(TYPES['s32'], 0xFFFFFFFF)", "4294967295 does not fit in s32, which holds -2147483648 to 2147483647",
     "`-1` has its bits"),
])
def test_types_in_a_kernel(line: str, message: str, hint: str) -> None:
    names = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np, "TYPES": TYPES}
    exec(f"def k(n: u32, x: Ptr[f32]):\n    {line}\n", names)
    with pytest.raises(PtxTypeError) as caught:
        ptx_kernel(names["k"]).ptx()
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(("annotation", "hint"), [
    ("np.int64", "write `x: s64`, `x: Ptr[s64]` or `x: Array[s64, 2]`; a compile-time constant comes after `*`"),
    ("'float'", "write `x: f32`, `x: Ptr[f32]` or `x: Array[f32, 2]`; a compile-time constant comes after `*`"),
    ("np.ndarray", "write `x: u32`, `x: Ptr[f32]` or `x: Array[f32, 2]`; a compile-time constant comes after `*`"),
    ("Ptr[np.uint8]", "write `Ptr[u8]`"), ("Ptr['bf16']", "write `Ptr[bf16]`"), ("Ptr[u64, 2]", "write `Ptr[u64]`"),
    ("Array[np.float64, 2]", "write `Array[f64, 2]`, or `Array[f64, None, 64]` with the extents that are fixed"),
    ("Array[u8]", "write `Array[u8, 2]`, or `Array[u8, None, 64]` with the extents that are fixed"),
])
def test_annotations(annotation: str, hint: str) -> None:
    names = {**{name: getattr(ptxdsl, name) for name in ptxdsl.__all__}, "np": np}
    with pytest.raises(TraceError) as caught:
        exec(compile(f"@ptx_kernel\ndef k(x: {annotation}): pass", "<k>", "exec", dont_inherit=True), names)
    assert caught.value.hint == hint


@ptx_kernel
def kernel(n: u32, x: Ptr[u32]) -> None:
    x[0] = n


A = np.zeros((4, 4), np.float32)
OPTIONS = [
    (lambda: kernel.configure(1, 1, backed="emulator"), "`configure` has no option `backed`",
     "did you mean `backend=`?"),
    (lambda: kernel.configure(1, 1, sanitise="all"), "`configure` has no option `sanitise`",
     "did you mean `sanitize=`?"),
    (lambda: kernel.configure(1), "`configure()` missing 1 required positional argument: 'block'",
     "`configure(grid, block, stream=.., shared=.., cluster=..)`"),
    (lambda: kernel.configure(1, 1, "emulator"), "`configure()` takes 3 positional arguments but 4 were given",
     "`configure(grid, block, stream=.., shared=.., cluster=..)`"),
    (lambda: use("emulator", sanitize="all"), "`use` has no option `sanitize`", "it has `backend`, `nvtx`"),
    (lambda: profile(samples=3), "`profile` has no option `samples`", "it has none"),
    (lambda: tensor_map(A, (4, 4), swizle=128), "`tensor_map` has no option `swizle`", "did you mean `swizzle=`?"),
    (lambda: ptxdsl.Texture(A, filtr="linear"), "`Texture` has no option `filtr`", "did you mean `filter=`?"),
    (lambda: ptxdsl.zeros((4,), f32, devise=0), "`zeros` has no option `devise`", "did you mean `device=`?"),
    (lambda: compare(kernel, kernel, seeds=3), "`compare` has no option `seeds`", "did you mean `seed=`?"),
]


@pytest.mark.parametrize(("call", "message", "hint"), OPTIONS, ids=[option[1] for option in OPTIONS])
def test_options(call, message: str, hint: str) -> None:
    with pytest.raises((LaunchError, ConfigError)) as caught:
        call()
    error = caught.value
    assert (error.message, error.hint, error.loc.file) == (message, hint, __file__)


def test_errors_from_within_stay() -> None:
    with pytest.raises(TypeError) as caught:
        ptxdsl.to_device(np.zeros(3), device="x" + 3)
    assert not isinstance(caught.value, PtxError)

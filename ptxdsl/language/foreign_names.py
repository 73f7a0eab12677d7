"""What CUDA C++, Numba and Triton call things, and how each is written here: for the hints of errors, in one table.

Each spelling can be pasted: ``v`` and ``w`` stand for integers, ``f``, ``g`` and ``h`` for floats, ``p`` for a
predicate, ``x`` for a pointer or an array, ``i`` for an index. Numba's names are CUDA's, without underscores and after
``cuda.``; Triton's stand for whole blocks of numbers where a kernel here is one thread, and count after ``tl.`` only.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from opcode import opmap

from ..errors import Loc, UnknownInstruction, caller, did_you_mean, similar
from ..types import OTHER_NAMES

__all__ = ["CUDA", "NUMBA", "NUMPY", "OTHERS", "TRITON", "hint_of_line", "hint_of_name", "spelling", "unknown_name"]

_THREAD = "`ptx.ctaid.x * ptx.ntid.x + ptx.tid.x`"
_MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "cospi", "erf", "erfc", "exp", "exp10",
    "exp2", "expm1", "ilogb", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "logb", "lrint",
    "lround", "modf", "frexp", "nearbyint", "rsqrt", "signbit", "sin", "sincos", "sinh", "sinpi", "sqrt", "tan", "tanh",
    "tgamma",
)
_MATH_OF_TWO = ("atan2", "copysign", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder", "remquo")
"""Functions of C that `ptxdsl.math` has under the same name; with an ``f`` behind they are C's for floats."""


def _atomic(operation: str, type: str, operands: str = "v") -> str:
    return f"`ptx.atom.global_.{operation}.{type}(x.at(i), {operands})`"


def _shuffle(mode: str, lane: str, clamp: int = 31) -> str:
    return f"`ptx.shfl.sync.{mode}.b32(v, {lane}, {clamp}, 0xFFFFFFFF)`"


CUDA: dict[str, str] = {
    "threadIdx": "`ptx.tid`", "blockIdx": "`ptx.ctaid`", "blockDim": "`ptx.ntid`", "gridDim": "`ptx.nctaid`",
    "warpSize": "`32`", "laneId": "`ptx.laneid`",
    "syncthreads": "`ptx.bar.sync(0)`", "syncthreads_count": "`ptx.bar.red.popc.u32(0, p)`",
    "syncthreads_and": '`ptx["bar.red.and.pred"](0, p)`', "syncthreads_or": '`ptx["bar.red.or.pred"](0, p)`',
    "syncwarp": "`ptx.bar.warp.sync(0xFFFFFFFF)`",
    "threadfence": "`ptx.membar.gl()`", "threadfence_block": "`ptx.membar.cta()`",
    "threadfence_system": "`ptx.membar.sys()`",
    "printf": '`printf("%d\\n", v)`, from ptxdsl', "assert": '`check(p, "message")`',
    "atomicAdd": f"{_atomic('add', 'u32')}, with `.f32` for floats",
    "atomicSub": f"{_atomic('add', 'u32', '0 - v')}", "atomicExch": _atomic("exch", "b32"),
    "atomicMin": f"{_atomic('min', 'u32')}, with `.s32` for signed integers",
    "atomicMax": f"{_atomic('max', 'u32')}, with `.s32` for signed integers",
    "atomicCAS": _atomic("cas", "b32", "v, w"), "atomicAnd": _atomic("and_", "b32"), "atomicOr": _atomic("or_", "b32"),
    "atomicXor": _atomic("xor", "b32"), "atomicInc": _atomic("inc", "u32"), "atomicDec": _atomic("dec", "u32"),
    "shfl": _shuffle("idx", "w"), "shfl_sync": _shuffle("idx", "w"), "shfl_down": _shuffle("down", "16"),
    "shfl_down_sync": _shuffle("down", "16"), "shfl_up": _shuffle("up", "1", 0),
    "shfl_up_sync": _shuffle("up", "1", 0), "shfl_xor": _shuffle("bfly", "16"),
    "shfl_xor_sync": _shuffle("bfly", "16"),
    "ballot": "`ptx.vote.sync.ballot.b32(p, 0xFFFFFFFF)`", "ballot_sync": "`ptx.vote.sync.ballot.b32(p, 0xFFFFFFFF)`",
    "any_sync": "`ptx.vote.sync.any.pred(p, 0xFFFFFFFF)`", "all_sync": "`ptx.vote.sync.all.pred(p, 0xFFFFFFFF)`",
    "match_any_sync": "`ptx.match.any.sync.b32(v, 0xFFFFFFFF)`", "activemask": "`ptx.activemask.b32()`",
    "reduce_add_sync": "`ptx.redux.sync.add.u32(v, 0xFFFFFFFF)`",
    "reduce_max_sync": "`ptx.redux.sync.max.u32(v, 0xFFFFFFFF)`",
    "reduce_min_sync": "`ptx.redux.sync.min.u32(v, 0xFFFFFFFF)`",
    "ldg": "`ptx.ld.global_.nc.f32(x.at(i))`, with the type of the element",
    "ldcg": "`ptx.ld.global_.cg.f32(x.at(i))`", "ldcs": "`ptx.ld.global_.cs.f32(x.at(i))`",
    "stcs": "`ptx.st.global_.cs.f32(x.at(i), f)`",
    "min": "`minimum(v, w)`", "max": "`maximum(v, w)`", "fmin": "`minimum(f, g)`", "fmax": "`maximum(f, g)`",
    "fabs": "`abs(f)`", "fma": "`ptx.fma.rn.f32(f, g, h)`", "fma_rn": "`ptx.fma.rn.f32(f, g, h)`",
    "floor": '`f.to(f32, "rmi")`', "ceil": '`f.to(f32, "rpi")`', "trunc": '`f.to(f32, "rzi")`',
    "rint": '`f.to(f32, "rni")`', "fdividef": "`ptx.div.approx.f32(f, g)`",
    "popc": "`ptx.popc.b32(v)`", "popcll": "`ptx.popc.b64(v.to(u64))`", "clz": "`ptx.clz.b32(v)`",
    "ffs": "`32 - ptx.clz.b32(v & (0 - v))`", "brev": "`ptx.brev.b32(v)`",
    "byte_perm": "`ptx.prmt.b32(v, w, 0x3210)`", "umulhi": "`ptx.mul.hi.u32(v, w)`",
    "mulhi": "`ptx.mul.hi.s32(v.bits(s32), w.bits(s32))`", "dp4a": "`ptx.dp4a.u32.u32(v, w, 0)`",
    "funnelshift_l": "`ptx.shf.l.wrap.b32(v, w, 8)`", "funnelshift_r": "`ptx.shf.r.wrap.b32(v, w, 8)`",
    "int_as_float": "`v.bits(f32)`", "uint_as_float": "`v.bits(f32)`", "float_as_int": "`f.bits(s32)`",
    "float_as_uint": "`f.bits(u32)`", "float2int_rn": '`f.to(s32, "rni")`', "float2int_rz": "`f.to(s32)`",
    "float2int_rd": '`f.to(s32, "rmi")`', "float2int_ru": '`f.to(s32, "rpi")`', "int2float_rn": "`v.to(f32)`",
    "float2half": "`f.to(f16)`", "half2float": "`f.to(f16).to(f32)`", "float2bfloat16": "`f.to(bf16)`",
    **{name: f"`{kind}`" for name, kind in OTHER_NAMES.items() if name not in ("float", "int", "bool", "bool_")},
    "float4": "`x.load(i, width=4)`, `x.store(i, (f, g, h, f))`", "float2": "`x.load(i, width=2)`",
    "make_float4": "`x.store(i, (f, g, h, f))`", "shared__": "`shared(f32, 256)`",
    "constant__": "`const([1, 2, 3], u32)`", "clock": "`ptx.clock`", "clock64": "`ptx.clock64`",
    "nanosleep": "`ptx.nanosleep.u32(100)`", "trap": "`ptx.trap()`", "brkpt": "`ptx.brkpt()`",
    "cvta_generic_to_shared": "`tile.address`, of a shared array",
    "launch_bounds__": "`@ptx_kernel(maxntid=256)`", "cudaMalloc": "`ptxdsl.empty((256,), f32)`",
    "cudaMemcpy": "`ptxdsl.to_device(values)`, and `.numpy()` of what it gives",
    **{name: f"`ptxdsl.math.{name}(f)`" for name in _MATH},
    **{name: f"`ptxdsl.math.{name}(f, g)`" for name in _MATH_OF_TWO},
}
"""By CUDA's name without the underscores before it, and without the ``f`` behind a function of C."""

NUMBA: dict[str, str] = {
    "grid": f"{_THREAD}, for one dimension", "gridsize": "`ptx.nctaid.x * ptx.ntid.x`, for one dimension",
    "shared.array": "`shared(f32, 256)`", "local.array": "`local(f32, 16)`",
    "const.array_like": "`const([1, 2, 3], u32)`",
    "atomic.add": CUDA["atomicAdd"], "atomic.sub": CUDA["atomicSub"], "atomic.max": CUDA["atomicMax"],
    "atomic.min": CUDA["atomicMin"], "atomic.exch": CUDA["atomicExch"], "atomic.compare_and_swap": CUDA["atomicCAS"],
    "atomic.cas": CUDA["atomicCAS"], "atomic.and_": CUDA["atomicAnd"], "atomic.or_": CUDA["atomicOr"],
    "atomic.xor": CUDA["atomicXor"], "atomic.inc": CUDA["atomicInc"], "atomic.dec": CUDA["atomicDec"],
    "laneid": "`ptx.laneid`", "warpsize": "`32`", "selp": "`select(p, v, w)`",
    "jit": "`@ptx_kernel`", "to_device": "`ptxdsl.to_device(values)`", "device_array": "`ptxdsl.empty((256,), f32)`",
}
"""After ``cuda.``, beside CUDA's."""

TRITON: dict[str, str] = {
    "program_id": "`ptx.ctaid.x`", "num_programs": "`ptx.nctaid.x`", "arange": "`ptx.tid.x`: one thread, one number",
    "load": "`x[i]`, in `with when(i < n):` for the mask", "store": "`x[i] = f`, in `with when(i < n):` for the mask",
    "where": "`select(p, v, w)`", "maximum": "`maximum(v, w)`", "minimum": "`minimum(v, w)`",
    "max": "`ptxdsl.warp.reduce_max(f)`", "min": "`ptxdsl.warp.reduce_min(f)`", "sum": "`ptxdsl.warp.reduce_sum(f)`",
    "zeros": "`reg(f32, 0.0)`", "full": "`reg(f32, 1.0)`", "cdiv": "`cdiv(v, 256)`", "range": "`with loop(v) as i:`",
    "static_range": "Python's `range`", "device_print": '`printf("%d\\n", v)`', "debug_barrier": "`ptx.bar.sync(0)`",
    "device_assert": '`check(p, "message")`',
    "constexpr": "a keyword-only parameter of the kernel: `*, tile: int = 16`",
    "atomic_add": CUDA["atomicAdd"], "atomic_max": CUDA["atomicMax"], "atomic_min": CUDA["atomicMin"],
    "atomic_cas": CUDA["atomicCAS"], "atomic_xchg": CUDA["atomicExch"], "exp": CUDA["exp"], "log": CUDA["log"],
    "sqrt": CUDA["sqrt"], "sin": CUDA["sin"], "cos": CUDA["cos"], "abs": "`abs(f)`", "fma": CUDA["fma"],
    "dot": "`ptx.mma`, which multiplies fragments of matrices",
}
"""After ``tl.``."""

NUMPY: dict[str, str] = {
    "where": TRITON["where"], "full": "`ptxdsl.to_device(np.full(256, 1, np.float32))`",
    "float_": "`f64`", "int_": "`s64`", "array": "`ptxdsl.to_device(values)`",
    "asarray": "`ptxdsl.to_device(values)`", "empty_like": "`ptxdsl.empty(x.shape, f32)`",
    "zeros_like": "`ptxdsl.zeros(x.shape, f32)`", "ones": "`ptxdsl.to_device(np.ones(256, np.float32))`",
    "arange": TRITON["arange"],
}
"""numpy's, of which a kernel has its own, or the host."""

OTHERS: dict[str, str] = {
    **dict.fromkeys(("pointer", "ptr", "pointer_type"), "`Ptr`: `x: Ptr[f32]`"),
    **dict.fromkeys(("shared_memory", "sharedmemory", "shared_array", "smem", "tile_shared"), "`shared(f32, 256)`"),
    **dict.fromkeys(("local_memory", "local_array"), "`local(f32, 16)`"),
    **dict.fromkeys(("jit", "cuda_jit"), "`@ptx_kernel`"),
    "cuda": "`ptx` for instructions and indices, `@ptx_kernel` for the decorator",
    "program_id": TRITON["program_id"], "num_programs": TRITON["num_programs"], "constexpr": TRITON["constexpr"],
    "static_range": TRITON["static_range"], "atomic": f"an instruction: {CUDA['atomicAdd']}",
    "atomic_add": CUDA["atomicAdd"], "atomic_max": CUDA["atomicMax"], "atomic_min": CUDA["atomicMin"],
    "atomic_cas": CUDA["atomicCAS"], "atomic_xchg": CUDA["atomicExch"],
    "if_": "`with when(p):`", "else_": "`with otherwise():`", "elif_": "`with otherwise():`, and `with when(p):` in it",
    "while_": "`with loop():`, left by `break_if(p)`", "for_": "`with loop(n) as i:`", "prange": "`with loop(n) as i:`",
    "unroll": "`with loop(n, unroll=4) as i:`; a Python `for` unrolls all", "f8": "`e4m3` or `e5m2`",
    "warp_reduce": "`ptxdsl.warp.reduce_sum(f)`", "block_reduce": "`ptxdsl.block.reduce_sum(f, threads)`",
    "vec": "`x.load(i, width=4)`", "vector": "`x.load(i, width=4)`", "assert_": CUDA["assert"],
    "inline_asm": '`ptx["add.u32"](v, w)`', "asm": '`ptx["add.u32"](v, w)`', "do_bench": "`ptxdsl.bench`",
    "benchmark": "`ptxdsl.bench`", "compile": "`kernel.ptx()`, `kernel.cubin()`", "sanitizer": (
        '`kernel.configure(grid, block, sanitize="all")`'
    ), "set_backend": '`use("emulator")`', "use_backend": '`use("emulator")`',
    "tensordescriptor": "`tensor_map(array, box)`, a parameter `x: TensorMap`",
}
"""By the name in small letters: what people write who know other languages for kernels."""

_LINE = re.compile(r"\b(?:triton\.language|[A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*")


def spelling(name: str) -> str | None:
    """How what CUDA calls ``name`` is written, for a hint; None for what is no name of CUDA's.

    >>> spelling("__syncthreads"), spelling("rsqrtf"), spelling("foo")
    ('`ptx.bar.sync(0)`', '`ptxdsl.math.rsqrt(f)`', None)
    """
    plain = name.lstrip("_")
    fast = name.startswith("__") and plain in ("expf", "logf", "log2f", "powf", "sinf", "cosf", "tanhf")
    if fast:
        return f"`ptxdsl.math.{plain[:-1]}_approx(f{', g' if plain == 'powf' else ''})`"
    found = CUDA.get(plain)
    if found is None and plain.endswith("f"):
        found = CUDA.get(plain[:-1])
    return found


def hint_of_line(line: str, name: str | None = None) -> str | None:
    """The hint for the first name of CUDA's, Numba's or Triton's in a line of source; only of ``name`` if it is given.

    >>> hint_of_line("i = cuda.grid(1)")
    'cuda.grid is `ptx.ctaid.x * ptx.ntid.x + ptx.tid.x`, for one dimension'
    """
    for found in _LINE.finditer(line):
        words = found[0].removeprefix("triton.language").lstrip(".").split(".")
        if found[0].startswith("triton.language"):
            words = ["tl", *words]
        if name is not None and words[0] != name and found[0].split(".")[0] != name:
            continue
        hint = _dotted(words) if len(words) > 1 else None
        if hint is None and name is not None and words[0] == name:
            hint = hint_of_name(name)
        if hint is not None:
            return hint
    return None


def hint_of_name(name: str) -> str | None:
    """The hint for a name alone."""
    written = spelling(name)
    if written is not None:
        return f"CUDA's {name} is {written}"
    if name in NUMPY:
        return f"numpy's {name} is {NUMPY[name]}"
    written = OTHERS.get(name.lower())
    return None if written is None else f"{name} is {written}"


def _dotted(words: list[str]) -> str | None:
    owner, rest = words[0], words[1:]
    if owner not in ("cuda", "tl"):
        return None
    for count in range(len(rest), 0, -1):
        name = ".".join(rest[:count])
        written = TRITON.get(name) if owner == "tl" else NUMBA.get(name) or (spelling(name) if count == 1 else None)
        if written is not None:
            return f"{owner}.{name} is {written}"
    return None


def _hint_of_import(name: str, known: Iterable[str]) -> str | None:
    if name in OTHER_NAMES:
        return f"{name} is `{OTHER_NAMES[name]}`" + (" in a kernel" if hasattr(builtins, name) else "")
    home = next((each for each in _MODULES if name in import_module(f"ptxdsl.{each}").__all__), None)
    if home is not None:
        return f"`from ptxdsl.{home} import {name}`"
    own = f"`{name}` is Python's own, and needs no import" if hasattr(builtins, name) else None
    return hint_of_name(name) or own or did_you_mean(similar(name, known, 2, 0.7), "`{}`")


_MODULES = ("warp", "block", "math", "tiles", "mma", "cluster", "mbarrier")
"""Whose functions are asked of the package itself."""


def unknown_name(name: str, known: Iterable[str]) -> Exception:
    """The error for a name that the package does not have; an ImportError where it is imported by ``from``.

    Python replaces an AttributeError there by one without the hint.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_name == "_handle_fromlist":  # Python asks whether it is a module to be loaded
        return AttributeError(name)
    hint = _hint_of_import(name, known)
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        loc = Loc(frame.f_code.co_filename, frame.f_lineno)
        said = f"cannot import name {name!r} from 'ptxdsl'\n  at {loc}" + (f"\n  hint: {hint}" if hint else "")
        return ImportError(said, name="ptxdsl")
    return UnknownInstruction(f"module 'ptxdsl' has no attribute {name!r}", loc=caller(), hint=hint)

"""The scalar types of PTX, its state spaces, and what a Python number becomes in each type.

A type is a class, so that ``def kernel(n: u32, x: Ptr[f32])`` means the same to Python, to ptxdsl and to a type
checker; its facts (size, kind, numpy equivalent) are attributes of the class. There are no instances.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from .errors import PtxTypeError, caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

__all__ = [
    "SPACES", "TYPES", "ScalarType", "b8", "b16", "b32", "b64", "b128", "bf16", "bf16x2", "compatible", "dtype_of",
    "e2m1", "e2m1p4x4", "e2m1x2", "e2m1x4", "e2m3", "e2m3x2", "e2m3x4", "e3m2", "e3m2x2", "e3m2x4", "e4m3", "e4m3x2",
    "e4m3x4", "e5m2", "e5m2x2", "e5m2x4", "encode", "f16", "f16x2", "f32", "f32x2", "f64", "pred", "s2f6x2", "s8",
    "s8x4", "s16", "s16x2", "s32", "s64", "samplerref", "surfref", "texref", "tf32", "type_named", "u8", "u8x4", "u16",
    "u16x2", "u32", "u64", "ue5m3x2", "ue8m0", "ue8m0x2", "ue8m0x4",
]

SPACES = ("global", "shared", "local", "const", "param", "generic")
"""The state spaces a pointer can point to; ``shared`` also stands for ``shared::cta``."""

TYPES: dict[str, ScalarType] = {}
"""Every scalar type by its PTX name, without the dot."""


class ScalarType(type):
    """The class of ``u32``, ``f32`` and the other scalar types.

    >>> f32.bits, f32.kind, str(f32), u16.bytes
    (32, 'f', 'f32', 2)
    """

    bits: int
    kind: str
    """``u`` unsigned, ``s`` signed, ``f`` floating point, ``b`` untyped bits, ``p`` predicate, ``o`` opaque."""
    register: ScalarType
    """The type such a value has in ``.reg`` declarations, and in mov, ld, st and selp: bf16, for one, is a ``.b16``."""
    bytes: int
    """Size in memory."""
    is_float: bool
    is_integer: bool
    is_signed: bool
    lanes: int
    """How many numbers are packed in one: 2 for f16x2, 1 for most."""
    numpy_name: str | None
    bounds: tuple[int, int]
    """The least and the greatest integer, of types that are no floats; untyped bits may be signed or not."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *,
        bits: int = 0, kind: str = "", register: ScalarType | None = None, lanes: int = 1, numpy: str | None = None,
    ) -> ScalarType:
        self = super().__new__(mcls, name, bases, namespace)
        self.bits, self.kind, self.lanes, self.numpy_name = bits, kind, lanes, numpy
        self.register = register if register is not None else self
        self.bytes = max(1, bits // 8)
        self.is_float, self.is_integer, self.is_signed = kind == "f", kind in ("u", "s"), kind == "s"
        if bits:
            self.bounds = (0 if kind == "u" else -(1 << (bits - 1)), (1 << (bits - (kind == "s"))) - 1)
            TYPES[name] = self
        return self

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_facts: Any) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *_values: object) -> Any:
        raise PtxTypeError(
            f"{cls} is a type, not a conversion",
            hint=f"write `v.to({cls})` to convert a value, `reg({cls}, 0)` for a register",
        )

    def __getitem__(cls, index: object) -> Any:
        several = isinstance(index, slice) or (isinstance(index, tuple) and all(isinstance(i, slice) for i in index))
        parameter = f"`x: Ptr[{cls}]`, `x: Array[{cls}, {len(index) if isinstance(index, tuple) else 1}]`"
        given = ", ".join(map(str, index)) if isinstance(index, tuple) else index
        raise PtxTypeError(
            f"{cls} is the type of one number, and has no elements", loc=caller(),
            hint=parameter if several else f"`shared({cls}, {given})`, `local({cls}, {given})`; a parameter is {parameter}",
        )

    def __str__(cls) -> str:
        return cls.__name__

    def __repr__(cls) -> str:
        return cls.__name__


if TYPE_CHECKING:
    class KernelOperand(metaclass=ScalarType):  # noqa: PLW1641
        """What a type checker may assume of a value at run time: the operators exist, ptxdsl checks their types.

        To a type checker every scalar type is this class (``ptxdsl/__init__.py``), since it cannot know what a kernel's
        names hold: `v = v.to(f32)` gives a name another type, and what ``ptx.ld.global_.v2.f32`` returns depends on
        its modifiers. So a helper's ``i: u32`` takes any value, and nothing returns Any where a type was promised.
        """

        shape: tuple[KernelOperand, ...]
        def __add__(self, other: Any) -> Self: ...
        def __radd__(self, other: Any) -> Self: ...
        def __sub__(self, other: Any) -> Self: ...
        def __rsub__(self, other: Any) -> Self: ...
        def __mul__(self, other: Any) -> Self: ...
        def __rmul__(self, other: Any) -> Self: ...
        def __truediv__(self, other: Any) -> Self: ...
        def __rtruediv__(self, other: Any) -> Self: ...
        def __floordiv__(self, other: Any) -> Self: ...
        def __rfloordiv__(self, other: Any) -> Self: ...
        def __mod__(self, other: Any) -> Self: ...
        def __rmod__(self, other: Any) -> Self: ...
        def __lshift__(self, other: Any) -> Self: ...
        def __rlshift__(self, other: Any) -> Self: ...
        def __rshift__(self, other: Any) -> Self: ...
        def __rrshift__(self, other: Any) -> Self: ...
        def __and__(self, other: Any) -> Self: ...
        def __rand__(self, other: Any) -> Self: ...
        def __or__(self, other: Any) -> Self: ...
        def __ror__(self, other: Any) -> Self: ...
        def __xor__(self, other: Any) -> Self: ...
        def __rxor__(self, other: Any) -> Self: ...
        def __neg__(self) -> Self: ...
        def __pos__(self) -> Self: ...
        def __abs__(self) -> Self: ...
        def __invert__(self) -> Self: ...
        def __lt__(self, other: Any) -> KernelOperand: ...
        def __le__(self, other: Any) -> KernelOperand: ...
        def __gt__(self, other: Any) -> KernelOperand: ...
        def __ge__(self, other: Any) -> KernelOperand: ...
        def __eq__(self, other: Any) -> KernelOperand: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> KernelOperand: ...  # type: ignore[override]
        def __getitem__(self, index: Any) -> KernelOperand: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __index__(self) -> int: ...
        def __getattr__(self, name: str) -> Any: ...
        def to(self, type: ScalarType, *modifiers: str) -> KernelOperand: ...
        def bits(self, type: ScalarType) -> KernelOperand: ...
        def unpack(self, type: ScalarType) -> tuple[KernelOperand, ...]: ...
        def set(self, value: Any) -> None: ...
        def copy(self) -> Self: ...
else:
    class KernelOperand:
        """What the scalar types and ``Ptr`` have in common for a type checker."""


# fmt: off
class pred(KernelOperand, metaclass=ScalarType, bits=1, kind="p", numpy="bool"): "A predicate."
class b8(KernelOperand, metaclass=ScalarType, bits=8, kind="b", numpy="uint8"): "8 untyped bits."
class b16(KernelOperand, metaclass=ScalarType, bits=16, kind="b", numpy="uint16"): "16 untyped bits."
class b32(KernelOperand, metaclass=ScalarType, bits=32, kind="b", numpy="uint32"): "32 untyped bits."
class b64(KernelOperand, metaclass=ScalarType, bits=64, kind="b", numpy="uint64"): "64 untyped bits."
class b128(KernelOperand, metaclass=ScalarType, bits=128, kind="b"): "128 untyped bits."
class u8(KernelOperand, metaclass=ScalarType, bits=8, kind="u", numpy="uint8"): "Unsigned 8-bit integer."
class u16(KernelOperand, metaclass=ScalarType, bits=16, kind="u", numpy="uint16"): "Unsigned 16-bit integer."
class u32(KernelOperand, metaclass=ScalarType, bits=32, kind="u", numpy="uint32"): "Unsigned 32-bit integer."
class u64(KernelOperand, metaclass=ScalarType, bits=64, kind="u", numpy="uint64"): "Unsigned 64-bit integer."
class s8(KernelOperand, metaclass=ScalarType, bits=8, kind="s", numpy="int8"): "Signed 8-bit integer."
class s16(KernelOperand, metaclass=ScalarType, bits=16, kind="s", numpy="int16"): "Signed 16-bit integer."
class s32(KernelOperand, metaclass=ScalarType, bits=32, kind="s", numpy="int32"): "Signed 32-bit integer."
class s64(KernelOperand, metaclass=ScalarType, bits=64, kind="s", numpy="int64"): "Signed 64-bit integer."
class f16(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, numpy="float16"): "IEEE half precision."
class bf16(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, numpy="bfloat16"): "The upper half of a float32."
class tf32(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32): "f32 with a 10-bit mantissa, for tensor cores."
class f32(KernelOperand, metaclass=ScalarType, bits=32, kind="f", numpy="float32"): "IEEE single precision."
class f64(KernelOperand, metaclass=ScalarType, bits=64, kind="f", numpy="float64"): "IEEE double precision."
class e4m3(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8, numpy="float8_e4m3fn"): "8-bit float, 4 exponent bits."
class e5m2(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8, numpy="float8_e5m2"): "8-bit float, 5 exponent bits."
class e3m2(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8): "6-bit float, 3 exponent bits."
class e2m3(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8): "6-bit float, 2 exponent bits."
class e2m1(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8): "4-bit float, 2 exponent bits."
class ue8m0(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8): "8-bit power of two."
class f16x2(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=2): "Two f16 in 32 bits, the first in the low half."
class bf16x2(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=2): "Two bf16 in 32 bits."
class f32x2(KernelOperand, metaclass=ScalarType, bits=64, kind="f", register=b64, lanes=2): "Two f32 in 64 bits."
class u16x2(KernelOperand, metaclass=ScalarType, bits=32, kind="u", register=b32, lanes=2): "Two u16 in 32 bits."
class s16x2(KernelOperand, metaclass=ScalarType, bits=32, kind="s", register=b32, lanes=2): "Two s16 in 32 bits."
class u8x4(KernelOperand, metaclass=ScalarType, bits=32, kind="u", register=b32, lanes=4): "Four u8 in 32 bits."
class s8x4(KernelOperand, metaclass=ScalarType, bits=32, kind="s", register=b32, lanes=4): "Four s8 in 32 bits."
class e4m3x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two e4m3 in 16 bits."
class e5m2x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two e5m2 in 16 bits."
class e3m2x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two e3m2 in 16 bits, one a byte."
class e2m3x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two e2m3 in 16 bits, one a byte."
class e2m1x2(KernelOperand, metaclass=ScalarType, bits=8, kind="f", register=b8, lanes=2): "Two e2m1 in 8 bits."
class ue8m0x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two ue8m0 in 16 bits."
class ue5m3x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two ue5m3 in 16 bits."
class s2f6x2(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=2): "Two fixed-point numbers of 2 and 6 bits."
class e4m3x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four e4m3 in 32 bits."
class e5m2x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four e5m2 in 32 bits."
class e3m2x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four e3m2 in 32 bits, one a byte."
class e2m3x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four e2m3 in 32 bits, one a byte."
class e2m1x4(KernelOperand, metaclass=ScalarType, bits=16, kind="f", register=b16, lanes=4): "Four e2m1 in 16 bits."
class e2m1p4x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four e2m1 in 32 bits, one a byte."
class ue8m0x4(KernelOperand, metaclass=ScalarType, bits=32, kind="f", register=b32, lanes=4): "Four ue8m0 in 32 bits."
class texref(KernelOperand, metaclass=ScalarType, bits=64, kind="o"): "A texture, opaque."
class samplerref(KernelOperand, metaclass=ScalarType, bits=64, kind="o"): "A sampler, opaque."
class surfref(KernelOperand, metaclass=ScalarType, bits=64, kind="o"): "A surface, opaque."
# fmt: on


def type_named(name: str) -> ScalarType | None:
    """The scalar type called ``name`` in PTX (``"f32"``), or None."""
    return TYPES.get(name)


OTHER_NAMES = {
    "half": "f16", "float16": "f16", "bfloat16": "bf16", "float": "f32", "single": "f32", "float32": "f32",
    "double": "f64", "float64": "f64", "int": "s32", "unsigned": "u32", "long": "s64", "char": "s8", "short": "s16",
    "bool": "pred", "bool_": "pred", "int1": "pred", "size_t": "u64", "half2": "f16x2", "nv_bfloat16": "bf16",
    "nv_bfloat162": "bf16x2", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2", "float8e4nv": "e4m3", "float8e5": "e5m2",
    **{f"{long}{bits}{end}": f"{short}{bits}" for long, short in (("int", "s"), ("uint", "u"))
       for bits in (8, 16, 32, 64) for end in ("", "_t")},
    **{f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)}, **{f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)},
}
"""What numpy, C, Numba and Triton call the scalar types."""


def type_meant(value: object) -> ScalarType | None:
    """The scalar type that something else stands for: ``np.float32``, ``"int32"``, ``float``, ``torch.bfloat16``.

    >>> type_meant("float32"), type_meant(int), type_meant("f32*")
    (f32, s32, None)
    """
    if isinstance(value, (str, type)) or type(value).__name__ in ("dtype", "Stub") or hasattr(value, "itemsize"):
        name = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value)
        name = name.rpartition(".")[2].strip()
        known = TYPES.get(OTHER_NAMES.get(name, name))
        return known or next((kind for kind in TYPES.values() if kind.numpy_name == name and kind.kind != "b"), None)
    return None


def dtype_of(kind: ScalarType) -> Any:
    """The numpy dtype of a type; bf16 and the 8-bit floats come from ml_dtypes.

    Raises PtxTypeError for a type that numpy has no equivalent of.
    """
    import numpy as np

    if kind.numpy_name is None:
        raise PtxTypeError(f"numpy has no equivalent of {kind}")
    if kind.numpy_name.startswith(("bfloat", "float8")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, kind.numpy_name))
    return np.dtype(kind.numpy_name)


def compatible(wanted: ScalarType, register: ScalarType) -> bool:
    """Whether an instruction operand of type ``wanted`` takes a register declared ``register``.

    The rule of the PTX manual (Operand Size and Type Checking): sizes agree; untyped bits agree with everything of
    their size, signed with unsigned, floats only with the same float; packed ones only with untyped bits.
    """
    a, b = wanted.register, register.register
    if a is not wanted and (wanted.kind == "f" or wanted.lanes > 1):  # which registers of its own it does not have
        return register is wanted or (b.kind == "b" and a.bits == b.bits)
    if a.bits != b.bits or (a.kind == "p") != (b.kind == "p"):
        return False
    return a is b or a.kind == "b" or b.kind == "b" or (a.kind in "us" and b.kind in "us")


def encode(value: object, kind: ScalarType) -> int:
    """The bits of a Python number in type ``kind``, as an unsigned int.

    A float is rounded to nearest even. An int means itself, so a type that cannot hold it exactly does not take it.
    Raises PtxTypeError where the value does not fit or is no number of the kind.

    >>> hex(encode(1.0, f32)), encode(-1, s32), encode(True, pred)
    ('0x3f800000', 4294967295, 1)
    """
    if kind.kind == "p":
        if isinstance(value, bool):
            return int(value)
        raise PtxTypeError(f"{value!r} is no predicate", hint="write True or False")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PtxTypeError(f"{value!r} is no number of type {kind}")
    if kind.kind == "f":
        return _encode_float(value, kind)
    if isinstance(value, float):
        raise PtxTypeError(f"the float {value!r} is no {kind}", hint=f"write `{int(value) if math.isfinite(value) else 0}`")
    low, high = kind.bounds
    if not low <= value <= high:
        raise PtxTypeError(f"{value} does not fit in {kind}, which holds {low} to {high}", hint=_range_hint(value, kind))
    return value & ((1 << kind.bits) - 1)


def _range_hint(value: int, kind: ScalarType) -> str | None:
    """The number with the bits that an integer out of range may be meant for."""
    if not -(1 << (kind.bits - 1)) <= value < 1 << kind.bits:
        return None
    return f"`{value - (1 << kind.bits) if value > 0 else hex(value + (1 << kind.bits))}` has its bits"


def holder_of(value: float, kind: ScalarType) -> ScalarType | None:
    """The smallest type, of the size of ``kind`` or larger and like it if possible, that holds a number."""
    if kind.is_float:
        wider = (name for name, most in _GREATEST.items() if TYPES[name].bits > kind.bits and abs(value) <= most)
        return TYPES.get(next(wider, ""))
    kinds = (TYPES[f"{sign}{bits}"] for bits in (8, 16, 32, 64) if bits >= kind.bits for sign in (kind.kind, "s", "u"))
    return next((to for to in kinds if to.bounds[0] <= value <= to.bounds[1]), None) if kind.is_integer else None


_GREATEST = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


_PACKED: dict[ScalarType, str] = {f16: "<e", f32: "<f", tf32: "<f", f64: "<d"}


def _encode_float(value: float, kind: ScalarType) -> int:
    if kind.lanes != 1:
        raise PtxTypeError(f"a packed {kind} takes no Python number", hint=f"pack the parts: `pack({kind}, lo, hi)`")
    packed = _PACKED.get(kind)
    try:
        if packed is not None:
            data = struct.pack(packed, float(value))
            rounded = struct.unpack(packed, data)[0]
        else:
            data, rounded = _narrowed(float(value), kind)
    except OverflowError:
        raise PtxTypeError(f"{value!r} does not fit in {kind}", hint="`float('inf')` is the infinity") from None
    if isinstance(value, int) and rounded != value:
        raise PtxTypeError(
            f"{kind} cannot hold the int {value} exactly; the nearest is {int(rounded)}",
            hint=f"`float({value})` to have it rounded",
        )
    return int.from_bytes(data, "little")


def _narrowed(value: float, kind: ScalarType) -> tuple[bytes, float]:
    """A bf16 or 8-bit float, and its value; those without a numpy equivalent are written as f32."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(value, np.float64).astype(dtype_of(kind if kind.numpy_name else f32))
    rounded = float(array.astype(np.float64))
    if math.isfinite(value) and not math.isfinite(rounded):
        raise OverflowError
    return array.tobytes(), rounded

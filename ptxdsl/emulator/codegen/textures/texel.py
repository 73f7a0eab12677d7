"""From memory to a texel: every format, as four numbers of 32 bits.

Channels that a format does not have are 0, the fourth is 1, as OpenCL has it. Integers read as numbers from 0 or -1 to
1 are divided in f32; f16 is widened.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...machine.texture_pool import Header
from ..handler import i32, pointer
from .unit import Unit, floats, words

__all__ = ["texel"]

_TEXEL = ir.FunctionType(words, [pointer, pointer])
_ONE = 0x3F800000


def texel(module: ir.Module, name: str) -> ir.Function:
    """The function (header, address) that reads a texel."""
    unit = _Texel(module, f"{name}.texel", _TEXEL)
    unit.function.linkage = "internal"
    return unit.function


class _Texel(Unit):
    def __init__(self, module: ir.Module, name: str, kind: ir.FunctionType) -> None:
        super().__init__(module, name, kind)
        self.texture, self.source = self.function.args
        self.mode = self.field(self.texture, Header.READ)
        self.by_format(self.texture, lambda dtype, channels: self.ir.ret(self._read(dtype, channels)))

    def _read(self, dtype: str, channels: int) -> Any:
        bits = int(dtype[-2:].strip("t"))
        lanes = ir.VectorType(ir.IntType(bits), channels)
        raw = self.ir.load(self.ir.bitcast(self.source, lanes.as_pointer()), align=bits // 8)
        if dtype == "float16":
            half = self.ir.bitcast(raw, ir.VectorType(ir.HalfType(), channels))
            wide = self.ir.fpext(half, ir.VectorType(ir.FloatType(), channels))
            raw = self.ir.bitcast(wide, ir.VectorType(i32, channels))
        elif bits < 32:
            raw = (self.ir.sext if dtype[0] == "i" else self.ir.zext)(raw, ir.VectorType(i32, channels))
        if bits == 32 or dtype == "float16":
            return self._completed(raw, channels, i32(_ONE if dtype[0] == "f" else 1))
        largest = (1 << bits - (dtype[0] == "i")) - 1
        plain = self.mode.eq(0)
        last = plain.pick(1, self.b.bits(32, largest)).value
        value = self._completed(raw, channels, last)
        result = self.either(plain, lambda: value, lambda: self._divided(value, dtype[0] == "i", largest))
        if dtype != "uint8":
            return result
        return self.either(self.mode.eq(2), lambda: self._linear(value, result), lambda: result)

    def _completed(self, raw: Any, channels: int, last: Any) -> Any:
        """Four channels."""
        if channels == 4:
            return raw
        order = [min(channel, channels) for channel in range(4)]
        value = self.ir.shuffle_vector(raw, ir.Constant(raw.type, [0] * channels), ir.Constant(words, order))
        return self.ir.insert_element(value, last, i32(3))

    def _divided(self, value: Any, signed: bool, largest: int) -> Any:
        real = (self.ir.sitofp if signed else self.ir.uitofp)(value, floats)
        real = self.ir.fdiv(real, ir.Constant(floats, [float(largest)] * 4))
        if signed:  # the lowest number is a little below -1
            low = ir.Constant(floats, [-1.0] * 4)
            real = self.ir.select(self.ir.fcmp_ordered("<", real, low), low, real)
        return self.ir.bitcast(real, words)

    def _linear(self, value: Any, divided: Any) -> Any:
        """The first three channels by the curve of sRGB, the fourth as it is."""
        curve = self.load(self.texture, Header.CURVE, pointer, 8)
        for channel in range(3):
            number = self.ir.extract_element(value, i32(channel))
            light = self.load(curve, self.b.wrap(self.ir.shl(number, i32(2))), i32, 4)
            divided = self.ir.insert_element(divided, light, i32(channel))
        return divided

"""Changes of tensor maps in memory, expanded to the loads and stores of their words, as the assembler expands them.

Beside its own bits, an address replaces the bit of large tensors by 0, and the modes of swizzling that of rows of 96
bytes. All lanes of a warp copy a map together, a word each; the fence behind it is a release.
"""

from __future__ import annotations

from ...ir import Address, Immediate, Register, SpecialRegister
from ...isa.tensor_maps import ELEMENTS, FIELDS, MAP_BYTES, Field
from ..machine.unsupported import unsupported
from .builder import Expander

__all__ = ["TensorMaps"]

_NUMBERED = {element.number: element for element in ELEMENTS.values()}


class TensorMaps(Expander):
    """Expands them."""

    def replace(self) -> None:
        form = self.form
        name = form.tokens[2]
        address, value = self.operands[0], self.operands[-1]
        assert isinstance(address, Address)
        index = self.operands[1] if len(self.operands) == 3 else None
        number = index.bits if isinstance(index, Immediate) else 0
        self.space = "".join(f".{token}" for token in form.tokens if token in ("global", "shared::cta"))
        if name in ("global_address", "global_stride"):
            self._wide(name, number, address, self._register(value, "b64"))
        elif isinstance(value, Immediate) and len(self.operands) == 2:
            self._numbered(name, value.bits, address)
        else:
            self._word(name, number, address, self._register(value, "b32"))

    def _register(self, value: object, kind: str) -> Register:
        """The value in a register of the pass, so that the arithmetic may change it."""
        held = self.register(f"%tensormap.{kind}", kind)
        self.move(held, value)  # type: ignore[arg-type]
        return held

    def _refuse(self) -> None:
        raise unsupported(self.statement, f"`{self.form.mnemonic}` of these values")

    def _field(self, name: str, number: int) -> Field:
        if number >= len(FIELDS[name]):
            self._refuse()
        return FIELDS[name][number]

    def _insert(self, field: Field, address: Address, value: Register) -> None:
        """Put the low bits of a value into a field; one of 32 bits is a word."""
        place = address._replace(offset=address.offset + field.offset // 32 * 4)
        if field.bits < 32:
            word = self.register("%tensormap.word", "b32")
            self.guarded(f"ld{self.space}.b32", word, place)
            self.emit("bfi.b32", word, value, word, field.offset % 32, field.bits)
            value = word
        self.guarded(f"st{self.space}.b32", place, value)

    def _put(self, name: str, address: Address, number: int) -> None:
        value = self.register("%tensormap.value", "b32")
        self.emit("mov.b32", value, number)
        self._insert(self._field(name, 0), address, value)

    def _word(self, name: str, number: int, address: Address, value: Register) -> None:
        field = self._field(name, number)
        if field.bias and name != "rank":  # of the rank the instruction takes what the field holds
            self.emit("sub.u32", value, value, field.bias)
        self._insert(field, address, value)

    def _wide(self, name: str, number: int, address: Address, value: Register) -> None:
        if name == "global_address":
            self.guarded(f"st{self.space}.b64", address, value)
            self._put("large", address, 0)
            return
        part = self.register("%tensormap.part", "b32")
        for each, shift in ((name, 4), (f"{name}_high", 36)):
            shifted = self.register("%tensormap.shifted", "b64")
            self.emit("shr.u64", shifted, value, shift)
            self.emit("cvt.u32.u64", part, shifted)
            self._insert(self._field(each, number), address, part)

    def _numbered(self, name: str, number: int, address: Address) -> None:
        if name == "elemtype":
            element = _NUMBERED[number]
            if element.tf32:
                self._put("tf32", address, 1)
            number = element.code
        elif name == "swizzle_mode":
            wide = number >> self._field(name, 0).bits
            self._put("swizzle_96", address, wide)
            number *= not wide
        self._put(name, address, number)

    def copy(self) -> None:
        """tensormap.cp_fenceproxy."""
        dest, source = self.operands[:2]
        assert isinstance(dest, Address)
        assert isinstance(source, Address)
        lane, word = self.register("%tensormap.lane", "u32"), self.register("%tensormap.word", "b32")
        self.emit("mov.u32", lane, SpecialRegister("%laneid"))
        self.emit("shl.b32", lane, lane, (MAP_BYTES // 32).bit_length() - 1)
        to, of = self._moved(dest, lane, "to"), self._moved(source, lane, "of")
        self.guarded("ld.shared::cta.b32", word, of)
        self.guarded("st.global.b32", to, word)
        scope = next(token for token in self.form.tokens if token in ("cta", "cluster", "gpu", "sys"))
        self.guarded(f"fence.acq_rel.{scope}")

    def _moved(self, address: Address, lane: Register, name: str) -> Address:
        """An address with the lane's word added."""
        base = address.base
        bits = base.type.bits if isinstance(base, Register) else 64
        moved = self.register(f"%tensormap.{name}{bits}", f"u{bits}")
        offset = lane
        if bits == 64:
            offset = self.register("%tensormap.lane64", "u64")
            self.emit("cvt.u64.u32", offset, lane)
        self.move(moved, base)
        self.emit(f"add.u{bits}", moved, moved, offset)
        return address._replace(base=moved)

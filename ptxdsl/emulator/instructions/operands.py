"""How an operand becomes fields of a micro-op: its class, and where its value lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir import Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from ..analysis.divergence import UNIFORM, VARYING, Facts, LaneOffsets, Shape3, special_offsets, tid_offsets
from ..machine.allocation import HostAddress
from ..machine.layout import LANES, Block, Warp
from ..machine.unsupported import unsupported
from ..analysis.registers import RegisterFile
from .operand_classes import (
    ABSENT, NEGATED, PREDICATE, SINK, OperandClass, affine, block_field, immediate, per_lane, uniform,
)

__all__ = ["NOTHING", "ConstantPool", "Field", "Operands", "PoolAddress", "raw"]


class Field(NamedTuple):
    """Part of a micro-op: the class of an operand, and the values that its code reads, in order."""

    kind: OperandClass
    codes: str = ""
    values: tuple[Any, ...] = ()


def raw(codes: str, *values: int) -> Field:
    """Values that are no operand."""
    return Field(ABSENT, codes, values)


NOTHING = Field(ABSENT)
_SINK = Field(SINK)


class PoolAddress(HostAddress):
    """Where constants of a pool lie, with what lies there."""

    content: bytes

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], start: int, nbytes: int) -> PoolAddress:
        made = cls(array.ctypes.data + start)
        made.content = array[start : start + nbytes].tobytes()
        return made


class ConstantPool:
    """The lane offsets of a kernel, each vector once, and tables of numbers, in memory that does not move."""

    def __init__(self) -> None:
        self._places: dict[tuple[tuple[int, ...], int], PoolAddress] = {}
        self._arrays: list[Any] = []

    def address(self, vector: tuple[int, ...], bits: int) -> int:
        """Address of the vector as 32 integers of ``bits`` bits, aligned to 64 bytes."""
        key = (vector, bits)
        place = self._places.get(key)
        if place is None:
            size = LANES * bits // 8
            array = np.zeros(size + 64, np.uint8)
            start = -array.ctypes.data % 64
            mask = (1 << bits) - 1
            array[start : start + size] = np.frombuffer(
                b"".join((x & mask).to_bytes(bits // 8, "little") for x in vector), np.uint8
            )
            self._arrays.append(array)
            place = self._places[key] = PoolAddress.of(array, start, size)
        return place

    def table(self, numbers: list[int]) -> int:
        """Address of the numbers as integers of 32 bits."""
        array = np.array(numbers, np.int32).view(np.uint8)
        self._arrays.append(array)
        return PoolAddress.of(array, 0, array.nbytes)


_BLOCK_FIELDS = {
    "%ctaid.x": Block.CTAID, "%ctaid.y": Block.CTAID + 4, "%ctaid.z": Block.CTAID + 8,
    "%nctaid.x": Block.NCTAID, "%nctaid.y": Block.NCTAID + 4, "%nctaid.z": Block.NCTAID + 8,
    "%clusterid.x": Block.CTAID, "%clusterid.y": Block.CTAID + 4, "%clusterid.z": Block.CTAID + 8,
    "%nclusterid.x": Block.NCTAID, "%nclusterid.y": Block.NCTAID + 4, "%nclusterid.z": Block.NCTAID + 8,
    "%dynamic_smem_size": Block.DYNAMIC, "%total_smem_size": Block.TOTAL_SHARED,
    "%envreg1": Block.WORKSPACE + 4, "%envreg2": Block.WORKSPACE, "%aggr_smem_size": Block.TOTAL_SHARED,
    "%smid": Block.SMID,
}
_CLUSTER_FIELDS = {
    "%clusterid.x": Block.CLUSTERID, "%clusterid.y": Block.CLUSTERID + 4, "%clusterid.z": Block.CLUSTERID + 8,
    "%nclusterid.x": Block.NCLUSTERID, "%nclusterid.y": Block.NCLUSTERID + 4, "%nclusterid.z": Block.NCLUSTERID + 8,
    "%cluster_ctaid.x": Block.CLUSTER_CTAID, "%cluster_ctaid.y": Block.CLUSTER_CTAID + 4,
    "%cluster_ctaid.z": Block.CLUSTER_CTAID + 8, "%cluster_ctarank": Block.RANK,
}
"""Where these are in a launch in clusters; in another one a cluster is a block."""
_NUMBERS = {
    "%nsmid": 1, "%gridid": 1, "%cluster_ctarank": 0, "%cluster_nctarank": 1, "%is_explicit_cluster": 0,
    "%cluster_ctaid.x": 0, "%cluster_ctaid.y": 0, "%cluster_ctaid.z": 0, "%cluster_nctaid.x": 1,
    "%cluster_nctaid.y": 1, "%cluster_nctaid.z": 1, "%current_graph_exec": 0, "%reserved_smem_offset_begin": 0,
    "%reserved_smem_offset_end": 0x400, "%reserved_smem_offset_cap": 0x400, "%reserved_smem_offset_0": 0,
    "%reserved_smem_offset_1": 0, "%perctamemorysize": 0, "%perctamemoryoffset": 0,
}


class Operands:
    """Describes operands for the micro-ops of one kernel, launched with one shape of block."""

    def __init__(
        self, facts: Facts, registers: RegisterFile, block: Shape3, pool: ConstantPool, symbols: dict[str, int]
    ) -> None:
        self.facts, self.registers, self.block, self.pool, self.symbols = facts, registers, block, pool, symbols
        self.cluster: Shape3 | None = None
        self.explicit = False
        self.sources: dict[str, Field] = {}
        self.scalars: dict[str, Field] = {}
        self.destinations: dict[str, Field] = {}
        """The registers that were described so far: read, read for their uniform part, written."""
        self._numbers: dict[tuple[int, int], Field] = {}
        self._there: dict[tuple[OperandClass, int], Field] = {}

    def lane_offsets(self, operand: Operand) -> LaneOffsets:
        """The lane offsets of an operand."""
        if isinstance(operand, Register):
            return self.facts.offsets.get(operand.name, UNIFORM)
        if isinstance(operand, SpecialRegister):
            return special_offsets(operand.special, self.block)
        if isinstance(operand, Not):
            return self.lane_offsets(operand.predicate)
        return UNIFORM

    def guard(self, statement: Any) -> Field:
        """The guard of a statement."""
        guard = statement.guard
        if guard is None:
            return NOTHING
        register = guard.predicate if isinstance(guard, Not) else guard
        return Field(NEGATED if isinstance(guard, Not) else PREDICATE, "i", (self.registers.offsets[register.name],))

    def destination(self, operand: Operand) -> Field:
        """A register that is written, or a sink."""
        if not isinstance(operand, Register):
            return _SINK
        found = self.destinations.get(operand.name)
        if found is None:
            found = self.destinations[operand.name] = self._destination(operand)
        return found

    def _destination(self, operand: Register) -> Field:
        made = per_lane if self.facts.offsets.get(operand.name, VARYING) is VARYING else uniform
        bits = 0 if operand.type.kind == "p" else operand.type.bits
        return self._at(made(bits), self.registers.offsets[operand.name])

    def _at(self, kind: OperandClass, offset: int) -> Field:
        """A number that lies in the warp; registers share places."""
        found = self._there.get((kind, offset))
        if found is None:
            found = self._there[kind, offset] = Field(kind, "i", (offset,))
        return found

    def source(self, operand: Operand, bits: int, scalar: bool, statement: Instruction | None = None) -> Field:
        """A value that is read; ``scalar`` where only the uniform part is computed. ``bits`` sizes a number."""
        if isinstance(operand, Register):
            return self.register(operand, scalar)
        if isinstance(operand, Not):
            return Field(NEGATED, "i", (self.registers.offsets[operand.predicate.name],))
        if isinstance(operand, Immediate):
            return self.number(operand.bits, bits)
        if isinstance(operand, Symbol):
            return self.number(self.symbol(operand, statement), bits)
        if isinstance(operand, SpecialRegister):
            return self.special(operand.special, scalar, bits, statement)
        raise unsupported(statement, f"operand {operand!r}")

    def number(self, value: int, bits: int) -> Field:
        found = self._numbers.get((value, bits))
        if found is None:
            low = (value & (1 << 64) - 1 ^ 1 << 63) - (1 << 63)
            wide = (value & (1 << 64) - 1, value >> 64)
            found = Field(immediate(bits), "qq", wide) if bits == 128 else Field(immediate(bits), "q", (low,))
            self._numbers[value, bits] = found
        return found

    def symbol(self, operand: Symbol, statement: Instruction | None) -> int:
        address = self.symbols.get(operand.symbol)
        if address is None:
            raise unsupported(statement, f"the address of {operand.symbol}")
        return address + operand.offset

    def register(self, operand: Register, scalar: bool) -> Field:
        """A register that is read."""
        made = self.scalars if scalar else self.sources
        found = made.get(operand.name)
        if found is None:
            found = made[operand.name] = self._describe(operand, scalar)
        return found

    def _describe(self, operand: Register, scalar: bool) -> Field:
        offset, bits = self.registers.offsets[operand.name], operand.type.bits
        if operand.type.kind == "p":
            return self._at(PREDICATE, offset)
        known = self.facts.offsets.get(operand.name, UNIFORM)
        if known is None:
            return self._at(per_lane(bits), offset)
        if scalar or known is UNIFORM:
            return self._at(uniform(bits), offset)
        return Field(affine(bits), "iq", (offset, self.pool.address(known, bits)))

    def special(self, name: str, scalar: bool, bits: int, statement: Instruction | None) -> Field:
        """A special register where it lies: in the warp, in the block, or a number that the launch fixes."""
        if name.startswith("%tid."):
            axis = "xyz".index(name[-1])
            known = tid_offsets(self.block)[axis]
            if known is None:
                return Field(per_lane(32), "i", (Warp.TIDS + 4 * LANES * axis,))
            return self._based(Warp.TID + 4 * axis, known, scalar)
        if name == "%laneid" or name.startswith("%lanemask_"):
            known = special_offsets(name, self.block)
            assert known is not None
            return self._based(Warp.ZERO, known, scalar)
        if name == "%warpid":
            return Field(uniform(32), "i", (Warp.INDEX,))
        if self.cluster is not None and name in _CLUSTER_FIELDS:
            return Field(block_field(32), "i", (_CLUSTER_FIELDS[name],))
        if self.cluster is not None and name in ("%is_explicit_cluster", "%cluster_nctarank"):
            x, y, z = self.cluster
            return self.number(x * y * z if name.endswith("rank") else int(self.explicit), bits)
        if self.cluster is not None and name.startswith("%cluster_nctaid."):
            return self.number(self.cluster["xyz".index(name[-1])], bits)
        if name in _BLOCK_FIELDS:
            return Field(block_field(32), "i", (_BLOCK_FIELDS[name],))
        if name.startswith("%ntid."):
            return self.number(self.block["xyz".index(name[-1])], 32)
        if name == "%nwarpid":
            x, y, z = self.block
            return self.number(-(-x * y * z // LANES), 32)
        if name in _NUMBERS or name.startswith(("%envreg", "%pm")):
            return self.number(_NUMBERS.get(name, 0), bits)
        raise unsupported(statement, f"the special register {name}")

    def _based(self, offset: int, known: tuple[int, ...], scalar: bool) -> Field:
        if scalar or known is UNIFORM:
            return Field(uniform(32), "i", (offset,))
        return Field(affine(32), "iq", (offset, self.pool.address(known, 32)))

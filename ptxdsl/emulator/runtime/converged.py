"""One instruction, run over lanes of a warp that came to it at different places.

It is lowered as a kernel of that instruction alone, with a register for each operand: what each lane has is gathered
into these registers, in a warp beside those of the block, and the same compiled micro-ops run as everywhere else.
"""

from __future__ import annotations

import ctypes
import struct
from functools import partial
from weakref import WeakKeyDictionary

from ...ir import Function, Immediate, Instruction, Operand, Register
from ...isa import Form, lookup
from ...types import TYPES
from ..codegen.code import Code
from ..codegen.translation import translate
from ..instructions.undefined import UndefinedNumbers
from ..machine.allocation import allocate, number_at
from ..machine.layout import NEVER, Block, Warp
from ..machine.status import Fault, Status
from .block_state import BlockState, compiled, scheduler
from .register_access import read_register, write_register
from .undefined import follows, mask_of, put_mask, take_origins

__all__ = ["Converged", "operands_of"]


def operands_of(statement: Instruction, written: bool) -> list[Operand]:
    """The operands that a statement writes, or those that it reads."""
    return [value for spec, value in zip(statement.form.operands, statement.operands) if spec.written == written]


class Converged:
    """A run of an instruction like ``statement`` by ``lanes`` of a warp."""

    waits = False
    """Whether the warp waits at a barrier; ``resume`` is then the micro-op behind it."""
    resume = 0

    def __init__(self, state: BlockState, warp: int, statement: Instruction, lanes: int) -> None:
        self.state, self.number, self.lanes = state, warp, lanes
        self.code, registers = _alone(state.code, statement)
        self.reads, self.writes = operands_of(registers, False), operands_of(registers, True)
        self.memory, self.warp, self._view = allocate(self.code.stride)
        ctypes.memmove(self.warp, state.warps + warp * state.stride, Warp.REGISTERS)
        struct.pack_into("<I", self._view, Warp.ACTIVE, lanes)
        struct.pack_into("<i", self._view, Warp.PARKED, NEVER)

    def take(self, lanes: list[int], columns: list[list[int]]) -> None:
        """What these lanes have in the operands that are read."""
        for operand, column in zip(self.reads, columns):
            self._write(operand, {lane: column[lane] for lane in lanes})

    def _write(self, operand: Operand, values: dict[int, int]) -> None:
        assert isinstance(operand, Register)
        write_register(self.code, self.warp, operand.name, values)

    def take_undefined(self, lanes: int, operands: list[Operand]) -> None:
        """In which of these lanes the operands that are read are undefined."""
        state = self.state
        for operand, mine in zip(operands, self.reads):
            if isinstance(operand, Register) and isinstance(mine, Register) and follows(state.code):
                mask = mask_of(state.code, state.warps + self.number * state.stride, operand.name)
                put_mask(self.code, self.warp, mine.name, lanes, mask)

    def give_undefined(self, lanes: int, operands: list[Operand], place: int) -> None:
        """Say of the operands that a statement writes in which of these lanes they are undefined."""
        state = self.state
        if not follows(state.code):
            return
        warp = state.warps + self.number * state.stride
        take_origins(state.code, warp, self.code, self.warp, lanes, place)
        for operand, mine in zip(operands, self.writes):
            if isinstance(operand, Register) and isinstance(mine, Register):
                put_mask(state.code, warp, operand.name, lanes, mask_of(self.code, self.warp, mine.name))

    def results(self) -> list[list[int]]:
        """The operands that are written, in each lane."""
        return [read_register(self.code, self.warp, o.name) for o in self.writes if isinstance(o, Register)]

    def execute(self, pc: int = 0) -> int | None:
        """Run from a micro-op on, from the first if that is 0; the kind of the fault, if there is one."""
        state, pc = self.state, pc or self.code.pc_of(len(self.reads))
        runnable, schedule = state.get(Block.RUNNABLE, "I"), state.get(Block.SCHEDULE, "Q")
        state.put(Block.STATUS, "i", Status.RUNNING)
        state.put(Block.RUNNABLE, "I", 0)  # a warp that waits would go on with the next one
        state.put(Block.SCHEDULE, "Q", scheduler("schedule"))
        handler = number_at(pc)
        compiled(handler)(pc, self.warp, state.address)
        self.waits = state.get(Block.STATUS, "i") == Status.RUNNING
        woken = state.get(Block.RUNNABLE, "I")
        state.put(Block.RUNNABLE, "I", runnable & ~(1 << self.number) if self.waits else runnable | woken)
        state.put(Block.SCHEDULE, "Q", schedule)
        if self.waits:
            self.resume = struct.unpack_from("<Q", self._view, Warp.PC)[0]
            state.put_warp(self.number, Warp.BARRIER, "i", struct.unpack_from("<i", self._view, Warp.BARRIER)[0])
            return None
        kind: int = state.get(Block.FAULT_KIND, "i")
        return None if kind == Fault.TRAP else kind


_made: WeakKeyDictionary[Code, dict[Form, tuple[Code, Instruction]]] = WeakKeyDictionary()


def _alone(code: Code, statement: Instruction) -> tuple[Code, Instruction]:
    """The code of an instruction alone, which ends with a trap, and the instruction with its registers."""
    forms = _made.setdefault(code, {})
    found = forms.get(statement.form)
    if found is None:
        assert code.source is not None
        _, spaces, block, _ = code.source
        operands = tuple(
            Register(f"%c{number}", operand.type if isinstance(operand, (Register, Immediate)) else spec.type or _WORD)
            for number, (spec, operand) in enumerate(zip(statement.form.operands, statement.operands))
        )
        instruction = Instruction(statement.form, operands)
        read = [operand for operand in operands_of(instruction, False) if isinstance(operand, Register)]
        writes = [Instruction(lookup(f"mov.{each.type}")[0], (each, each)) for each in read]  # what is written varies
        body = [*writes, instruction, Instruction(lookup("trap")[0], ())]
        instrument = partial(UndefinedNumbers, inner=None, everything=True) if follows(code) else None
        made = translate(Function("converged", body=[*body]), spaces, block, True, instrument)
        found = forms[statement.form] = made, instruction
    return found


_WORD = TYPES["u32"]

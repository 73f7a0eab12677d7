"""An observer of one thread: Python is called before each of its statements, and reads its registers.

A breakpoint micro-op before each statement returns to Python for this lane alone. The registers of a warp lie in memory
between micro-ops, so they can be read there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import LaunchError, caller, with_article
from ...ir import Address, Call, Function, Instruction, Not, Operand, Register, Vector
from ...types import ScalarType
from ..instructions.instrumentation import Breakpoint
from ..instructions.lowering import Lowering
from ..instructions.operands import raw
from ..runtime.block_state import BlockState, LaunchState
from ..machine.layout import LANES, Block
from ..program import load
from ..runtime.launch import run
from .observer import Observer, probed
from .variable_names import Names

__all__ = ["ObservedThread", "formatted", "index_of", "number", "typed_registers", "within"]


def number(bits: int, kind: ScalarType) -> int | float | bool:
    """The number that bits encode in a type; packed and small formats stay bits."""
    if kind.kind == "p":
        return bool(bits)
    if kind.kind == "s" and bits >> (kind.bits - 1):
        return bits - (1 << kind.bits)
    codes = {"f16": "e", "f32": "f", "f64": "d"}
    if str(kind) in codes:
        return float(struct.unpack("<" + codes[str(kind)], bits.to_bytes(kind.bits // 8, "little"))[0])
    if str(kind) in ("bf16", "tf32"):
        return float(struct.unpack("<f", (bits << (32 - kind.bits)).to_bytes(4, "little"))[0])
    return bits


def formatted(value: Any) -> str:
    """A number as text: f32 in nine digits, which are enough to tell it from its neighbours, addresses in hex."""
    if isinstance(value, float):
        return f"{value:.9g}"
    return hex(value) if value >= 1 << 32 else str(value)


def typed_registers(statement: Instruction | Call, written: bool) -> Iterable[tuple[str, ScalarType]]:
    """The registers that a statement reads or writes, each with the operand's type."""
    if isinstance(statement, Call):
        for operand in statement.results if written else statement.arguments:
            if isinstance(operand, Register):
                yield operand.name, operand.type
        return
    if statement.guard is not None and not written:
        guard = statement.guard.predicate if isinstance(statement.guard, Not) else statement.guard
        yield guard.name, guard.type
    for spec, operand in zip(statement.form.operands, statement.operands):
        if (spec.role != "r" if written else spec.role != "w") or spec.kind == "address":
            yield from _of_operand(operand, spec.type, written)


def _of_operand(operand: Operand, kind: ScalarType | None, written: bool) -> Iterable[tuple[str, ScalarType]]:
    if isinstance(operand, Register):
        fits = kind is not None and kind.bits == operand.type.bits and kind.kind != "b"
        yield operand.name, kind if fits and kind is not None else operand.type
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _of_operand(item, kind, written)
    elif isinstance(operand, Not) and not written:
        yield operand.predicate.name, operand.predicate.type
    elif isinstance(operand, Address) and isinstance(operand.base, Register) and not written:
        yield operand.base.name, operand.base.type


class ObservedThread(Observer, ABC):
    """Observes one thread of the first launch: ``block`` and ``thread`` are indices in x, y and z."""

    what = "a debugger"

    def __init__(self, block: Any, thread: Any) -> None:
        super().__init__()
        self.block, self.thread = index_of("block", block), index_of("thread", thread)
        self.names: Names | None = None
        self._python: tuple[Any, Mapping[str, Any]] | None = None
        self._launched = False
        self._last: tuple[Instruction | Call, dict[str, Any]] | None = None
        self.written: set[str] = set()
        self._types: dict[str, ScalarType] = {}

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        if self._launched:
            raise LaunchError("a debugger observes one launch, and this is the second", loc=caller())
        self._launched = True
        if hasattr(kernel, "function"):
            self._python = kernel, constants

    def run(self, launch: LaunchState) -> None:
        """Run a launch, with a breakpoint before each statement of the thread."""
        super().run(launch)
        config = launch.config
        gx, gy, _ = within("block", self.block, config.grid, "grid")
        bx, by, _ = within("thread", self.thread, config.block, "block")
        (x, y, z), (i, j, k) = self.block, self.thread
        flat = i + bx * (j + by * k)
        self._warp, self._lane = flat // LANES, flat % LANES
        mask = 1 << self._lane
        place = (x + gx * (y + gy * z), self._warp, mask - (mask >> 31 << 32))
        self._field = raw("qii", *place)
        function = launch.spaces.function
        if self._python is not None:
            kernel, constants = self._python
            made = kernel.compiled(constants)
            parsed = load(made.text, made.module if made.foreign else None).module.function(kernel.entry)
            self.names = Names.of(kernel, constants, parsed)
        self.registers = {register.name: register for register in function.registers}
        self.begin(function)
        launch.tool = self
        code = probed(launch.spaces, config.block, self)
        run(launch, code, lambda _: code)

    def before(self, low: Lowering, statement: Instruction | Call) -> None:  # noqa: ARG002
        low.emit(Breakpoint(), self._field)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Nothing runs after a statement."""

    def callback(self, state: BlockState) -> None:
        """The thread is about to execute a statement."""
        place = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        statement = state.code.graph.statements[place]
        if self._last is not None:
            last, values = self._last
            if last is statement and isinstance(last, Instruction) and last.form.effects.collective:
                return  # a lane that waited there for others comes to the instruction again
            self._last = None
            values.update(self.values(state, last, True))
            self.written.update(name for name, _ in typed_registers(last, True))
        self._last = statement, self.values(state, statement, False)
        self.at(state, statement, self._last[1])

    def value(self, state: BlockState, register: str, kind: ScalarType) -> int | float | bool:
        """The number that the thread has in a register."""
        return number(state.register(self._warp, register)[self._lane], kind)

    def values(self, state: BlockState, statement: Instruction | Call, written: bool) -> dict[str, int | float | bool]:
        """The registers that a statement reads or writes."""
        names = self.names.of_register if self.names is not None else {}
        found: dict[str, int | float | bool] = {}
        for register, kind in typed_registers(statement, written):
            if register in state.code.registers.offsets:
                kind = self.type_of(register, kind)
                name = names.get(register, register)
                found[register if name in found else name] = self.value(state, register, kind)
        return found

    def type_of(self, register: str, kind: ScalarType) -> ScalarType:
        """The type of the number in a register: where an instruction takes it as bits, that of an earlier one."""
        if kind.kind == "b":
            return self._types.get(register, kind)
        self._types[register] = kind
        return kind

    def begin(self, function: Function) -> None:
        """The launch of a function begins."""

    @abstractmethod
    def at(self, state: BlockState, statement: Instruction | Call, values: dict[str, Any]) -> None:
        """Before a statement; ``values`` get what it writes when it is done."""


def index_of(what: str, value: Any) -> tuple[int, int, int]:
    """The index of a block or a thread that was given. Raises LaunchError where it is none."""
    given = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(given) <= 3 or not all(type(n) is int and n >= 0 for n in given):
        raise LaunchError(
            f"{what} is the index of one, an int or a tuple of 1 to 3 ints, not {value!r}", loc=caller(),
            hint=f"`{what}=(3, 0, 0)`",
        )
    x, y, z = (*given, 0, 0)[:3]
    return x, y, z


def within(what: str, index: tuple[int, int, int], size: tuple[int, int, int], whole: str) -> tuple[int, int, int]:
    """The extents of a grid or a block. Raises LaunchError where the index is outside."""
    if any(n >= extent for n, extent in zip(index, size)):
        raise LaunchError(f"there is no {what} {index} in {with_article(whole)} of {size}", loc=caller())
    return size

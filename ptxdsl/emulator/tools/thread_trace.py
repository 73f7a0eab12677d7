"""One thread of a launch, instruction by instruction.

A warp's registers lie in memory between instructions, so looking at them is only a matter of stopping there: a record
before each statement returns to Python for the one lane that is watched, and for nobody else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ...errors import EmulationError, LaunchError, Loc, caller
from ...ir import Address, Call, Function, Instruction, Not, Operand, Register, Vector
from ...types import ScalarType
from ..instructions.instrumentation import Breakpoint
from ..instructions.lowering import Lowering
from ..instructions.operands import raw
from ..machine.block_state import LaunchState, State
from ..machine.layout import LANES, Block
from ..machine.unsupported import render
from ..program import load
from ..runtime.launch import run
from .observer import Observer, converges, probed
from .variable_names import Names

__all__ = ["Step", "Thread", "ThreadTrace", "shown", "trace_thread"]

class Step(NamedTuple):
    """An instruction that a thread executed: its Python line, its text, and its operands' values.

    Sources have the number that was read, results the one that was written; a register that holds a Python variable
    goes by the variable's name.
    """

    loc: Loc | None
    text: str
    registers: dict[str, int | float | bool]


def number(bits: int, kind: ScalarType) -> int | float | bool:
    """The number that some bits are in a type; packed and small formats stay bits."""
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


def shown(value: Any) -> str:
    """A number for people: f32 in the nine digits that tell it from its neighbours, addresses as such."""
    if isinstance(value, float):
        return f"{value:.9g}"
    return hex(value) if value >= 1 << 32 else str(value)


def typed_registers(statement: Instruction | Call, written: bool) -> Iterable[tuple[str, ScalarType]]:
    """The registers that a statement reads or writes, each with the type in which it does."""
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


class Thread(Observer):
    """Watches one thread of the first launch: ``block`` and ``thread`` are indices in x, y and z."""

    what = "a debugger"

    def __init__(self, block: Any, thread: Any) -> None:
        super().__init__()
        self.block, self.thread = _index("block", block), _index("thread", thread)
        self.names: Names | None = None
        self._python: tuple[Any, Mapping[str, Any]] | None = None
        self._launched = False
        self._last: tuple[Instruction | Call, dict[str, Any]] | None = None
        self.written: set[str] = set()
        self._types: dict[str, ScalarType] = {}

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        if self._launched:
            raise LaunchError("a debugger watches one launch, and this is the second", loc=caller())
        self._launched = True
        if hasattr(kernel, "function"):
            self._python = kernel, constants

    def run(self, launch: LaunchState) -> None:
        """Run a launch, and stop before each statement of the thread."""
        super().run(launch)
        config = launch.config
        gx, gy, _ = _within("block", self.block, config.grid, "grid")
        bx, by, _ = _within("thread", self.thread, config.block, "block")
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
        run(launch, lambda _: code)

    def before(self, low: Lowering, statement: Instruction | Call) -> None:  # noqa: ARG002
        low.emit(Breakpoint(), self._field)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Nothing runs after a statement."""

    def callback(self, state: State) -> None:
        """The thread is about to execute a statement."""
        place = state.code.statement_at(state.get(Block.FAULT_RECORD, "Q"))
        statement = state.code.graph.statements[place]
        if self._last is not None:
            last, values = self._last
            if last is statement and isinstance(last, Instruction) and converges(last.form):
                return  # lanes that wait for others at an instruction come to it again
            self._last = None
            values.update(self.values(state, last, True))
            self.written.update(name for name, _ in typed_registers(last, True))
        self._last = statement, self.values(state, statement, False)
        self.at(state, statement, self._last[1])

    def value(self, state: State, register: str, kind: ScalarType) -> int | float | bool:
        """The number that the thread has in a register."""
        return number(state.register(self._warp, register)[self._lane], kind)

    def values(self, state: State, statement: Instruction | Call, written: bool) -> dict[str, int | float | bool]:
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
        """The type of the number in a register: where an instruction takes it for bits, that of one before."""
        if kind.kind == "b":
            return self._types.get(register, kind)
        self._types[register] = kind
        return kind

    def begin(self, function: Function) -> None:
        """The launch begins."""

    def at(self, state: State, statement: Instruction | Call, values: dict[str, Any]) -> None:
        """Before a statement; ``values`` get what it writes when it is done."""
        raise NotImplementedError


def _index(what: str, value: Any) -> tuple[int, int, int]:
    given = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(given) <= 3 or not all(type(n) is int and n >= 0 for n in given):
        raise LaunchError(
            f"{what} is the index of one, an int or a tuple of 1 to 3 ints, not {value!r}", loc=caller(),
            hint=f"`{what}=(3, 0, 0)`",
        )
    x, y, z = (*given, 0, 0)[:3]
    return x, y, z


def _within(what: str, index: tuple[int, int, int], size: tuple[int, int, int], whole: str) -> tuple[int, int, int]:
    if any(n >= extent for n, extent in zip(index, size)):
        raise LaunchError(f"there is no {what} {index} in a {whole} of {size}", loc=caller())
    return size


# ---------------------------------------------------------------------------------------------------------------------
# A list


class ThreadTrace(list[Step]):
    """The steps of a thread, in order; printed, a table.

    ``error`` is what went wrong in the launch, None where nothing did.
    """

    error: EmulationError | None = None

    def __str__(self) -> str:
        from .profile_table import place

        places = [place(step.loc) if step.loc else "" for step in self]
        width = max([len(text) for text in places] or [0])
        wide = max([len(step.text) for step in self] or [0])
        lines = []
        for n, (step, where) in enumerate(zip(self, places)):
            where = where if not n or step.loc != self[n - 1].loc else ""
            values = ", ".join(f"{name} = {shown(value)}" for name, value in step.registers.items())
            lines.append(f"{where:{width}}  {step.text:{wide}}  {values}".rstrip())
        if self.error is not None:
            lines.append(f"{type(self.error).__name__}: {self.error}")
        return "\n".join(lines)


class _Tracer(Thread):
    what = "ptxdsl.trace_thread()"

    def __init__(self, block: Any, thread: Any) -> None:
        super().__init__(block, thread)
        self.steps = ThreadTrace()

    def at(self, state: State, statement: Instruction | Call, values: dict[str, Any]) -> None:  # noqa: ARG002
        self.steps.append(Step(statement.loc, render(statement), values))


def trace_thread(
    launch: Callable[..., object], *args: object, block: Any = 0, thread: Any = 0, **named: object
) -> ThreadTrace:
    """What one thread does: calls ``launch(*args, **named)``, which launches one kernel on the emulator.

    ``block`` and ``thread`` are the indices to watch, an int or a tuple of up to three. Where the kernel fails, the
    trace ends with the failing instruction and ``error`` holds the EmulationError. Raises LaunchError for a thread
    that is not there and for a launch on a GPU.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, trace_thread, use
    >>> @ptx_kernel
    ... def double(x: Ptr[f32]):
    ...     i = ptx.tid.x
    ...     v = x[i]
    ...     x[i] = v + v
    >>> x = np.arange(4, dtype=np.float32)
    >>> with use("emulator"):
    ...     steps = trace_thread(double[1, 4], x, thread=3)
    >>> steps[-2].text, steps[-2].registers
    ('st.global.f32 [%rd1], %f1', {...: 6.0})
    """
    tracer = _Tracer(block, thread)
    with tracer:
        try:
            launch(*args, **named)
        except EmulationError as error:
            tracer.steps.error = error
    return tracer.steps

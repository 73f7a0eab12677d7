"""The functions of the CUDA system that kernels call: vprintf, __assertfail, malloc and free."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

from ...errors import EmulationError, Loc, MemoryFault, TrapError
from ...ir import Call, Register, Symbol
from ..machine.layout import LOCAL_START, LOCAL_WINDOW, SHARED_START, SHARED_WINDOW, Block
from ..rewrite.alloca import EXHAUSTED, STACK_BYTES
from ..rewrite.definedness import UNWRITTEN
from ..rewrite.index_checks import OUTSIDE
from ..rewrite.inline import RETURNED
from .block_state import BlockState
from .faults import Scene, block_of, set_bits, thread_of

__all__ = ["answer"]


class SystemCall:
    """One call, by the lanes of one warp."""

    def __init__(self, state: BlockState, call: Call, warp: int, pc: int) -> None:
        self.state, self.call, self.warp, self.pc = state, call, warp, pc
        self._copied: Any = None
        """Memory that :meth:`host` has given an address of."""

    def error(
        self, kind: type[EmulationError], lane: int, message: str, loc: Loc | None = None, hint: str | None = None
    ) -> EmulationError:
        error = Scene(self.state, self.warp, lane, self.pc).raised(kind, message, hint)
        error.loc = loc or error.loc
        return error

    def place(self, lane: int) -> str:
        """The thread that calls, and the line."""
        scene = Scene(self.state, self.warp, lane, self.pc)
        at = scene.statement.loc or f"PTX line {scene.statement.line}"
        return f"thread {thread_of(self.state, self.warp, lane)} of block {block_of(self.state)} at {at}"

    def host(self, address: int, lane: int) -> tuple[int, int]:
        """The host address of a generic address, and the bytes from there on that the kernel may read."""
        state = self.state
        windows = [
            (area.address, state.launch.size_of(area), area.place - area.address)
            for area in state.launch.ranges if area is not None and not area.shared
        ]
        inside = address - LOCAL_WINDOW - LOCAL_START
        if 0 <= inside < state.launch.spaces.local_bytes:
            self._copied = state.local_copy(self.warp, lane)
            return ctypes.addressof(self._copied) + inside, len(self._copied) - inside
        start = SHARED_WINDOW + SHARED_START
        windows.append((start, state.launch.shared_bytes, state.shared - start))
        for low, nbytes, delta in windows:
            if low <= address < low + nbytes:
                return address + delta, low + nbytes - address
        name = _name(self.call)
        raise self.error(MemoryFault, lane, f"`{name}` was given address {address:#x}, which lies in no memory")

    def text(self, address: int, lane: int) -> str:
        """A string that ends with a zero byte."""
        place, room = self.host(address, lane)
        return ctypes.string_at(place, room).split(b"\0", 1)[0].decode("utf-8", "replace")

    def bytes(self, address: int, count: int, lane: int) -> bytes:
        place, room = self.host(address, lane)
        if room < count:
            raise self.error(MemoryFault, lane, f"`{_name(self.call)}` reads beyond its arguments")
        return ctypes.string_at(place, count)


def _name(call: Call) -> str:
    return call.callee.symbol if isinstance(call.callee, Symbol) else call.callee.name


def answer(state: BlockState) -> None:
    """Answer the call that a state has stopped for; the warp goes on behind it."""
    warp, pc = state.get(Block.FAULT_WARP, "i"), state.get(Block.FAULT_PC, "Q")
    call = state.code.graph.statements[state.code.statement_at(pc)]
    assert isinstance(call, Call)
    caller = SystemCall(state, call, warp, pc)
    arguments = [state.values(warp, operand) for operand in call.arguments]
    lanes = set_bits(state.get(Block.FAULT_ADDRESS, "Q"))
    function = _FUNCTIONS.get(_name(call), _undefined)
    results = {lane: function(caller, lane, *(values[lane] for values in arguments)) for lane in lanes}
    for operand in call.results:
        if isinstance(operand, Register):
            state.set_register(warp, operand.name, results)


_CONVERSION = re.compile(r"%([-+ #0]*)(\*|[0-9]+)?(\.(?:\*|[0-9]+))?(hh|h|ll|l|z|t|j|L)?(.)", re.DOTALL)
_WIDEST = 1 << 16
"""How wide a field of printf may be: CUDA's buffer for all that a launch prints has 1 MiB."""


def _printf(caller: SystemCall, lane: int, where: int, arguments: int) -> int:
    """C's printf; the arguments lie one after the other, each aligned to its size, numbers below 32 bits widened."""
    text, offset = caller.text(where, lane), 0

    def take(codes: str) -> Any:
        nonlocal offset
        size = struct.calcsize(codes)
        offset = -(-offset // size) * size
        value = struct.unpack("<" + codes, caller.bytes(arguments + offset, size, lane))[0]
        offset += size
        return value

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(take("i")) if width == "*" else width or ""
        precision = f".{take('i')}" if precision == ".*" else precision or ""
        _check_width(caller, lane, width, precision)
        wide = length in ("ll", "l", "z", "t", "j")
        if kind in "di":
            return f"%{flags}{width}{precision}d" % take("q" if wide else "i")
        if kind in "uoxX":
            return f"%{flags}{width}{precision}{kind}" % take("Q" if wide else "I")
        if kind == "c":
            return f"%{flags}{width}c" % chr(take("i") & 255)
        if kind == "s":
            return f"%{flags}{width}{precision}s" % caller.text(take("Q"), lane)
        if kind == "p":
            return f"%{flags}{width}s" % hex(take("Q"))
        if kind in "aA":
            return float(take("d")).hex()
        if kind in "fFeEgG":
            return f"%{flags}{width}{precision}{kind}" % take("d")
        return match[0]

    sys.stdout.write(_CONVERSION.sub(convert, text))
    return len(_CONVERSION.findall(text))


def _check_width(caller: SystemCall, lane: int, *numbers: str) -> None:
    for digits in (number.lstrip(".-") for number in numbers):
        if len(digits) > 9 or int(digits or 0) > _WIDEST:
            message = f"`printf` of a field of {digits[:20]} characters, and the widest has {_WIDEST}"
            raise caller.error(EmulationError, lane, message)


def _assert(caller: SystemCall, lane: int, message: int, file: int, line: int, *_: int) -> int:
    raise caller.error(TrapError, lane, caller.text(message, lane), Loc(caller.text(file, lane), line & 0xFFFFFFFF))


def _malloc(caller: SystemCall, lane: int, nbytes: int) -> int:
    address = caller.state.launch.spaces.memory.heap.take(nbytes, caller.place(lane))
    if address:
        caller.state.launch.tool.allocated(address, nbytes)
    return address


def _free(caller: SystemCall, lane: int, address: int) -> int:
    heap = caller.state.launch.spaces.memory.heap
    if address and not heap.give(address, caller.place(lane)):
        gone = heap.freed.get(address)
        why = f"which has been freed by {gone.by}" if gone is not None else "which `malloc` has not given"
        raise caller.error(MemoryFault, lane, f"`free` of address {address:#x}, {why}")
    return 0


def _unwritten(caller: SystemCall, lane: int, _: int) -> int:
    register = caller.call.arguments[0]
    assert isinstance(register, Register)
    caller.state.launch.tool.unwritten(caller.state, caller.pc, (caller.warp, lane), register.name)
    return 0


def _outside(caller: SystemCall, lane: int, number: int, *indices: int) -> int:
    caller.state.launch.tool.outside(caller.state, caller.pc, (caller.warp, lane), number, list(indices))
    return 0


def _undefined(caller: SystemCall, lane: int, *_: int) -> int:
    if isinstance(caller.call.callee, Register):
        address = caller.state.values(caller.warp, caller.call.callee)[lane]
        symbols = caller.state.launch.spaces.symbols
        other = next((name for name, place in symbols.items() if place == address), None)
        why = "where no function is that it could reach" if other is None else f"which is {other}, by another prototype"
        raise caller.error(
            EmulationError, lane, f"a call of address {address:#x}, {why}",
            hint="it must be a function of the module with the parameters of the prototype",
        )
    name = _name(caller.call)
    if caller.call.prototype == RETURNED:
        hint = "end it in `trap` or `exit`, or leave out `.noreturn`"
        raise caller.error(EmulationError, lane, f"the function {name} is `.noreturn`, and has returned", hint=hint)
    raise caller.error(EmulationError, lane, f"the function {name} is called but not defined")


def _exhausted(caller: SystemCall, lane: int, _: int) -> int:
    raise caller.error(MemoryFault, lane, f"`alloca` beyond the {STACK_BYTES} bytes of stack that a thread has")


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "vprintf": _printf, "__assertfail": _assert, "malloc": _malloc, "free": _free, UNWRITTEN: _unwritten,
    EXHAUSTED: _exhausted, OUTSIDE: _outside,
}

"""One recorded launch on the GPU: its memory laid out, its kernel launched, what is there then compared."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from .comparison import Difference, compare
from .driver import Driver, DriverFault
from .tape import Area, Case, Code, Tape, filled

__all__ = ["Faulted", "Result", "play"]

_FENCE = 512
_FILL = 0xA5


class Result(NamedTuple):
    """What came of a launch: the verdict, and what is to be said of it."""

    verdict: str
    detail: str = ""


class Faulted(Exception):
    """The launch failed, and the context is lost with it."""


def play(driver: Driver, tape: Tape, case: Case, step: Callable[[str], None]) -> Result:
    """Repeat a launch. ``step`` is told what comes next, for the case that it never ends.

    Raises Faulted where the kernel faults.
    """
    code = tape.codes[case.code]
    same = tape.target == f"sm_{driver.capability}"
    if same and code.refused:
        return Result("not assembled", code.refused)
    step("load")
    try:
        module = driver.load(tape.get(code.cubin)) if same and code.cubin else driver.compile(tape.text(case))
    except DriverFault as fault:
        return Result("not assembled", str(fault))
    memory = _Memory(driver, tape, case)
    try:
        memory.lay_out(module)
        result = _launch(driver, module, case, memory.addresses, step)
        if result is None:
            step("compare")
            result = _compared(memory)
    except DriverFault as fault:
        result = Result("not replayable", str(fault))
    memory.free()
    driver.unload(module)
    return result


class _Memory:
    """The areas of a launch on the GPU, each between fences; a variable lies where its module has it."""

    def __init__(self, driver: Driver, tape: Tape, case: Case) -> None:
        self.driver, self.tape, self.case = driver, tape, case
        self.addresses: list[int] = []
        """0 for a variable that the assembler has left out."""
        self._bases: list[int] = []

    def lay_out(self, module: ctypes.c_void_p) -> None:
        """Give each area memory, and put what was there before the launch into it."""
        for area in self.case.areas:
            self.addresses.append(self._variable(module, area) if area.variable else self._allocated(area))
        for area, address in zip(self.case.areas, self.addresses):
            if address:
                data = filled(self.tape.get(area.before), area.relocations, self.addresses)
                head, tail = _fences(area)
                self.driver.write(address - head, bytes([_FILL]) * head + data + bytes([_FILL]) * tail)

    def _allocated(self, area: Area) -> int:
        self._bases.append(self.driver.allocate(area.size + sum(_fences(area))))
        return self._bases[-1] + _FENCE + area.start

    def _variable(self, module: ctypes.c_void_p, area: Area) -> int:
        try:
            return self.driver.variable(module, area.variable)
        except DriverFault:
            if area.before != area.after:
                raise
            return 0

    def read(self, number: int) -> tuple[bytes, bytes]:
        """What is in an area now, and in the fences around it."""
        area, (head, tail) = self.case.areas[number], _fences(self.case.areas[number])
        whole = self.driver.read(self.addresses[number] - head, head + area.size + tail)
        return whole[head : head + area.size], whole[:head] + whole[head + area.size :]

    def free(self) -> None:
        """Give the memory back."""
        for base in self._bases:
            self.driver.free(base)


def _fences(area: Area) -> tuple[int, int]:
    """Bytes before and behind an area that nobody may write."""
    return (0, 0) if area.variable else (_FENCE + area.start, 2 * _FENCE - area.start)


def _launch(
    driver: Driver, module: ctypes.c_void_p, case: Case, addresses: list[int], step: Callable[[str], None]
) -> Result | None:
    """Launch, and wait; what is to be said where the driver refuses that."""
    parameters = [filled(bytes.fromhex(p.data), p.relocations, addresses) for p in case.parameters]
    step("launch")
    try:
        driver.launch(
            module, case.entry, case.grid, case.block, case.shared, case.cluster, case.cooperative, parameters
        )
    except DriverFault as fault:
        try:
            driver.call("cuCtxSynchronize")
        except DriverFault:
            raise Faulted(str(fault)) from None
        return Result("not replayable", str(fault))
    return None


def _compared(memory: _Memory) -> Result:
    tape, case, close = memory.tape, memory.case, ""
    for number, area in enumerate(case.areas):
        if not memory.addresses[number]:
            continue
        got, outside = memory.read(number)
        if outside.strip(bytes([_FILL])):
            return Result("differs", f"{_name(area)}: bytes outside of it were written")
        found = _difference(tape, case, area, memory.addresses, got)
        if found is not None and not found.close:
            detail = f"{_name(area)}: {found}{_written_by(tape, case, number)}"
            if case.incomparable:
                return Result("incomparable", f"{case.incomparable}; {detail}")
            return Result("differs", detail)
        if found is not None:
            close = close or f"{_name(area)}: {found}"
    return Result("close", close) if close else Result("ok")


def _difference(tape: Tape, case: Case, area: Area, addresses: list[int], got: bytes) -> Difference | None:
    wanted = filled(tape.get(area.after), area.relocations_after, addresses)

    def blob(key: str) -> bytes:
        return tape.get(key) if key else b""

    return compare(
        wanted, got, area.dtype, unspecified=blob(area.unspecified), low=blob(area.low), high=blob(area.high),
        loose=bool(tape.codes[case.code].loose) and not case.form,
    )


def _name(area: Area) -> str:
    return f"variable {area.variable}" if area.variable else f"array {area.name}"


def _written_by(tape: Tape, case: Case, number: int) -> str:
    """The lines that write to an area, or that of the instruction that it is all about."""
    code, lines = tape.codes[case.code], tape.text(case).splitlines()
    stores = code.stores.get(case.entry, {})
    through = [
        stores.get(str(n), ()) for n, parameter in enumerate(case.parameters)
        if any(relocation.area == number for relocation in parameter.relocations)
    ]
    found = sorted({line for each in through for line in each})
    if case.form:
        found = [n for n, line in enumerate(lines, 1) if line.startswith(f"{case.form} ")]
    if not found:
        return ""
    shown = [f"PTX line {n} `{lines[n - 1].strip()}`" + _place(code, n) for n in found[:3]]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"; by {', '.join(shown)}{more}"


def _place(code: Code, line: int) -> str:
    found = code.places.get(str(line))
    return f" ({found})" if found else ""

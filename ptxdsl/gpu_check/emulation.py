"""A recorded launch again on the emulator: whether it gives what was recorded, and what depends on the schedule."""

from __future__ import annotations

import ctypes
import math
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import NamedTuple

from ..emulator.program import Program
from ..errors import PtxError
from ..launch import Buffer, LaunchConfig, Scalar
from ..text import parse
from .bare.tape import Area, Case, Tape, filled
from .recording import variables_of

__all__ = ["LIMIT", "Repeated", "repeat"]

LIMIT = 60.0
"""Seconds that a launch may take in all of its schedules: random ones can keep threads waiting for each other."""
SEEDS = (1, 2, 3)
"""The schedules in which a result has to be the same to be compared."""


class Repeated(NamedTuple):
    """Why a launch cannot be repeated, or of each area which bytes depend on the schedule (none where it is empty)."""

    problem: str
    unspecified: tuple[bytes, ...] = ()


def repeat(tape: Tape, case: Case, programs: dict[str, Program]) -> Repeated:
    """Run a launch again: as it was, and in other schedules if it is of several warps and no single instruction.

    ``programs`` are those that were loaded before, by their keys.
    """
    program = programs.get(case.code)
    if program is None:
        text = tape.text(case)
        program = programs[case.code] = Program(parse(text), text)
    masks = [b""] * len(case.areas)
    until = monotonic() + LIMIT
    several = math.prod(case.grid) > 1 or math.prod(case.block) > 32
    for seed in (None, *(SEEDS if several and not case.form else ())):
        try:
            with _limited(until - monotonic()):
                found = _run(tape, case, program, seed)
        except _Late:
            return Repeated(f"on the emulator it takes more than {LIMIT:g} s to repeat it")
        except PtxError as error:
            return Repeated(f"on the emulator it fails when it is repeated: {error.message.splitlines()[0]}")
        for number, (wanted, got) in enumerate(found):
            if wanted != got and seed is None and not case.incomparable:
                return Repeated("its results depend on more than its parameters and their memory")
            masks[number] = _joined(masks[number], wanted, got)
    return Repeated("", tuple(masks))


class _Late(BaseException):
    """A launch takes too long; no Exception, so that nothing takes it for an error of the kernel."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """_Late where the block takes more than so many seconds; only a main thread of Unix can be told that."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _tell_late)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tell_late(*_: object) -> None:
    raise _Late


def _joined(mask: bytes, wanted: bytes, got: bytes) -> bytes:
    """A mask and the bytes that differ."""
    if wanted == got:
        return mask
    return bytes(m | (w != g) for m, w, g in zip(mask or bytes(len(wanted)), wanted, got))


def _run(tape: Tape, case: Case, program: Program, seed: int | None) -> list[tuple[bytes, bytes]]:
    """The wanted and the actual contents of each area after a launch."""
    known = {v.name for v in variables_of(program)}
    kept = [ctypes.create_string_buffer(area.size + 512) for area in case.areas]
    addresses = [
        program.variable(area.variable) if area.variable in known else _start(area, ctypes.addressof(room))
        for area, room in zip(case.areas, kept)
    ]
    for area, address in zip(case.areas, addresses):
        data = filled(tape.get(area.before), area.relocations, addresses)
        ctypes.memmove(address, data, len(data))
    geometry = LaunchConfig(case.grid, case.block, case.shared, case.cluster, case.cooperative, seed=seed)
    program.run(case.entry, geometry, _arguments(case, program, addresses))
    return [
        (filled(tape.get(area.after), area.relocations_after, addresses), ctypes.string_at(address, area.size))
        for area, address in zip(case.areas, addresses)
    ]


def _start(area: Area, room: int) -> int:
    return -(-room // 256) * 256 + area.start


def _arguments(case: Case, program: Program, addresses: Sequence[int]) -> list[Scalar | Buffer]:
    """The arguments of a launch whose areas begin at ``addresses``: the parameters, then what else it can reach."""
    def memory(name: str, address: int, nbytes: int) -> Buffer:
        return Buffer(name, address, nbytes, "uint8", (nbytes,), (1,), True, None)

    given: list[Scalar | Buffer] = []
    for parameter, declared in zip(case.parameters, program.module.function(case.entry).parameters):
        data = filled(bytes.fromhex(parameter.data), parameter.relocations, addresses)
        if declared.nbytes == 8 and parameter.relocations:
            _, area, inside = parameter.relocations[0]
            given.append(memory(declared.name, addresses[area] + inside, case.areas[area].size - inside))
        else:
            given.append(Scalar(declared.name, data))
    others = [(area, address) for area, address in zip(case.areas, addresses) if not area.variable]
    return given + [memory(area.name, address, area.size) for area, address in others]

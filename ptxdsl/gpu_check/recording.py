"""Launches on the emulator, recorded as they are made: the kernel, its parameters, its memory before and after."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..emulator.program import Launches, Program
from ..emulator.runtime.launcher import Launcher
from ..emulator.sanitizer.launcher import SanitizedLauncher
from ..ir import Variable
from ..launch import Buffer, LaunchConfig, Scalar, buffers_of
from .bare.tape import Area, Case, Code, Parameter, Relocation, Tape

__all__ = ["AGAIN", "Recorder", "variables_of"]

AGAIN = "it is one that was made before"

_IMAGES = re.compile(r"\b(tex|tld4|txq|suld|sust|sured|suq|istypep)\.|\.(texref|samplerref|surfref)\b")
_OWN = re.compile(r"%(clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|smid|nsmid|gridid|envreg\d+|pm\d+\w*|warpid|nwarpid)\b")
"""Registers that say what each GPU, or each launch, has otherwise."""


class _Memory(NamedTuple):
    """A piece of the host's memory that a launch can reach; a variable of the module where it is one."""

    name: str
    dtype: str
    start: int
    end: int
    variable: str = ""


class Recorder:
    """Records the launches made while it is :meth:`installed`, of which ``test`` says where they come from.

    Left out are launches of more than ``most`` bytes of memory, and those of a test beyond ``each``.
    """

    def __init__(self, tape: Tape, most: int = 1 << 20, each: int = 24) -> None:
        self.tape, self.most, self.each = tape, most, each
        self.test = ""
        self._made: Counter[str] = Counter()
        self._known: set[bytes] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Record what is launched meanwhile, but not what a debugger or an exploration of schedules observes."""
        make, calls = Program.launcher, {kind: kind.__call__ for kind in (Launcher, SanitizedLauncher)}
        origins: WeakKeyDictionary[object, tuple[Program, str, LaunchConfig]] = WeakKeyDictionary()

        def noted(program: Program, entry: str, config: LaunchConfig, *, conservative: bool = False) -> Launches:
            made = make(program, entry, config, conservative=conservative)
            if isinstance(made, Launcher):
                origins[made] = program, entry, config
            return made

        def recorded(launcher: Any, arguments: Sequence[Scalar | Buffer]) -> None:
            launch = partial(calls[type(launcher)], launcher)
            if launcher in origins:
                self._launch(*origins[launcher], arguments, launch)
            else:
                launch(arguments)

        Program.launcher = noted  # type: ignore[assignment,method-assign]
        for kind in calls:
            kind.__call__ = recorded  # type: ignore[assignment,method-assign]
        try:
            yield
        finally:
            Program.launcher = make  # type: ignore[method-assign]
            for kind, call in calls.items():
                kind.__call__ = call  # type: ignore[method-assign]

    def _launch(
        self, program: Program, entry: str, geometry: LaunchConfig, arguments: Sequence[Scalar | Buffer],
        launches: Launches,
    ) -> None:
        memory = _memory(program, arguments)
        reason = self._reason(program, memory)
        if reason:
            self.tape.left_out[reason] += 1
            launches(arguments)
            return
        before = [ctypes.string_at(m.start, m.end - m.start) for m in memory]
        try:
            launches(arguments)
        except BaseException:
            self.tape.left_out["the emulator tells an error, as the test wants"] += 1
            raise
        after = [ctypes.string_at(m.start, m.end - m.start) for m in memory]
        self._keep(self._case(program, entry, geometry, arguments, memory, before, after))

    def _reason(self, program: Program, memory: Sequence[_Memory]) -> str:
        """Why a launch is not recorded."""
        if not program.text:
            return "it was made of no PTX text"
        if program.module.address_size != 64:
            return "its addresses have 32 bits"
        if _IMAGES.search(program.text):
            return "it reads or writes textures or surfaces"
        if sum(m.end - m.start for m in memory) > self.most:
            return f"it has more than {self.most >> 10} KiB of memory"
        if self._made[self.test] >= self.each:
            return f"its test has made {self.each} others"
        return ""

    def _case(
        self, program: Program, entry: str, geometry: LaunchConfig, arguments: Sequence[Scalar | Buffer],
        memory: Sequence[_Memory], before: Sequence[bytes], after: Sequence[bytes],
    ) -> Case:
        areas = []
        for m, old, new in zip(memory, before, after):
            found, left = _relocations(memory, old), _relocations(memory, new)
            areas.append(Area(
                m.name, m.dtype, len(old), m.start % 256, self.tape.add(_cleared(old, found)),
                self.tape.add(_cleared(new, left)), found, left, m.variable,
            ))
        count = len(program.module.function(entry).parameters)
        own = _OWN.search(program.text)
        return Case(
            self.test, "", self.code(program.text), entry, geometry.grid, geometry.block, geometry.shared,
            geometry.cluster, geometry.cooperative,
            tuple(_parameter(memory, argument) for argument in arguments[:count]), tuple(areas),
            f"it reads %{own[1]}" if own else "",
        )

    def code(self, text: str) -> str:
        """The key of a module."""
        key = self.tape.add(text.encode())
        self.tape.codes.setdefault(key, Code(key))
        return key

    def _keep(self, case: Case) -> None:
        key = hashlib.sha256(repr(case._replace(test="")).encode()).digest()
        if key in self._known:
            self.tape.left_out[AGAIN] += 1
            return
        self._known.add(key)
        self._made[self.test] += 1
        self.tape.cases.append(case)

    def instruction(
        self, mnemonic: str, text: str, arrays: Sequence[np.ndarray[Any, Any]], results: int,
        bounds: tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = None,
    ) -> None:
        """A case of one instruction: ``text`` is of :mod:`.form_kernels`, the last ``results`` arrays what it gives.

        ``bounds`` are a type and what the first result may lie between.
        """
        areas = []
        for number, array in enumerate(arrays):
            data = array.tobytes()
            made = number >= len(arrays) - results
            before = b"\xa5" * len(data) if made else data
            area = Area(f"x{number}", "", len(data), 0, self.tape.add(before), self.tape.add(data))
            if bounds is not None and number == len(arrays) - results:
                low, high = (self.tape.add(limit.tobytes()) for limit in bounds[1:])
                area = area._replace(dtype=bounds[0], low=low, high=high)
            areas.append(area)
        threads = len(arrays[0])
        block = 128 if threads % 128 == 0 else 32
        parameters = tuple(Parameter("00" * 8, (Relocation(0, n, 0),)) for n in range(len(arrays)))
        self._keep(Case(
            self.test, mnemonic, self.code(text), "k", (threads // block, 1, 1), (block, 1, 1), 0, None, False,
            parameters, tuple(areas),
        ))


def variables_of(program: Program) -> list[Variable]:
    """The variables of a program's module that lie in memory, those of other modules apart."""
    return [
        v for v in program.module.variables
        if v.space in ("global", "const") and v.type.kind != "o" and v.linkage != "extern" and v.nbytes
    ]


def _memory(program: Program, arguments: Sequence[Scalar | Buffer]) -> list[_Memory]:
    """The memory of a launch: what its arguments name, overlapping ones together, and the module's variables."""
    merged: list[_Memory] = []
    buffers = [b for each in buffers_of(arguments) for b in (each, *each.targets) if b.nbytes and b.address]
    for b in sorted(buffers, key=lambda b: b.address):
        end = b.address + b.nbytes
        if merged and b.address < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(end, merged[-1].end))
        else:
            merged.append(_Memory(b.name, str(b.dtype), b.address, end))
    if not program.text:
        return merged
    places = [(v.name, program.variable(v.name), v.nbytes) for v in variables_of(program)]
    return merged + [_Memory(name, "", start, start + size, name) for name, start, size in places]


def _place(memory: Sequence[_Memory], address: int) -> tuple[int, int] | None:
    """In which piece of memory an address lies, and where."""
    for number, m in enumerate(memory):
        if m.start <= address < m.end:
            return number, address - m.start
    return None


def _relocations(memory: Sequence[_Memory], data: bytes) -> tuple[Relocation, ...]:
    """The addresses in some bytes."""
    if not memory:
        return ()
    words = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    low, high = min(m.start for m in memory), max(m.end for m in memory)
    likely = np.flatnonzero((words >= low) & (words < high))
    places = ((8 * int(at), _place(memory, int(words[at]))) for at in likely)
    return tuple(Relocation(offset, *place) for offset, place in places if place is not None)


def _cleared(data: bytes, relocations: Sequence[Relocation]) -> bytes:
    """Bytes without the addresses, which are others in each process."""
    made = bytearray(data)
    for offset, _, _ in relocations:
        made[offset : offset + 8] = bytes(8)
    return bytes(made)


def _parameter(memory: Sequence[_Memory], argument: Scalar | Buffer) -> Parameter:
    if isinstance(argument, Buffer):
        place = _place(memory, argument.address)
        return Parameter("00" * 8, (Relocation(0, *place),) if place else ())
    relocations = _relocations(memory, argument.data) if len(argument.data) % 8 == 0 else ()
    return Parameter(_cleared(argument.data, relocations).hex(), relocations)

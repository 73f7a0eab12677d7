"""Executions as text: the lines of each thread, what each read was given, and by whom it was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...launch import Buffer
from ...types import dtype_of
from ..machine.element_names import element_text
from ..machine.unsupported import render
from ..runtime.block_state import LaunchState
from ..runtime.faults import index_in
from .axioms import Execution
from .events import SHARED_BITS, SHARED_PLACE, Event, Identity

__all__ = ["Names", "place_of"]


def place_of(statement: Any) -> str:
    """The Python line of a statement, or the line of the PTX text."""
    return f"{statement.loc.file}:{statement.loc.line}" if statement.loc else f"PTX line {statement.line}"


class Names:
    """The names of threads and of memory in a launch."""

    def __init__(self, launch: LaunchState) -> None:
        x, y, z = launch.config.block
        self.grid, self.block, self.per_block = launch.config.grid, launch.config.block, x * y * z
        self.buffers = [a for a in launch.arguments if isinstance(a, Buffer)]
        self.variables = [a for a in launch.spaces.ranges if a is not None and a.variable is not None]

    def thread(self, number: int) -> str:
        """``thread 0 of block 1``."""
        block, thread = divmod(number, self.per_block)
        return f"thread {_index(self.block, thread)} of block {_index(self.grid, block)}"

    def element(self, address: int) -> tuple[str, Any]:
        """The element at an address, and its type as numpy's dtype or its name, "" where there is none."""
        if address >= SHARED_PLACE:
            offset = (address - SHARED_PLACE) % (1 << SHARED_BITS)
            areas = [(a, a.address) for a in self.variables if a.shared and not a.window]
            for area, start in areas:
                size = area.nbytes if area.nbytes > 0 else 1 << 30
                if start <= offset < start + size and area.variable is not None:
                    kind = area.variable.type
                    text = element_text(area.name, (offset - start) // kind.bytes, area.variable.shape)
                    return text, kind.numpy_name and dtype_of(kind)
            return f"shared memory at {offset:#x}", ""
        for buffer in self.buffers:
            if buffer.address <= address < buffer.address + buffer.nbytes:
                dtype = np.dtype(buffer.dtype)
                index, rest = divmod(address - buffer.address, dtype.itemsize)
                text = element_text(buffer.name, index, buffer.shape)
                return (f"byte {rest} of {text}" if rest else text), buffer.dtype
        for area in self.variables:
            if not area.shared and area.place <= address < area.place + area.nbytes and area.variable is not None:
                kind = area.variable.type
                text = element_text(area.name, (address - area.place) // kind.bytes, area.variable.shape)
                return text, kind.numpy_name and dtype_of(kind)
        return f"address {address:#x}", ""

    def value(self, address: int, data: bytes) -> str:
        """Bytes as a number of the array's type, or a list of such."""
        dtype = self.element(address)[1]
        if dtype and not len(data) % np.dtype(dtype).itemsize:
            numbers = np.frombuffer(data, dtype)
            return str(numbers[0] if len(numbers) == 1 else numbers.tolist())
        return str(int.from_bytes(data, "little"))

    def execution(self, execution: Execution, last: Sequence[int]) -> str:
        """The events of an execution, thread by thread."""
        lines, thread = [], -1
        writers: dict[int, list[Event]] = {}
        for event in execution.events:
            if event.writes:
                writers.setdefault(event.address, []).append(event)
        for n, event in enumerate(execution.events):
            if event.statement is None:
                continue
            if event.who.thread != thread:
                thread = event.who.thread
                lines.append(f"{self._who(execution, thread)}:")
            lines.append(f"  {self._event(event, execution, n in last and len(writers[event.address]) > 1)}")
        return "\n".join(lines)

    def _who(self, execution: Execution, number: int) -> str:
        """A thread, or ``copy 0 of thread 0 of block 1``."""
        if number < len(execution.threads):
            return self.thread(number)
        thread, index = execution.threads.begun_by(number)
        return f"copy {index} of {self.thread(thread)}"

    def _event(self, event: Event, execution: Execution, is_last: bool) -> str:
        text = f"{place_of(event.statement)}: {_line(event.statement)}"
        if not event.nbytes:
            return text
        said = []
        name = self.element(event.address)[0]
        if event.reads:
            said.append(f"reads {name} = {self.value(event.address, event.read)}, {self._sources(event, execution)}")
        if event.writes:
            stays = ", which stays" if is_last else ""
            said.append(f"writes {name} = {self.value(event.address, event.written)}{stays}")
        return f"{text}\n    {', '.join(said)}"

    def _sources(self, event: Event, execution: Execution) -> str:
        found: list[Identity | None] = list(dict.fromkeys(source.event for source in event.sources))
        said = []
        for who in found:
            if who is None:
                said.append("from before the launch")
            else:
                write = execution.events[execution.number[who]]
                whose = "its own" if who.thread == event.who.thread else f"by {self._who(execution, who.thread)}"
                said.append(f"written at {place_of(write.statement)} ({whose})")
        return " and ".join(said)


def _index(shape: tuple[int, int, int], number: int) -> str:
    x, y, z = index_in(shape, number)
    return str(x) if shape[1:] == (1, 1) else str((x, y, z))


def _line(statement: Any) -> str:
    """The source line of a statement, and the instruction that it became."""
    text = render(statement).strip()
    source = statement.loc.source if statement.loc else ""
    return f"{source}  ({text})" if source else text

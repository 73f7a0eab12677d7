"""Following a kernel's floats in float64: where its error arises, and where a NaN or an infinity begins.

Shadow execution: every float register, and every element of memory that float instructions write, has a twin that is
computed in float64 from the twins of the operands, along the way that the real numbers take. The real results are those
of a launch without.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...config import error_limit
from ...errors import LaunchError, Loc, NumericalError, PtxError, caller
from ...options import checked_options
from ...ir import Call, Instruction
from ...launch import LaunchConfig, buffers_of
from ...launch.arrays import contiguous, view
from ...types import TYPES, ScalarType
from ..analysis.float_layouts import layout_of
from ..codegen.code import Code
from ..instructions.float_twins import FloatTwins
from ..instructions.lowering import Lowering
from ..machine.address_spaces import AddressSpaces
from ..machine.float_twins import Row
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.launch import run
from ..runtime.tool import NO_TOOL
from .numerics_data import Decoder, InstructionNumerics, LineNumerics, NamedArray, OutputNumerics, line_of
from .numerics_table import told
from .observer import Observer, probed
from .profile_table import place
from .twin_memory import ArrayTwins, TwinMemory

__all__ = ["numerics"]


class _Followed:
    """A kernel that is followed, launched with one grid and shape of block."""

    def __init__(
        self, spaces: AddressSpaces, config: LaunchConfig, memory: TwinMemory, line: Callable[[Loc], int]
    ) -> None:
        self.spaces, self.config, self.memory, self.line = spaces, config, memory, line
        self.table = memory.table()
        self.twins: FloatTwins | None = None
        self.statements: list[Instruction | Call] = []
        self.arrays: list[NamedArray] = []
        self.launches = 0
        self.code = probed(spaces, config.block, self)

    @property
    def name(self) -> str:
        return self.spaces.function.name

    def _made(self, low: Lowering) -> FloatTwins:
        if self.twins is None:
            self.statements = low.graph.statements
            self.rows = np.zeros(len(self.statements) * Row.nbytes + 64, np.uint8)
            start = self.rows.ctypes.data + -self.rows.ctypes.data % 64
            areas = self.table.ctypes.data + -self.table.ctypes.data % 64
            self.twins = FloatTwins(self.statements, start, areas, lambda s: self.line(_loc(s)))
        return self.twins

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        self._made(low).before(low, statement)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        self._made(low).after(low, statement)

    @property
    def formats(self) -> tuple[tuple[str, int], ...]:
        return self.twins.registers.formats if self.twins is not None else ()

    def instructions(self, lines: list[Loc]) -> list[InstructionNumerics]:
        """What was noted of each instruction."""
        if self.twins is None:
            return []
        decoder, start, found = Decoder(self.name, self.config, self.arrays, lines), -self.rows.ctypes.data % 64, []
        for at, statement in enumerate(self.statements):
            if isinstance(statement, Instruction):
                row = self.rows[start + at * Row.nbytes : start + (at + 1) * Row.nbytes].tobytes()
                made = decoder.instruction(statement, row, at not in self.twins.lost)
                found += [made] if made is not None else []
        return found


def _loc(statement: Instruction | Call) -> Loc:
    return statement.loc or Loc("<ptx>", statement.line)


class numerics(Observer):
    """Follows the floats of the launches of its ``with`` block in float64, on the emulator.

    ``print(n)`` shows the lines by the error of the results that arises at them, the arrays that were written, and
    where NaNs, infinities and other decisions begin; ``lines``, ``instructions`` and ``outputs`` have the same as
    objects, ``float64(array)`` what an array would hold in float64. An array whose error is larger than ``max_error``
    is a NumericalError behind the launch, with the line at which it arises. Errors are relative, as
    :class:`~ptxdsl.emulator.tools.numerics_data.NumberCase` defines them. ``k.configure(..., twin="float64")`` does it
    for one launch. Raises LaunchError for launches on a GPU.

    >>> from ptxdsl import Ptr, f32, numerics, ptx, ptx_kernel, use
    >>> @ptx_kernel
    ... def difference(x: Ptr[f32], y: Ptr[f32]):
    ...     i = ptx.tid.x
    ...     larger = x[i] + 1.0
    ...     y[i] = larger - 1.0
    >>> x, y = np.full(4, 1e-6, np.float32), np.empty(4, np.float32)
    >>> with use("emulator"), numerics() as n:
    ...     difference[1, 4](x, y)
    >>> n.outputs[0].element, n.outputs[0].origin.source, f"{n.outputs[0].error:.2f}"
    ('y[0]', 'y[i] = larger - 1.0', '0.05')
    >>> bool(n.float64(y)[0] == np.float64(x[0]) + 1 - 1)
    True
    """

    what = "ptxdsl.numerics()"

    @checked_options(LaunchError, "numerics")
    def __init__(self, max_error: float | None = None) -> None:
        super().__init__()
        if max_error is not None:
            max_error = error_limit(max_error, lambda text: PtxError(text, loc=caller()))
        self.max_error = max_error
        self.outputs: list[OutputNumerics] = []
        """The arrays that the last launch of each kernel wrote, in the order of its parameters."""
        self._memory = TwinMemory()
        self._kernels: dict[Any, _Followed] = {}
        self._lines: dict[Loc, int] = {}
        self._now: _Followed | None = None

    def _line(self, loc: Loc) -> int:
        return self._lines.setdefault(loc, len(self._lines) + 1)

    def attach(self, state: BlockState) -> None:
        self._memory.add(state)

    def run(self, launch: LaunchState) -> None:
        """Run a launch and follow it."""
        super().run(launch)
        key = id(launch.spaces), launch.config.grid, launch.config.block
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = _Followed(launch.spaces, launch.config, self._memory, self._line)
        kernel.launches += 1
        kernel.arrays = _arrays(launch)
        code: Code = kernel.code
        self._memory.begin(launch, kernel.table, kernel.formats)
        launch.tool = self
        try:
            run(launch, code, lambda _: code)
        finally:
            launch.tool = NO_TOOL
            self._judge(kernel)
        self._demand(kernel)

    # Results

    def _judge(self, kernel: _Followed) -> None:
        """Compare what the launch has left in its arrays."""
        self.outputs = [output for output in self.outputs if output.kernel != kernel.name]
        for array in kernel.arrays:
            for form in kernel.formats if array.writable else ():
                if array.holds(form):
                    found = self._memory.twins(array.address, array.nbytes, form)
                    self.outputs += [self._output(kernel, array, found)] if found.copy.any() else []

    def _output(self, kernel: _Followed, array: NamedArray, found: ArrayTwins) -> OutputNumerics:
        worst = int(found.errors.argmax())
        error = float(found.errors[worst])
        origin = int(found.cells["origin"][worst]) if error else 0
        address = array.address + worst * found.format.bits // 8
        return OutputNumerics(
            kernel.name, array.name, array.element(address), float(found.numbers[worst]), float(found.twins[worst]),
            error, [*self._lines][origin - 1] if origin else None,
        )

    def _demand(self, kernel: _Followed) -> None:
        """Raise NumericalError where the error of an array is too large."""
        limit = self.max_error
        wrong = [o for o in self.outputs if limit is not None and o.kernel == kernel.name and o.error > limit]
        if not wrong:
            return
        worst = max(wrong, key=lambda output: output.error)
        stores = [s for s in self.instructions if s.worst is not None and s.worst.element == worst.element]
        store = max(stores, key=lambda s: s.worst.error if s.worst is not None else 0.0, default=None)
        case = store.worst if store is not None else None
        others = [f"\n  also {o.element}: {told(o)}" for o in wrong if o is not worst]
        origin = worst.origin
        raise NumericalError(
            f"{worst.element} is {told(worst)}; max_error is {limit:g}{''.join(others)}",
            loc=store.loc if store is not None else caller(),
            block=case.block if case is not None else None, thread=case.thread if case is not None else None,
            ptx_line=store.ptx_line if store is not None else None, instruction=store.text if store is not None else "",
            hint=f"most of the error arises at {place(origin)}: {origin.source}" if origin is not None else None,
        )

    @property
    def launches(self) -> dict[str, int]:
        """How often each kernel was launched."""
        found: dict[str, int] = {}
        for kernel in self._kernels.values():
            found[kernel.name] = found.get(kernel.name, 0) + kernel.launches
        return found

    @property
    def instructions(self) -> list[InstructionNumerics]:
        """The instructions of each kernel that have floats, in the order of the text."""
        lines = [*self._lines]
        return [found for kernel in self._kernels.values() for found in kernel.instructions(lines)]

    @property
    def lines(self) -> list[LineNumerics]:
        """The lines of each kernel, those first whose error reaches an array, then by the error that arises there."""
        groups: dict[tuple[str, Loc], list[InstructionNumerics]] = {}
        for row in self.instructions:
            groups.setdefault((row.kernel, row.loc or Loc("<ptx>", row.ptx_line)), []).append(row)
        reaches = {loc: max(o.error for o in self.outputs if o.origin == loc) for _, loc in groups
                   if any(o.origin == loc for o in self.outputs)}
        found = [line_of(kernel, loc, reaches.get(loc, 0.0), rows) for (kernel, loc), rows in groups.items()]
        return sorted(found, key=lambda line: (-line.reaches, -line.arises, -line.error, line.loc))

    def float64(self, array: Any, kind: ScalarType | None = None) -> Any:
        """What an array would hold in float64, in its shape: its own numbers where nothing was followed.

        ``kind`` is the type of its elements where its dtype is only their bits, as of bf16 in uint16.
        """
        seen = view(array)
        if seen is None or not contiguous(seen.shape, seen.strides, seen.itemsize) or seen.device is not None:
            raise PtxError(f"{type(array).__name__} is no array in one piece of host memory", loc=caller())
        kind = kind or _kind_of(seen.dtype)
        layout = layout_of(kind)
        if layout is None or layout.bits != 8 * seen.itemsize:
            hint = "name the type of its elements: `n.float64(y, bf16)`"
            raise PtxError(f"an array of {seen.dtype} holds no {kind or 'floats'}", loc=caller(), hint=hint)
        nbytes = math.prod(seen.shape) * seen.itemsize
        return self._memory.twins(seen.address, nbytes, (layout.name, layout.slot)).twins.reshape(seen.shape)

    # Shown

    def table(self, limit: int | None = None) -> str:
        """The results as text: of the first ``limit`` lines, then arrays, decisions, infinities and NaNs."""
        from .numerics_table import table

        return table(self, limit)

    def to_dict(self) -> dict[str, Any]:
        """All results as what JSON has."""
        from .numerics_table import records

        return records(self)

    def to_json(self) -> str:
        """The same as JSON; infinite numbers and NaN are texts."""
        return json.dumps(self.to_dict(), indent=2)

    def html(self, path: str | Path) -> None:
        """Write a page, complete in itself."""
        from .numerics_table import page

        Path(path).write_text(page(self), "utf-8")

    def _repr_html_(self) -> str:
        from .numerics_table import display

        return display(self)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        names = ", ".join(f"{name} ({count}x)" for name, count in self.launches.items())
        return f"<numerics of {names or 'nothing'}>"


def _arrays(launch: LaunchState) -> list[NamedArray]:
    """The arrays and variables of a launch."""
    found = []
    for b in buffers_of(launch.arguments):
        kind = _kind_of(b.dtype)
        size = kind.bytes if kind is not None else np.dtype(b.dtype).itemsize
        found.append(NamedArray(b.name, b.address, b.nbytes, kind, size, b.shape, b.writable))
    for area in launch.ranges:
        variable = area.variable if area is not None and not area.shared else None
        if area is not None and variable is not None and area.nbytes > 0:
            kind, shape = variable.type, (area.nbytes // variable.type.bytes,)
            found.append(NamedArray(area.name, area.place, area.nbytes, kind, kind.bytes, shape, area.writable))
    return found


def _kind_of(dtype: str) -> ScalarType | None:
    """The type that a dtype of numpy's name is; None where PTX has none."""
    return next((kind for kind in TYPES.values() if kind.numpy_name == dtype and kind.kind != "b"), None)

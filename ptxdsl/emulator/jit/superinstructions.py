"""One function for a run of records: the same emitters as the handlers', with registers in machine registers.

A run is walked at compile time: fields are constants, a register that was computed or loaded before is at hand, and
only what is needed afterwards is stored at the end. Where a check fails, the registers are stored and the records go on
alone from that instruction, so a fault is found and told exactly as without fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir

from ..semantics.lanes import Lanes
from ..codegen.library import Shape
from ..codegen import control, data, memory, shadow_checks
from ..codegen.handler import HANDLER, Handler, i32, i64

__all__ = ["ARITHMETIC", "Deferring", "Part", "Slot", "can_fuse", "fuse"]


class Part(NamedTuple):
    """One record of a run: its shape and fields, where it lies behind the first, and its share of a joint check.

    ``live`` says whether the entry of its access is to be read from the record, which learns it while it runs.
    """

    shape: Shape
    values: Sequence[int]
    distance: int
    together: tuple[int, int] | None = None
    live: bool = False


class _Raw(NamedTuple):
    """A number that has not been made canonical, and how to."""

    value: Any
    condition: Any
    repair: Callable[[], Any]


class Deferring(Lanes):
    """Leaves a result as the host gives it: arithmetic that follows does not care which NaN it is given."""

    __slots__ = ("raw",)

    def __init__(self, builder: ir.IRBuilder, width: int, raw: dict[int, _Raw] | None = None) -> None:
        super().__init__(builder, width)
        self.raw = raw

    def seldom(self, condition: Any, repair: Callable[[], Any], value: Any) -> Any:
        if self.raw is not None:
            self.raw[id(value)] = _Raw(value, condition, repair)
        return value


ARITHMETIC = frozenset(
    f"{operation}{mode}.f32" for operation in ("add", "sub", "mul", "fma") for mode in ("", ".rn")
)


class Slot(NamedTuple):
    """A register slot of the warp, by its offset."""

    offset: int


def can_fuse(shape: Shape) -> bool:
    """Whether a record may be part of a run: it goes on with the next one, for the same lanes."""
    kind = shape[0]
    if kind == "data":
        return shape[3] > 1 or not shape[4]
    if kind == "param":
        return not shape[4]
    if kind == "load":
        return not shape[6]
    if kind == "store":
        return not shape[6]
    if kind == "shadow_check":
        return shadow_checks.can_fuse(shape)
    return kind == "wrap"


class _Fused(Handler):
    """A handler whose fields are known and whose register slots are kept in values as far as possible."""

    def __init__(self, module: ir.Module, name: str, original: int) -> None:
        super().__init__(module, name)
        self.original = original
        self.part: Part | None = None
        self.values: dict[int, Any] = {}
        self.dirty: dict[int, None] = {}
        self.lanes: Any = None
        self.raw: dict[int, _Raw] = {}
        self.arithmetic = False

    def begin(self, part: Part) -> None:
        self.part, self.codes, self._read = part, part.shape[-1], 0
        shape = part.shape
        self.arithmetic = shape[0] == "data" and shape[1] in ARITHMETIC and not shape[4] and not shape[5]

    def numbers(self, width: int) -> Lanes:
        return Deferring(self.ir, width, self.raw) if self.arithmetic else super().numbers(width)

    def settled(self, value: Any) -> Any:
        """The value, made canonical here if it is not yet."""
        raw = self.raw.get(id(value))
        if raw is None:
            return value
        width = value.type.count if isinstance(value.type, ir.VectorType) else 1
        return Lanes(self.ir, width).seldom(raw.condition, raw.repair, value)

    def field(self, code: str = "i") -> Any:
        part = self.part
        assert part is not None and self.codes[self._read] == code
        value = part.values[self._read]
        self._read += 1
        if part.live and self._read == 2:
            return super().load(self.rec, part.distance + 12, i32, 4)
        return ir.Constant(i32 if code == "i" else i64, value)

    def slot(self) -> Any:
        return Slot(int(self.field().constant))

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None, fixed: bool = False) -> Any:
        if not isinstance(base, Slot):
            return super().load(base, offset, kind, align, fixed)
        known = self.values.get(base.offset)
        if known is None or known.type != kind:
            if base.offset in self.dirty:
                self._flush_one(base.offset)
                del self.dirty[base.offset]
            known = self.values[base.offset] = super().load(self.warp, base.offset, kind)
        elif not self.arithmetic:
            known = self.values[base.offset] = self.settled(known)
        return known

    def store(self, value: Any, base: Any, offset: Any, align: int | None = None) -> None:
        if isinstance(base, Slot):
            self.values[base.offset] = value
            self.dirty[base.offset] = None
        else:
            super().store(value, base, offset, align)

    @property
    def active(self) -> Any:
        """The mask does not change within a run; it is read at its start."""
        return self.lanes

    def checked_together(self) -> tuple[int, int] | None:
        assert self.part is not None
        return self.part.together

    def next(self) -> None:
        """The next part follows."""

    def _flush_one(self, offset: int) -> None:
        super().store(self.settled(self.values[offset]), self.warp, offset)

    def flush(self, live: set[int] | None = None) -> None:
        """Store the registers that have changed; only those in ``live`` where that is given."""
        for offset in self.dirty:
            if live is None or offset in live:
                self._flush_one(offset)

    def alone(self) -> None:
        """Go on with this record by itself."""
        self.flush()
        assert self.part is not None
        rec = self.add(self.rec, self.part.distance)
        if self.part.distance:
            self.goto(rec)
            return
        handler = self.ir.inttoptr(ir.Constant(i64, self.original), HANDLER.as_pointer())
        super().tail(handler, rec)

    def tail(self, handler: Any, rec: Any) -> None:
        """Only the slow twins of accesses are left for: the records know them."""
        if rec is self.rec:
            self.alone()
        else:
            super().tail(handler, rec)

    def give_up(self, _: Callable[[], None]) -> None:
        self.alone()


_BODIES: dict[str, Callable[[Handler, Shape], None]] = {
    "data": data.compute, "param": memory.fetch, "wrap": control.bounded,
}


def fuse(module: ir.Module, name: str, parts: Sequence[Part], original: int, size: int, live: set[int]) -> None:
    """Add the function of a run. ``original`` is the first record's handler, ``live`` the slots needed afterwards."""
    h = _Fused(module, name, original)
    h.lanes = Handler.active.fget(h)  # type: ignore[attr-defined]
    beside = h.function  # a slow twin that is never called: its records are
    for part in parts:
        h.begin(part)
        kind = part.shape[0]
        if kind == "load":
            memory.load_with(h, part.shape, beside)
        elif kind == "store":
            memory.store_with(h, part.shape, beside)
        elif kind == "shadow_check":
            shadow_checks.check_with(h, part.shape, beside)
        else:
            _BODIES[kind](h, part.shape)
    h.flush(live)
    h.goto(h.add(h.rec, size))

"""Micro-ops: what an instruction is lowered to, and the keys by which the code of each is found.

A micro-op says everything that its code depends on: operand classes, access pattern, whether lanes may be inactive. It
is a tuple (kind, fields in the order of the class, codes), so that it is hashed, compared and written as fast as one;
``codes`` are the numbers that its code reads from the record of a placed micro-op, as letters of the struct module.

A class is declared by its fields and its traits::

    class Exit(MicroOp, may_fault=True, repeatable=True, inlinable=True, rare=True):
        guard: OperandClass
        masked: bool
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[type], type]:
        return lambda made: made


__all__ = ["Key", "MicroOp", "PlacedMicroOp", "Routine", "layout_of"]


_new: Any = tuple.__new__


@dataclass_transform(frozen_default=True)
class Key(tuple[Any, ...]):
    """The key of a compiled function: its class and numbers, strings and tuples; the same in every process."""

    __slots__ = ()
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__
        for number, name in enumerate(cls.__annotations__):
            setattr(cls, name, property(itemgetter(1 + number)))

    if not TYPE_CHECKING:

        def __new__(cls, *values: Any) -> Key:
            return tuple.__new__(cls, (cls.kind, *values))


class Routine(Key):
    """A function that micro-ops or Python call; it has no record of its own."""

    __slots__ = ()


class MicroOp(Key):
    """A step of a warp.

    - ``may_fault``: it may not complete: a fault, lanes to wait for, an address that only the slow path knows.
    - ``repeatable``: after a side exit it may be executed again.
    - ``inlinable``: it can be compiled into a block function; a text says why not.
    - ``rare``: block functions have a side exit where any lane executes it.
    - ``reads_memory``, ``writes_memory``: that of the kernel, not registers.
    - ``converges``: lanes wait in it for others of their warp.
    - ``instrumentation``: it is there for sanitizer, profiler or debugger.
    - ``by_lane``: what it does for a lane does not depend on the others, and its code can be that for one.
    """

    __slots__ = ()
    may_fault: ClassVar[bool]
    repeatable: ClassVar[bool]
    inlinable: ClassVar[bool]
    first_tier: ClassVar[str]
    rare: ClassVar[bool]
    reads_memory: ClassVar[bool]
    writes_memory: ClassVar[bool]
    converges: ClassVar[bool]
    instrumentation: ClassVar[bool]
    by_lane: ClassVar[bool]

    def __init_subclass__(
        cls, *, may_fault: bool, repeatable: bool, inlinable: Literal[True] | str, rare: bool = False,
        reads_memory: bool = False, writes_memory: bool = False, converges: bool = False, instrumentation: bool = False,
        by_lane: bool = False,
    ) -> None:
        super().__init_subclass__()
        cls.may_fault, cls.repeatable, cls.rare = may_fault, repeatable, rare
        cls.inlinable, cls.first_tier = inlinable is True, inlinable if isinstance(inlinable, str) else ""
        cls.reads_memory, cls.writes_memory, cls.converges = reads_memory, writes_memory, converges
        cls.instrumentation, cls.by_lane = instrumentation, by_lane

    if not TYPE_CHECKING:

        def __new__(cls, *values: Any) -> MicroOp:
            return _new(cls, (cls.kind, *values, ""))

    def with_codes(self, codes: str) -> Self:
        """The same for a record of these fields."""
        return _new(type(self), (*self[:-1], codes))

    @property
    def codes(self) -> str:
        """The fields of its record."""
        codes: str = self[-1]
        return codes

    @property
    def fusible(self) -> bool:
        """Whether it may be part of a superinstruction: it goes on with the next one, for the same lanes."""
        return False

    @property
    def ends(self) -> bool:
        """Whether it ends a basic block."""
        return False

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the first values of its record, for kinds whose record is read by name."""
        return ()


@dataclass(slots=True, eq=False, repr=False)
class PlacedMicroOp:
    """A micro-op of a kernel, with the values of its record.

    ``targets`` are the values that hold the distance to a basic block, ``links`` those with the address of a routine.
    """

    op: MicroOp
    values: list[Any]
    statement: int
    targets: dict[int, int] | None = None
    links: dict[int, Routine] | None = None

    @property
    def size(self) -> int:
        return layout_of(self.op.codes)[1]

    def value(self, name: str) -> int:
        """A value of the record by its name."""
        found: int = self.values[self.op.values.index(name)]
        return found


@cache
def layout_of(codes: str) -> tuple[struct.Struct, int]:
    """How the fields of a record lie behind the address of its code, and its size."""
    packer = struct.Struct("<Q" + codes)
    return packer, (packer.size + 7) // 8 * 8

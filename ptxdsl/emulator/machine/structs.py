"""Structs in the emulator's memory, declared field by field: compiled code and Python read them at the same offsets."""

from __future__ import annotations

import struct
from typing import ClassVar, NamedTuple, Union

__all__ = ["Struct", "field"]


class _Field(NamedTuple):
    code: str
    repeat: int
    nbytes: int
    align: int


def field(kind: Union[str, type[Struct]], count: int = 1, align: int = 0) -> int:
    """A field of a :class:`Struct`, there the offset: ``count`` values of a code of :mod:`struct`, or of a struct."""
    code = kind if isinstance(kind, str) else f"{kind.nbytes}s"
    size = struct.calcsize("<" + code)
    natural = size if isinstance(kind, str) else kind.align
    return _Field(code, count, count * size, align or natural)  # type: ignore[return-value]


class Struct:
    """Fields one behind the other, aligned to their size unless they say more; ``nbytes`` of all."""

    nbytes: ClassVar[int] = 0
    align: ClassVar[int] = 8
    _fields: ClassVar[dict[str, tuple[int, _Field]]] = {}

    def __init_subclass__(cls) -> None:
        at, fields = 0, {}
        for name, declared in list(vars(cls).items()):
            if isinstance(declared, _Field):
                at = -(-at // declared.align) * declared.align
                fields[name] = at, declared
                setattr(cls, name, at)
                at += declared.nbytes
        cls._fields, cls.nbytes = fields, -(-at // cls.align) * cls.align

    @classmethod
    def span(cls, first: str, last: str = "") -> struct.Struct:
        """What packs all fields from one to another, in the order of their declaration; without ``last`` to the end."""
        names = list(cls._fields)
        codes, at = "<", cls._fields[first][0]
        for name in names[names.index(first) : names.index(last) + 1 if last else None]:
            start, declared = cls._fields[name]
            codes += f"{start - at}x{declared.repeat}{declared.code}"
            at = start + declared.nbytes
        return struct.Struct(codes if last else f"{codes}{cls.nbytes - at}x")

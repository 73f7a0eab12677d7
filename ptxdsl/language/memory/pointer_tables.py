"""Tables of pointers: a parameter `Ptr[Ptr[f32]]`, whose elements are pointers that the kernel loads."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import PtxTypeError
from ...types import ScalarType, u64
from ..errors import located
from ..values.value import Value
from .declared import Declared
from .pointers import Pointer

__all__ = ["PointerTable"]


class PointerTable(Pointer):
    """A pointer to pointers to ``target`` in global memory; ``table[i]`` is a `Pointer`, by one ``ld.global.u64``."""

    __slots__ = ("target", "target_space")

    def __init__(self, target: ScalarType, space: str, base: Value | Declared, offset: int = 0) -> None:
        super().__init__(u64, "global", base, offset)
        self.target, self.target_space = target, space

    def _moved(self, index: Any, sign: int) -> PointerTable:
        moved = super()._moved(index, sign)
        return PointerTable(self.target, self.target_space, moved.base, moved.offset)

    def __getitem__(self, index: Any) -> Any:
        return self.load(index)

    def load(
        self, index: Any = 0, *, width: int = 1, pred: Any = None, out: Any = None, **hints: Any,
    ) -> Any:
        """The pointer at ``index``."""
        if width != 1 or pred is not None or out is not None or hints:
            raise located(PtxTypeError, "a table of pointers gives one pointer at a time", "`p = table[i]`")
        return Pointer(self.target, self.target_space, super().load(index))

    def store(self, index: Any, values: Any, *, pred: Any = None, **hints: Any) -> NoReturn:  # noqa: ARG002
        """Refused: the launch makes the table."""
        raise located(PtxTypeError, "a table of pointers cannot be written", "`table[i][j] = v` writes to an array")

"""What a launch knows of a tensor map; :mod:`.tensor_maps` makes them, and is loaded for that alone."""

from __future__ import annotations

from typing import Any

from ..ir.signature import TensorMap
from .arrays import View

__all__ = ["TensorMapArgument"]


class TensorMapArgument(TensorMap):
    """An argument for a parameter of type :class:`TensorMap`: 128 bytes, and the array that they describe."""

    def __init__(
        self, data: bytes, seen: View, nbytes: int, described: str, box: tuple[int, ...], bits: int, swizzle: str
    ) -> None:
        self._data, self.seen, self._described = data, seen, described
        self.box, self.bits, self.swizzle = box, bits, swizzle
        """The extents of a box, the innermost first, the bits of an element in shared memory, the swizzle's name."""
        self.nbytes = nbytes
        """What lies between the first byte of the tensor and its last one."""
        self.options: dict[str, Any] = {}
        """How it was asked for, beside the array."""

    def __bytes__(self) -> bytes:
        return self._data

    def __repr__(self) -> str:
        return f"<tensor map of {self._described}>"

"""What a GPU needs of a kernel; for annotations alone, so that no launch loads it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ..ir import Function, Module
from ..ir.signature import KernelParameter

if TYPE_CHECKING:
    from .assembler import Assembled

__all__ = ["Loadable"]


class Loadable(Protocol):
    """A kernel that can be loaded on a GPU."""

    entry: str
    module: Module
    parameters: Sequence[KernelParameter]
    warned: set[str]
    references: dict[str, Any]

    @property
    def modules(self) -> dict[int, Any]:
        """The modules loaded, by the ordinal of the GPU, common to all kernels of the text."""

    @property
    def loading(self) -> AbstractContextManager[object]:
        """Held while a module is assembled and loaded, by one thread."""

    @property
    def text(self) -> str:
        """The PTX."""

    @property
    def function(self) -> Function:
        """The entry."""

    @property
    def written(self) -> frozenset[str]:
        """The parameters whose memory it may write."""

    def assembled(self, arch: str) -> Assembled:
        """Its machine code for a target."""

    def fill(self, device: int) -> None:
        """Give the variables of the module just loaded on a GPU the values that they are to begin with."""

    foreign: bool
    box_needs: Sequence[Any]

    @property
    def bind(self) -> Any:
        """What turns the user's arguments into the kernel's."""

    def run_on(self, backend: str) -> Any:
        """The kernel loaded on a backend."""

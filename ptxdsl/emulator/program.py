"""A PTX module that runs on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..config import observer
from ..ir import Function, Module
from .analysis import Shape3
from .inline import inline
from .lower import Code, lower
from .run import run
from .spaces import ModuleMemory, Spaces
from .state import LaunchState

if TYPE_CHECKING:
    from ..launch import Buffer, LaunchConfig, Scalar

__all__ = ["Program", "load"]


class Program:
    """A loaded module: its variables in memory, its kernels lowered as they are launched."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._memory = ModuleMemory(module)
        self._spaces: dict[str, Spaces] = {}
        self._codes: dict[tuple[str, Shape3, bool], Code] = {}

    def _kernel(self, entry: str) -> Spaces:
        spaces = self._spaces.get(entry)
        if spaces is None:
            function: Function = inline(self.module, self.module.function(entry))
            spaces = self._spaces[entry] = Spaces.of(self.module, function, self._memory)
        return spaces

    def code(self, entry: str, block: Shape3, plain: bool = False) -> Code:
        """The records of a kernel for this shape of block."""
        key = (entry, block, plain)
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = lower(self._kernel(entry).function, self._kernel(entry), block, plain)
        return found

    def run(
        self, entry: str, config: LaunchConfig, arguments: Sequence[Scalar | Buffer], *, plain: bool = False
    ) -> None:
        """Run a kernel to its end, in the memory of its arguments.

        ``plain`` runs the slower code that every kernel can fall back to, in which nothing is taken to be uniform.

        Raises EmulationError, of the kind that fits, where the kernel does something wrong.
        """
        launch = LaunchState(self._kernel(entry), config, list(arguments))
        watcher = observer.get()
        if watcher is not None:
            watcher.run(launch)
            return
        run(launch, lambda needed: self.code(entry, config.block, plain or needed))


@lru_cache(maxsize=64)
def load(text: str) -> Program:
    """The program of a PTX text; parsed and verified once."""
    from ..text import parse
    from ..verify import verify

    module: Any = parse(text)
    verify(module, foreign=True)
    return Program(module)

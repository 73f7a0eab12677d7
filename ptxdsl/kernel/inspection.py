"""What a kernel is compiled to, and how well it fits on a GPU: ``k.ptx()``, ``k.sass()``, ``k.occupancy(256)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import config
from ..ir import Module
from ..isa.targets import assembled
from ..launch import LaunchConfig
from .backends import choose
from .compiled_kernel import CompiledKernel

if TYPE_CHECKING:
    from pathlib import Path

    from ..emulator.tools.tiers import Tiers
    from ..gpu.assembler import Assembled
    from ..gpu.cubin import Attributes
    from ..gpu.occupancy import BlockSizes, Occupancy, SharedSize
    from .report import Report

__all__ = ["Inspected"]


class Inspected(ABC):
    """A kernel as far as it is looked at; the name of its entry is ``entry``."""

    entry: str

    @abstractmethod
    def compiled(
        self, constants: Mapping[str, Any], arch: str | None = None, options: Iterable[str] = ()
    ) -> CompiledKernel:
        """The kernel for these constants and this target; ``options`` are what an unknown constant may be meant for."""

    def ir(self, *, arch: str | None = None, **constants: Any) -> Module:
        """The kernel as a module of PTX statements."""
        return self.compiled(constants, arch, ["arch"]).module

    def ptx(self, *, arch: str | None = None, comments: bool = False, **constants: Any) -> str:
        """The PTX text; with ``comments`` each Python line stands before its instructions."""
        found = self.compiled(constants, arch, ["arch", "comments"])
        if not comments:
            return found.text
        from ..text.printer import to_text

        return to_text(found.module, comments=True)

    def cubin(self, *, arch: str | None = None, **constants: Any) -> bytes:
        """The machine code for a target, the PTX's ``.target`` if none is given; needs ptxas."""
        return self._assembled(arch, constants).cubin

    def sass(self, *, arch: str | None = None, lines: bool = False, **constants: Any) -> str:
        """The machine code as text, with ``lines`` each Python line before its instructions; needs nvdisasm."""
        from ..gpu.cubin import disassemble

        return disassemble(self._assembled(arch, constants, "lines").cubin, lines=lines)

    def attributes(self, *, arch: str | None = None, **constants: Any) -> Attributes:
        """Registers, memory and spills, as ptxas reports them for a target."""
        return self._assembled(arch, constants).attributes(self.entry)

    def occupancy(
        self, block: Any, shared: SharedSize = 0, *, arch: str | None = None, **constants: Any
    ) -> Occupancy:
        """How many blocks of this shape are resident on a multiprocessor at once, and what keeps more away.

        ``shared`` is the dynamic shared memory of a launch in bytes, or a function of the threads of a block that gives
        it. ``arch`` is a target; None is the GPU's where launches take a GPU, else the PTX's ``.target``. Needs ptxas.
        """
        from ..gpu.occupancy import occupancy

        target = self._resident_on(arch, constants)
        threads = LaunchConfig((1, 1, 1), block).threads
        return occupancy(self.attributes(arch=target, **constants), target, threads, shared)

    def block_sizes(self, shared: SharedSize = 0, *, arch: str | None = None, **constants: Any) -> BlockSizes:
        """The occupancy for every size of block, a table when printed; ``.best`` has the most warps."""
        from ..gpu.occupancy import block_sizes

        target = self._resident_on(arch, constants)
        return block_sizes(self.attributes(arch=target, **constants), target, shared)

    def report(self, path: str | Path | None = None, *, arch: str | None = None, **constants: Any) -> Report:
        """Python, PTX and SASS side by side, and what a thread takes: an HTML page, complete in itself.

        It is written to ``path``, if there is one; a notebook shows what is returned. ``k[grid, block].report(path,
        arguments)`` has what a launch does too. SASS and registers need ptxas and nvdisasm.

        >>> report = kernel.report()  # doctest: +SKIP
        """
        from .report import kernel_report

        return kernel_report(self.compiled(constants, arch, ["path", "arch"]), arch).write(path)

    def _repr_html_(self) -> str | None:
        """The report without constants; nothing for a kernel that has none so, of which its repr says what it is."""
        try:
            return self.report()._repr_html_()
        except Exception:  # noqa: BLE001 -- what the kernel function raises, when it is only looked at
            return None

    def _resident_on(self, arch: str | None, constants: Mapping[str, Any]) -> str:
        if arch not in (None, "auto"):
            return arch
        wanted = self.compiled(constants, None, ["block", "shared", "arch"]).module.target
        if choose() == "emulator":
            return assembled(wanted)
        from ..gpu.device import driver

        return driver(config.current().launch_device).target(wanted)

    def tiers(self, *, arch: str | None = None, **constants: Any) -> Tiers:
        """Which of the emulator's engines runs the launches so far, and why it is not the fastest: docs/tiers.md.

        >>> print(kernel.tiers())  # doctest: +SKIP
        blocks of (256, 1, 1): block function
        blocks of (256, 1, 1), sanitized: superinstructions: a cluster of several blocks
        """
        from ..emulator.tools.tiers import tiers_of

        return tiers_of(self.compiled(constants, arch, ["arch"]).program, self.entry)

    def _assembled(self, arch: str | None, constants: Mapping[str, Any], *options: str) -> Assembled:
        arch = None if arch == "auto" else arch
        found = self.compiled(constants, arch, ["arch", *options])
        return found.assembled(arch or assembled(found.module.target))

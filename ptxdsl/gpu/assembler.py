"""PTX text to machine code: from the disk cache what was assembled before, and from ptxas the rest.

What runs ptxas and explains what it says (`ptxas`), and what reads machine code (`cubin`), is loaded when it is needed:
a first launch whose machine code is on disk takes a few milliseconds, most of which are imports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .. import config
from ..errors import AssembleError, caller
from ..isa.targets import TARGETS, assembled
from ..launch.disk_cache import DiskCache, digest
from .tools import find_assembler

if TYPE_CHECKING:
    from .cubin import Attributes

__all__ = ["Assembled", "assemble", "assemble_module"]


class Assembled(NamedTuple):
    """Machine code for ``arch``, and the assembler's log."""

    cubin: bytes
    log: str
    arch: str
    text: str

    def attributes(self, entry: str) -> Attributes:
        """What ``entry`` takes of the machine, as ptxas reports it."""
        from .cubin import attributes_of

        return attributes_of(self.text, self.log, self.arch, entry)

    def knows_stack(self, entry: str) -> bool:
        """Whether ptxas could tell how much of a call stack ``entry`` takes, which the driver then provides."""
        return f"Stack size for entry function '{entry}' cannot be" not in self.log


def assemble(text: str, arch: str = "auto", *, options: Sequence[str] = ()) -> bytes:
    """The cubin of a PTX module for a target such as ``"sm_90a"``; ``auto`` is the module's ``.target``.

    ``options`` are passed to ptxas (``"-O1"``, ``"--maxrregcount=64"``). Raises AssembleError, located at the Python
    line where the text has ``.loc``; performance advice (C75xx) becomes a PerformanceWarning.

    >>> cubin = assemble(".version 7.0 .target sm_80 .address_size 64 .visible .entry k() { ret; }", "sm_90")
    >>> cubin[:4]
    b'\\x7fELF'
    """
    return assemble_module(text, arch, options=options).cubin


def assemble_module(
    text: str, arch: str = "auto", *, options: Sequence[str] = (), version: tuple[int, int] | None = None,
    stacks: bool = True,
) -> Assembled:
    """As :func:`assemble`, with the assembler's log. ``version`` is the text's ``.version``, where that is known.

    Without ``stacks`` no warning says that a stack is not known.
    """
    if version is None or arch == "auto":
        from .ptxas import version_and_target

        version, target = version_and_target(text)
        arch = assembled(target) if arch == "auto" else arch
    if isinstance(options, str) or not all(isinstance(option, str) for option in options):
        raise AssembleError(f"options is a list of strings, not {options!r}", loc=caller(), hint='`options=["-O1"]`')
    _check_arch(arch)
    assembler = find_assembler(version, arch)
    disk = DiskCache(config.current().cache_dir)
    key = digest(text, arch, assembler.version, *options)
    kept = disk.get(key)
    if kept is None:
        from .ptxas import run

        cubin, log = run(assembler, text, arch, options)
        disk.put(key, len(log.encode()).to_bytes(8, "little") + log.encode() + cubin)
    else:
        length = int.from_bytes(kept[:8], "little")
        log, cubin = kept[8 : 8 + length].decode(), kept[8 + length :]
    if "warning" in log or "(C" in log:
        from .ptxas import warn

        warn(text, log, stacks=stacks)
    return Assembled(cubin, log, arch, text)


def _check_arch(arch: str) -> None:
    if not isinstance(arch, str) or (arch not in TARGETS and not re.fullmatch(r"sm_\d{2,3}[af]?", arch)):
        raise AssembleError(f"{arch!r} is no target", loc=caller(), hint='write `arch="sm_90a"` or `arch="auto"`')

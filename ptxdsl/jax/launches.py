"""The launches that compiled JAX programs contain: found by the name that the program has of each, and made.

A program of XLA outlives the call that it was traced for, so launches are kept as long as the process. Their names are
made of what they are, so that the same launch has the same name in every process.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

import jax
import numpy as np

from ..errors import Loc, PtxError
from ..frameworks.declaration import Declaration
from ..frameworks.rules import Rule
from .xla_ffi import Call, Memory, handler

__all__ = [
    "TARGET", "Given", "Made", "Operand", "PlannedLaunch", "Result", "Source", "Table", "number_of",
    "register_target",
]

TARGET = "ptxdsl_launch"


@dataclass(frozen=True)
class Given:
    """A value that is known when the program is made."""

    value: Any


@dataclass(frozen=True)
class Operand:
    """An operand of the call: an array, or with ``scalar`` the number in it."""

    index: int
    scalar: bool = False


@dataclass(frozen=True)
class Result:
    """A result of the call, to which the kernel stores."""

    index: int


@dataclass(frozen=True)
class Table:
    """A list of operands."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Made:
    """What a function makes of arrays when their addresses are known, such as a tensor map."""

    rule: Rule
    sources: tuple[tuple[str, Source], ...]


Source = Union[Given, Operand, Result, Table, Made]
"""Where an argument of the kernel comes from when the program runs."""


@dataclass(frozen=True)
class PlannedLaunch:
    """A launch but for the addresses. ``loc`` is where the user called for it, for errors of a thread of XLA's."""

    declaration: Declaration
    sources: tuple[Source, ...]
    constants: Mapping[str, Any]
    geometry: Mapping[str, Any]
    loc: Loc | None

    def keep(self) -> str:
        """The name by which a program finds it."""
        made = (self.declaration.kernel.ptx(**self.constants), self.sources, sorted(self.constants.items()))
        name = hashlib.sha256(repr((*made, sorted(self.geometry.items()))).encode()).hexdigest()[:32]
        _KEPT.setdefault(name, self)
        return name

    def arguments(self, arguments: list[Any], results: list[Any]) -> list[Any]:
        """The kernel's arguments, of the operands and the results."""
        def found(source: Source) -> Any:
            if isinstance(source, Given):
                return source.value
            if isinstance(source, Result):
                return results[source.index]
            if isinstance(source, Operand):
                operand = arguments[source.index]
                return _number(operand) if source.scalar and isinstance(operand, Memory) else operand
            if isinstance(source, Table):
                return [found(item) for item in source.items]
            return source.rule({name: found(each) for name, each in source.sources})

        return [found(source) for source in self.sources]

    def run(self, call: Call) -> None:
        """Launch, on the GPU in the stream on which XLA wants the results."""
        try:
            self.declaration.launched(
                self.arguments(call.arguments, call.results), self.constants, self.geometry,
                "emulator" if call.device is None else "gpu", call.stream,
            )
        except PtxError as error:
            if error.loc is None:
                error.loc = self.loc
            raise


_KEPT: dict[str, PlannedLaunch] = {}


def _number(memory: Memory) -> Any:
    """The number in an array of one; of one on a GPU all that was submitted is waited for."""
    host = np.empty((), memory.dtype)
    if memory.device is None:
        ctypes.memmove(host.ctypes.data, memory.address, host.nbytes)
    else:
        from ..gpu.device import driver

        gpu = driver(memory.device)
        gpu.synchronize()
        with gpu.current():
            gpu.call("cuMemcpyDtoH", host.ctypes.data, memory.address, host.nbytes)
    return number_of(host)


def number_of(value: np.ndarray[Any, Any]) -> Any:
    """The number in an array of one, as Python's."""
    return value.item() if value.dtype.kind in "iufb" else float(value)


def _run(call: Call) -> None:
    _KEPT[call.attribute("launch")].run(call)


_handlers: list[Any] = []
"""The functions that XLA has the addresses of."""


def register_target() -> None:
    """Tell XLA of the handlers, once."""
    if not _handlers:
        for platform in ("cpu", "CUDA"):
            function: Callable[..., Any] = handler(_run, platform)
            _handlers.append(function)
            jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(function), platform=platform)

"""The smallest launch that still goes wrong: grid, block, numbers, arrays and instructions, each as small as can be.

A finding in a large kernel is read faster in a small one. Each reduction is tried on the emulator, and kept if the same
error comes again (Zeller and Hildebrandt 2002, "Simplifying and isolating failure-inducing input").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..analysis.def_use import DefUse
from ..errors import EmulationError, LaunchError, PtxError, caller
from ..ir import Call, Instruction, Module
from ..kernel.compiled_kernel import CompiledKernel
from ..kernel.dispatcher import Dispatcher, Launch
from ..text.printer import to_text

__all__ = ["Minimal", "minimise"]


@dataclass(frozen=True)
class Minimal:
    """A launch that goes wrong, and that nothing can be taken from.

    ``ptx`` is the kernel, ``arguments`` what it is launched with; ``error`` is what it raises, ``instructions`` how
    many there were and are. Call it to have it raised again.
    """

    entry: str
    ptx: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    error: EmulationError
    instructions: tuple[int, int]
    trials: int
    launch: Launch

    def __call__(self) -> None:
        """Launch it, with copies of the arguments."""
        self.launch(*_copied(self.arguments))

    def __str__(self) -> str:
        arguments = ", ".join(_described(each) for each in self.arguments)
        before, after = self.instructions
        return (
            f"{self.entry}[{self.grid}, {self.block}]({arguments}), {after} of {before} instructions, "
            f"after {self.trials} trials\n{type(self.error).__name__}: {self.error}"
        )


def minimise(launch: Launch, *arguments: Any, limit: int = 2000, **named: Any) -> Minimal:
    """Make a launch that goes wrong as small as it can be while the same goes wrong.

    Args:
        launch: ``k[grid, block]`` or ``k.configure(grid, block, sanitize="all", ...)``, of a kernel or foreign PTX.
        arguments: numpy arrays and numbers; they are not changed.
        limit: The most trials.
        named: Compile-time constants.

    The same is an error of the same class with the same message but for numbers. Branches, and what they depend on,
    stay, so that no loop becomes endless.

    Raises:
        LaunchError: The launch does nothing wrong.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, shared
    >>> from ptxdsl.testing import minimise
    >>> @ptx_kernel
    ... def k(x: Ptr[f32], y: Ptr[f32]):
    ...     tile = shared(f32, 128)
    ...     t = ptx.tid.x
    ...     y[t] = ptx.sqrt.rn.f32(x[t] * x[t] + 1.0)
    ...     tile[t] = x[t]
    ...     x[t] = tile[127 - t]
    >>> x, y = np.ones((2, 512), np.float32)
    >>> small = minimise(k.configure(4, 128, sanitize="race"), x, y)
    >>> small.grid, small.instructions[0] > small.instructions[1]
    ((1, 1, 1), True)
    >>> small()
    Traceback (most recent call last):
        ...
    ptxdsl.errors.RaceError: race on tile[...
    """
    search = _Search(launch, arguments, named, limit)
    search.shrink()
    return search.minimal()


class _Reduced(Dispatcher):
    """A kernel with other instructions than it was traced with."""

    def __init__(self, compiled: CompiledKernel, module: Module) -> None:
        super().__init__(compiled.entry)
        self.parameters = tuple(compiled.parameters)
        text = to_text(module) if compiled.foreign else None
        self._compiled = CompiledKernel(compiled.entry, compiled.parameters, module, set(), text=text)

    def compiled(
        self, constants: Mapping[str, Any], arch: str | None = None, options: Iterable[str] = (),  # noqa: ARG002
    ) -> CompiledKernel:
        """The kernel."""
        return self._compiled


class _Search:
    """The smallest launch so far, and what is tried next."""

    def __init__(self, launch: Launch, arguments: Sequence[Any], constants: dict[str, Any], limit: int) -> None:
        self.config, self.arguments = launch.config, _copied(arguments)
        self._compiled = launch.kernel.compiled(constants)
        self.module = self._compiled.module
        self.trials, self._limit = 0, limit
        self._tried: set[Any] = set()
        error = self._error()
        if error is None:
            raise LaunchError(
                f"kernel `{self._compiled.entry}` does nothing wrong with these arguments", loc=caller(),
                hint='ask for the check: `k.configure(grid, block, sanitize="all")`',
            )
        self.error, self._wanted, self._before = error, _kind(error), self._count()

    def _size(self) -> tuple[Any, ...]:
        arrays = tuple(each.shape if isinstance(each, np.ndarray) else each for each in self.arguments)
        return self.config.grid, self.config.block, arrays, self._count()

    def _key(self) -> Any:
        arguments = tuple((a.shape, bool(a.any())) if isinstance(a, np.ndarray) else a for a in self.arguments)
        body = self.module.function(self._compiled.entry).body or []
        return self.config.grid, self.config.block, arguments, tuple(map(id, body))

    def _count(self) -> int:
        return sum(1 for _ in self.module.function(self._compiled.entry).instructions())

    def _launch(self) -> Launch:
        kernel = _Reduced(self._compiled, self.module)
        config = self.config
        return kernel.configure(
            config.grid, config.block, shared=config.shared, cluster=config.cluster, cooperative=config.cooperative,
            sanitize=config.sanitize, seed=config.seed, schedule=config.schedule, backend="emulator",
        )

    def _error(self) -> EmulationError | None:
        """What the launch does wrong; other errors say that it is no launch."""
        try:
            self._launch()(*_copied(self.arguments))
        except EmulationError as error:
            return error
        except PtxError:
            if not self._tried:
                raise
        return None

    def _keep(self, **changes: Any) -> bool:
        """Try a change, and keep it if the same goes wrong."""
        if self.trials >= self._limit:
            return False
        before = {name: getattr(self, name) for name in changes}
        for name, value in changes.items():
            setattr(self, name, value)
        error, key = None, self._key()
        if key not in self._tried:
            self._tried.add(key)
            self.trials += 1
            error = self._error()
        if error is not None and _kind(error) == self._wanted:
            self.error = error
            return True
        for name, value in before.items():
            setattr(self, name, value)
        return False

    def shrink(self) -> None:
        """Reduce as long as anything can be reduced."""
        changed = True
        while changed and self.trials < self._limit:
            before = self._size()
            self._shrink_dimensions("grid")
            self._shrink_dimensions("block")
            self._shrink_arguments()
            self._shrink_instructions()
            changed = self._size() != before

    def _shrink_dimensions(self, name: str) -> None:
        for axis in range(3):
            for value in _smaller(getattr(self.config, name)[axis], 1):
                given = list(getattr(self.config, name))
                given[axis] = value
                if self._resized(name, tuple(given)):
                    break

    def _resized(self, name: str, dimensions: tuple[int, ...]) -> bool:
        try:
            changes: dict[str, Any] = {name: dimensions}
            return self._keep(config=replace(self.config, **changes))
        except LaunchError:  # a cluster that does not divide the grid
            return False

    def _shrink_arguments(self) -> None:
        for n, value in enumerate(self.arguments):
            for simpler in _simpler(value):
                if self._keep(arguments=(*self.arguments[:n], simpler, *self.arguments[n + 1 :])):
                    break

    def _shrink_instructions(self) -> None:
        """Take runs of statements away, half of them first, then shorter ones."""
        length = len(self._removable())
        while length:
            start = 0
            while start < len(removable := self._removable()):
                gone = set(removable[start : start + length])
                if not self._keep(module=self._without(gone)):
                    start += length
            length //= 2

    def _removable(self) -> list[int]:
        """The places of the statements that no branch depends on."""
        body = self.module.function(self._compiled.entry).body or []
        found = {n: DefUse.of(s) for n, s in enumerate(body) if isinstance(s, (Instruction, Call))}
        kept = {n for n, each in found.items() if _controls(each.statement)}
        needed: set[object] = set()
        count = -1
        while count != len(kept):
            count = len(kept)
            needed.update(register for n in kept for register in found[n].uses)
            kept.update(n for n, each in found.items() if not needed.isdisjoint(each.writes))
        return [n for n in found if n not in kept]

    def _without(self, gone: set[int]) -> Module:
        function = self.module.function(self._compiled.entry)
        body = [statement for n, statement in enumerate(function.body or []) if n not in gone]
        return replace(
            self.module,
            functions=[replace(each, body=body) if each is function else each for each in self.module.functions],
        )

    def minimal(self) -> Minimal:
        """What is left."""
        return Minimal(
            self._compiled.entry, to_text(self.module), self.config.grid, self.config.block, self.arguments,
            self.error, (self._before, self._count()), self.trials, self._launch(),
        )


def _controls(statement: Instruction | Call) -> bool:
    return isinstance(statement, Instruction) and bool(statement.form.effects.control)


def _copied(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in arguments)


def _kind(error: EmulationError) -> tuple[type, str]:
    """What makes two errors the same: the class, and the message without its numbers."""
    return type(error), re.sub(r"-?\d[\d.,]*", "N", error.message.partition("\n")[0])


def _smaller(value: int, least: int) -> Iterator[int]:
    """Smaller numbers, the smallest first."""
    tried = least
    while tried < value:
        yield tried
        tried *= 2
    if value - 1 > least:
        yield value - 1


def _simpler(value: Any) -> Iterator[Any]:
    """Simpler arguments, the simplest first."""
    if isinstance(value, np.ndarray) and value.ndim:
        for extent in _smaller(value.shape[0], 1):
            yield value[:extent].copy()
        if value.dtype.kind in "iuf" and value.any():
            yield np.zeros_like(value)
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        yield from _smaller(value, 1)


def _described(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)

"""From a Python function to something that can be launched: ``@ptx_kernel``, ``k[grid, block]``, ``k.ptx()``.

A kernel is traced when it is first needed, once for each combination of compile-time constants and target, and again
when something has changed that it read besides these: globals, closures, helpers and their data, as far as
`introspection.dependencies` sees. What was traced before is kept, and taken again when the world is as it was then.
From the trace on, everything works on PTX text, which is why foreign PTX (:func:`ptxdsl.load`) is launched by the same
code.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from ctypes import c_bool
from time import perf_counter
from types import FunctionType
from typing import Any, overload

from .. import config, ir
from ..collector import paused
from ..errors import (
    LaunchError, Loc, PerformanceWarning, TargetError, TraceError, caller, did_you_mean, similar, with_article,
)
from ..ir.signature import Signature
from ..isa.targets import TARGETS
from ..language import reference_counts
from ..language.introspection.changed_names import changed_name
from ..language.introspection.contents import code_key, contents
from ..language.introspection.dependencies import Dependencies
from ..language.pickling import PickledAsFunction
from ..language.tracing import check_source, complete, traced
from . import directives as performance_directives
from .compiled_kernel import CompiledKernel
from .dispatcher import Dispatcher

__all__ = ["Kernel", "ptx_kernel"]

_RESERVED = ("arch", "comments", "lines")
_KNOWN = 64
"""The traces that a kernel keeps."""
_LATEST = 1024
"""Of how many combinations of constants it knows the latest one."""
_CAME_ALONG = 64
"""Of how many kernels that came from other processes the traces are kept."""
_IN_VAIN = 8
"""After so many traces of which each served one launch the user is told."""


class Kernel(PickledAsFunction, Dispatcher):
    """A kernel written in Python.

    Made by :func:`ptx_kernel`; launched by ``k[grid, block](arguments, constants by keyword)``, with a stream,
    clusters, the sanitizer and the like by ``k.configure(grid, block, ...)``. ``k.ptx()``, ``k.ir()``, ``k.cubin()``,
    ``k.sass()`` and ``k.attributes()`` show what it becomes. TraceError and its subclasses say why a function cannot
    become PTX, LaunchError what of a launch does not fit, before anything runs.

    >>> @ptx_kernel
    ... def fill(x: Ptr[u32], *, value: int = 1):
    ...     x[ptx.tid.x] = value
    >>> x = np.zeros(3, np.uint32)
    >>> fill[1, 3](x, value=7)
    >>> x.tolist()
    [7, 7, 7]
    """

    _kind = "kernel"

    def __init__(
        self, function: Callable[..., Any], *, names: Mapping[str, Any] | None = None, name: str | None = None,
        arch: str | None = None, lineinfo: bool | None = None, **directives: Any,
    ) -> None:
        code = _checked(function)
        self.loc = Loc(code.co_filename, code.co_firstlineno)
        self.signature = Signature.of(function, names)
        self.parameters = self.signature.parameters
        super().__init__(_entry_name(name or function.__name__, self.loc))
        self.function, self.arch, self.lineinfo = function, arch, lineinfo
        _check_target(arch or "auto")
        self.directives = performance_directives.of_options(directives, self.loc)
        self._check_constants()
        functools.update_wrapper(self, function)
        self._in_vain = 0
        """How many traces one after the other served one launch each."""
        self._latest: dict[Any, tuple[Dependencies, CompiledKernel]] = {}
        self._known: dict[Any, CompiledKernel] = {}
        """What was traced, by constants and target and by all that the trace depends on; the oldest first."""
        self._came_along = False
        """Whether it came with its function from another process."""

    def _source(self) -> tuple[FunctionType, Mapping[str, Any]]:
        assert isinstance(self.function, FunctionType)
        return self.function, {parameter.name: parameter.annotation for parameter in self.parameters}

    def _options(self) -> dict[str, Any]:
        return {"name": self.entry, "arch": self.arch, "lineinfo": self.lineinfo, "directives": self.directives}

    def _restore(self, function: FunctionType, options: dict[str, Any]) -> None:
        directives = options.pop("directives")
        Kernel.__init__(self, function, **options)
        self.directives = directives
        self._known, self._came_along = _traced_before(self, function), True

    def _check_constants(self) -> None:
        for name in self.signature.constants:
            if name in _RESERVED:
                raise TraceError(
                    f"a compile-time constant of kernel `{self.entry}` cannot be called `{name}`, "
                    f"which `k.ptx({name}=...)` uses", loc=self.loc,
                )

    def compiled(
        self, constants: Mapping[str, Any], arch: str | None = None, options: Iterable[str] = ()
    ) -> CompiledKernel:
        """The kernel for these constants and this target; traced if it was not before."""
        settings = config.current()
        target = arch or self.arch or settings.arch
        lineinfo = settings.lineinfo if self.lineinfo is None else self.lineinfo
        key: tuple[Any, ...] = (target, lineinfo)
        if constants:
            key += tuple((name, _constant_key(self.entry, name, value)) for name, value in sorted(constants.items()))
        found = self._latest.get(key)
        if found is not None and found[0].unchanged():
            return found[1]
        _check_target(target)
        call = f"{self.entry}[grid, block](..., {{}})"
        values = complete(self.signature, constants, f"kernel `{self.entry}`", LaunchError, caller, call, options)
        latest = found
        found = self._find(key, values) if found is not None or self._came_along else None
        if found is None:
            found = self._new(key, values, target, lineinfo)
            self._note_change(latest, found[0])
        found[1].observed = found[0].observed
        if len(self._latest) >= _LATEST:
            self._latest.pop(next(iter(self._latest)), None)
        self._latest[key] = found
        return found[1]

    def _note_change(self, latest: tuple[Dependencies, CompiledKernel] | None, now: Dependencies) -> None:
        """Warn, once, of a kernel that every launch traces again."""
        if latest is None:
            return
        before = latest[0]
        self._in_vain = 0 if before.observed.lasted else self._in_vain + 1
        if self._in_vain < _IN_VAIN or "retraced" in self.warned:
            return
        self.warned.add("retraced")
        name, loc = changed_name(before.key, now.key), caller()
        what = f"`{name}`" if name else "something that it reads"
        warnings.warn_explicit(
            f"kernel `{self.entry}` was traced again at each of the last {_IN_VAIN} launches, since {what} had "
            f"changed each time; what changes from launch to launch is a parameter of the kernel",
            PerformanceWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
        )

    def _find(self, key: Any, constants: Mapping[str, Any]) -> tuple[Dependencies, CompiledKernel] | None:
        """An earlier trace that depends on what is there now."""
        now = self._dependencies(constants)
        known = self._known.get((key, now.key))
        if known is None:
            return None
        return now, copy(known) if self._came_along else known  # each knows by itself what has changed since

    def _new(
        self, key: Any, constants: dict[str, Any], target: str, lineinfo: bool
    ) -> tuple[Dependencies, CompiledKernel]:
        compiled = self._trace(constants, target, lineinfo)
        # The same text keeps what is loaded of it, and with it the variables of the module.
        known = (made for (found, _), made in list(self._known.items()) if found == key)
        compiled = next((made for made in known if made.text == compiled.text), compiled)
        now = self._dependencies(constants)
        while len(self._known) >= _KNOWN:
            self._known.pop(next(iter(self._known)), None)
        self._known[key, now.key] = compiled
        return now, compiled

    def _dependencies(self, constants: Mapping[str, Any]) -> Dependencies:
        assert isinstance(self.function, FunctionType)
        return Dependencies(self.function, constants.values())

    def _trace(self, constants: dict[str, Any], arch: str, lineinfo: bool) -> CompiledKernel:
        start = perf_counter()
        reference_counts.measure()
        with paused():
            module, needs_verification, block_needs, box_needs = traced(
                self.function, constants=constants, arch=arch, name=self.entry, signature=self.signature
            )
        performance_directives.add(module, self.entry, self.directives, arch, self.loc)
        if not lineinfo:
            for instruction in module.function(self.entry).body or ():
                if isinstance(instruction, (ir.Instruction, ir.Call)):
                    instruction.loc = None
        if needs_verification:
            from ..verify import verify

            verify(module)
        if config.current().log != "off":
            count, taken = sum(1 for _ in module.function(self.entry).instructions()), (perf_counter() - start) * 1e3
            config.report("info", f"traced {self.entry} for {module.target}: {count} instructions in {taken:.1f} ms")
        return CompiledKernel(
            self.entry, self.parameters, module, self.warned, block_needs=block_needs, box_needs=box_needs
        )

    @property
    def traces(self) -> list[CompiledKernel]:
        """What it was traced to so far, the oldest first."""
        return list(self._known.values())

    def retrace(self) -> None:
        """Forget what was traced: for changes that a launch cannot see, as in files that the kernel function reads."""
        self._latest.clear()
        self._known.clear()
        self.generation.value = False
        self.generation = c_bool(True)

    def __repr__(self) -> str:
        return f"<ptx_kernel {self.entry}({', '.join(f'{p.name}: {p.annotation}' for p in self.parameters)})>"


@overload
def ptx_kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def ptx_kernel(
    *, name: str | None = ..., arch: str | None = ..., lineinfo: bool | None = ..., maxntid: Any = ...,
    reqntid: Any = ..., minnctapersm: int | None = ..., maxnreg: int | None = ...,
    reqnctapercluster: Any = ..., explicitcluster: bool = ..., maxclusterrank: int | None = ...,
    blocksareclusters: bool = ..., minperctamemory: int | None = ..., pragma: str | tuple[str, ...] | None = ...,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def ptx_kernel(function: Any = None, /, **options: Any) -> Any:
    """Make a kernel of a function: ``@ptx_kernel`` or ``@ptx_kernel(arch="sm_90a", maxntid=256)``.

    ``name`` is the entry's name in PTX (the function's), ``arch`` the target (the lowest that the instructions need),
    ``lineinfo`` whether each instruction carries its Python line (yes). The rest are PTX's performance directives, with
    an int, a tuple of up to three, or True for those without a number; ``pragma`` is the text of one, or several.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, use, when
    >>> @ptx_kernel(maxntid=256)
    ... def double(n: u32, x: Ptr[f32]):
    ...     i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ...     with when(i < n):
    ...         x[i] = x[i] + x[i]
    >>> import numpy as np
    >>> x = np.arange(5, dtype=np.float32)
    >>> with use("emulator"):
    ...     double[1, 256](5, x)
    >>> x
    array([0., 2., 4., 6., 8.], dtype=float32)
    """
    known = ("name", "arch", "lineinfo", *performance_directives.OPTIONS)
    unknown = [option for option in options if option not in known]
    if unknown:
        raise TraceError(
            f"ptx_kernel has no option `{unknown[0]}`", loc=caller(),
            hint=did_you_mean(similar(unknown[0], known), "`{}=`"),
        )
    names = sys._getframe(1).f_locals
    if function is not None:
        return Kernel(function, names=names, **options)
    return lambda decorated: Kernel(decorated, names=names, **options)


_traces: dict[Hashable, dict[Any, CompiledKernel]] = {}
"""Of kernels that came with their functions from other processes."""


def _traced_before(kernel: Kernel, function: FunctionType) -> dict[Any, CompiledKernel]:
    """What the same kernel has been traced to, where it came before: a task of Dask, for one, brings it each time."""
    key = code_key(function.__code__), repr(kernel), repr((kernel.arch, kernel.lineinfo, kernel.directives))
    found = _traces.setdefault(key, {})
    if len(_traces) > _CAME_ALONG:
        _traces.pop(next(iter(_traces)), None)
    return found


def _checked(function: Any) -> Any:
    """The code of a function that can be traced at all."""
    if not inspect.isfunction(function):
        raise TraceError(
            f"ptx_kernel makes a kernel of a function, not of {function!r}", loc=caller(),
            hint="write `@ptx_kernel` above a `def`",
        )
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TraceError(
            f"kernel `{function.__name__}` is a generator or a coroutine, which cannot be traced",
            loc=Loc(code.co_filename, code.co_firstlineno), hint="remove `yield`, `async` and `await`",
        )
    check_source(function)
    return code


def _check_target(target: str) -> None:
    if target != "auto" and target not in TARGETS:
        hint = did_you_mean(similar(str(target), TARGETS), '`arch="{}"`')
        raise TargetError(f"there is no target {target!r}", loc=caller(), hint=hint)


def _entry_name(name: str, loc: Loc) -> str:
    plain = name.isascii() and name.isidentifier() and not name.startswith("_")
    if not plain and not re.fullmatch(r"[a-zA-Z][\w$]*|[_$%][\w$]+", name, re.ASCII):
        raise TraceError(f"{name!r} is no name of an entry in PTX", loc=loc, hint='`@ptx_kernel(name="kernel")`')
    return name


def _constant_key(kernel: str, name: str, value: Any) -> Hashable:
    """The key of a compile-time constant: by what it holds, and only what Python can hash."""
    if not _has_hash(value):
        while isinstance(value, tuple):
            value = next(item for item in value if not _has_hash(item))
        instead = {"list": "a tuple", "dict": "a tuple of pairs", "set": "a frozenset"}.get(type(value).__name__)
        raise LaunchError(
            f"the compile-time constant `{name}` of kernel `{kernel}` is {with_article(type(value).__name__)}, "
            "which cannot be one: it has no hash", loc=caller(), hint=f"pass {instead}" if instead else None,
        )
    return contents(value)


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True

"""`ptx_func`: a Python function that becomes a real ``.func``, called by ``call`` instead of being traced in place.

A plain helper is the better choice nearly always: it costs nothing at run time. A function is for code that is large
and called from several places, and for recursion. It is traced at its first call from a kernel, once for each choice of
its compile-time constants, with a trace of its own: no value of the kernel is visible inside, only the parameters are.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any, overload

from .. import ir
from ..errors import Loc, PtxTypeError, TraceError, caller
from ..ir.signature import HandleType, KernelParameter, PtrType, Signature, definition_of
from ..isa import lookup
from ..isa.directives import DIRECTIVES
from ..types import ScalarType, pred, u64
from .builder import Trace, current, swapped
from .errors import conversions, described, located
from .introspection.bytecode import flow_of, is_empty
from .introspection.call_sites import location_of, user_frame
from .introspection.contents import contents
from .memory.pointers import Pointer
from .pickling import PickledAsFunction
from .rules import structure
from .rules.aliasing import check_alias
from .tracing import argument, check_source, complete, finish
from .values.literals import is_number, literal
from .values.value import Result, Value

__all__ = ["Subroutine", "ptx_func"]

RESULT = "result"
"""The name of the return parameter of every function."""


_LINKAGES = ("", "visible", "weak", "extern")


@overload
def ptx_func(function: Callable[..., Any]) -> Subroutine: ...


@overload
def ptx_func(*, linkage: str = "", noreturn: bool = False) -> Callable[[Callable[..., Any]], Subroutine]: ...


def ptx_func(
    function: Callable[..., Any] | None = None, *, linkage: str = "", noreturn: bool = False
) -> Subroutine | Callable[[Callable[..., Any]], Subroutine]:
    """Make a Python function a ``.func`` that kernels call.

    Its parameters are annotated as a kernel's (scalars and ``Ptr[T]``), its result by ``-> f32``; keyword-only
    parameters are compile-time constants. It may call itself. Source: PTX manual, Function declarations and the ABI.

    With a ``linkage`` (``"visible"`` or ``"weak"``) other modules can call it, under its Python name. ``"extern"`` is
    for one that another module has, with which this one is linked: its body is ``...``. A ``noreturn`` function ends
    in a trap or an exit.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_func, ptx_kernel
    >>> @ptx_func
    ... def hypot(a: f32, b: f32) -> f32:
    ...     return ptx.sqrt.rn.f32(a * a + b * b)
    >>> @ptx_kernel
    ... def kernel(x: Ptr[f32]):
    ...     x[0] = hypot(x[0], x[1])
    >>> import numpy as np
    >>> x = np.array([3, 4], np.float32)
    >>> kernel[1, 1](x)
    >>> float(x[0])
    5.0
    """
    names = sys._getframe(1).f_locals
    if linkage not in _LINKAGES:
        known = ", ".join(map(repr, _LINKAGES[1:]))
        raise TraceError(f"`ptx_func` has no linkage {linkage!r}", loc=caller(), hint=f"there are {known}")

    def made(function: Callable[..., Any]) -> Subroutine:
        check_source(function)
        return Subroutine(function, names, linkage, noreturn)

    return made if function is None else made(function)


class Subroutine(PickledAsFunction):
    """A function made by `ptx_func`; call it inside a kernel."""

    _kind = "function"

    __name__: str

    def __init__(
        self, function: Callable[..., Any], names: Mapping[str, Any], linkage: str = "", noreturn: bool = False
    ) -> None:
        functools.update_wrapper(self, function)
        assert isinstance(function, FunctionType)
        self._function = function
        self._linkage = linkage
        self._directives: list[ir.Directive] = [("noreturn", ())] if noreturn else []
        self.loc = definition_of(function.__code__)
        self._signature = Signature.of(function, names)
        for parameter in self._signature.parameters:
            if not isinstance(parameter.annotation, (ScalarType, PtrType, HandleType)):
                raise TraceError(
                    f"parameter `{parameter.name}` of function `{self.__name__}` is {parameter.annotation}",
                    loc=self.loc,
                    hint="a function takes scalars and `Ptr[T]`; pass the pointer, shape and strides one by one",
                )
        self._result = self._annotated_result(names)
        self._check_linkage(noreturn)

    def _source(self) -> tuple[FunctionType, Mapping[str, Any]]:
        annotations = {parameter.name: parameter.annotation for parameter in self._signature.parameters}
        return self._function, {**annotations, "return": self._result}

    def _options(self) -> dict[str, Any]:
        return {"linkage": self._linkage, "noreturn": bool(self._directives)}

    def _restore(self, function: FunctionType, options: dict[str, Any]) -> None:
        Subroutine.__init__(self, function, {}, **options)

    def _check_linkage(self, noreturn: bool) -> None:
        name, named = self.__name__, list(self._signature.constants)
        if noreturn and self._result is not None:
            raise TraceError(
                f"function `{name}` never returns, and is annotated `-> {self._result}`", loc=self.loc,
                hint="leave out the result, or `noreturn`",
            )
        if self._linkage and named:
            raise TraceError(
                f"function `{name}` has one name for other modules, and `{named[0]}` is a compile-time constant, with "
                "which there may be several of it", loc=self.loc, hint="make it a parameter, or leave out `linkage`",
            )
        if self._linkage == "extern" and not is_empty(self._function.__code__):
            raise TraceError(
                f"function `{name}` is another module's, and has a body here", loc=self.loc,
                hint='write `...` for it, or `linkage="visible"`',
            )

    def __call__(self, *arguments: Any, **constants: Any) -> Value | None:
        trace = current()
        name, sources, kind = self.bound(trace, arguments, constants)
        if kind is None:
            trace.call(name, sources, ())
            return None
        register = trace.fresh(kind)
        trace.call(name, sources, (register,))
        return Result(register, kind, trace.region)

    def bound(
        self, trace: Trace, arguments: tuple[Any, ...], constants: dict[str, Any]
    ) -> tuple[str, tuple[ir.Operand, ...], ScalarType | None]:
        """The function's name in PTX, the operands of a call with these arguments, and the type of its result."""
        if len(arguments) != len(self._signature.parameters):
            wanted = ", ".join(f"{p.name}: {p.annotation}" for p in self._signature.parameters)
            raise located(
                TraceError, f"function `{self.__name__}` takes {len(self._signature.parameters)} arguments, "
                f"and was given {len(arguments)}", f"`{self.__name__}({wanted})`",
            )
        name = self._defined(trace, constants)
        sources = tuple(
            self._passed(trace, parameter, value) for parameter, value in zip(self._signature.parameters, arguments)
        )
        return name, sources, self._result

    def symbol(self, trace: Trace) -> ir.Symbol:
        """Its name as an operand: ``ptx.mov.u64(f)`` is its address."""
        return ir.Symbol(self._defined(trace, {}))

    def _annotated_result(self, names: Mapping[str, Any]) -> ScalarType | None:
        annotation = self._function.__annotations__.get("return")
        if isinstance(annotation, str):
            annotation = eval(annotation, self._function.__globals__, dict(names))  # what get_annotations does
        if annotation is None or (isinstance(annotation, ScalarType) and annotation is not pred):
            return annotation
        raise TraceError(
            f"function `{self.__name__}` returns {annotation!r}, and a function returns one scalar or nothing",
            loc=self.loc, hint="write `-> f32`; further results go through a `Ptr[T]` parameter",
        )

    def _passed(self, trace: Trace, parameter: KernelParameter, value: Any) -> ir.Operand:
        """An argument as the call's operand; a PtxTypeError where its type is another."""
        wanted = u64 if isinstance(parameter.annotation, HandleType) else parameter.annotation
        if isinstance(wanted, PtrType):
            there = isinstance(value, Pointer) and value.dtype is wanted.dtype and value.space == "global"
            if there and (wanted.const or not value.read_only):
                return value.address.use(trace)
        elif isinstance(value, Value) and value.type is wanted:
            return value.use(trace)
        elif is_number(value):
            assert isinstance(wanted, ScalarType)
            return literal(value, wanted, wanted.register)
        got = value.type if isinstance(value, Value) else described(value)
        hint = conversions(value, wanted) if isinstance(value, Value) and isinstance(wanted, ScalarType) else None
        raise located(
            PtxTypeError, f"parameter `{parameter.name}` of function `{self.__name__}` is {wanted}, not {got}", hint
        )

    def _defined(self, caller: Trace, given: dict[str, Any]) -> str:
        """The name of the function for these constants in the caller's module, traced now if it is not there yet."""
        constants = complete(
            self._signature, given, f"function `{self.__name__}`", TraceError, lambda: location_of(user_frame(1)),
            f"{self.__name__}(..., {{}})",
        )
        key = (self, contents(constants))
        head = caller.functions.get(key)
        if head is None:
            results = [] if self._result is None else [ir.Parameter(RESULT, self._result.register)]
            parameters = [replace(entry, pointer=None) for entry in self._signature.ptx]
            name = caller.unique(self.__name__)
            if self._linkage and name != self.__name__:
                raise located(
                    TraceError, f"function `{self.__name__}` is called so in other modules, and the kernel has another "
                    f"`{self.__name__}`", "give the other one another name",
                )
            head = ir.Function(
                name, "func", parameters, results, list(self._directives), body=None,
                linkage=self._linkage,
            )
            caller.functions[key] = head
            if self._directives:
                caller.require(DIRECTIVES["noreturn"].needs, "`.noreturn`")
            if self._linkage == "extern":
                caller.declare(head)
            else:
                self._trace(caller, head, constants)
        elif head.name not in caller.declarations:
            caller.declare(head)  # it is being traced: the call stands before the definition
        return head.name

    def _trace(self, caller: Trace, head: ir.Function, constants: dict[str, Any]) -> None:
        inner = Trace(head.name, self.loc, caller.arch, self._function.__code__)
        inner.before_write = check_alias
        inner.adopt(caller)
        inner.called = True
        inner.reserve(RESULT)
        with swapped(inner):
            values = [argument(inner, parameter) for parameter in self._signature.parameters]
            self._return(inner, self._function(*values, **constants))
            structure.finish(inner)
        caller.declare(finish(inner, head))

    def _return(self, trace: Trace, result: Any) -> None:
        """Store what the Python function returned."""
        if self._result is None:
            if result is not None:
                raise located(
                    TraceError, f"function `{self.__name__}` returns {described(result)} and has no result type",
                    f"annotate it: `def {self.__name__}(..) -> f32:`",
                )
            return
        if isinstance(result, Value) and result.type is self._result:
            source: ir.Operand = result.use(trace)
        elif is_number(result):
            source = literal(result, self._result, self._result.register)
        else:
            got = result.type if isinstance(result, Value) else described(result)
            raise located(TraceError, f"function `{self.__name__}` returns {got}, and is annotated `-> {self._result}`")
        form = lookup(f"st.param.{self._result.register}")[0]
        trace.emit(form, (ir.Address(ir.Symbol(RESULT)), source), loc=self._returning(trace))

    def _returning(self, trace: Trace) -> Loc:
        """The line of the `return`; of several, the first after the last instruction, or else the last before it."""
        code = self._function.__code__
        steps = flow_of(code).steps
        returns = sorted({step.line for step in steps if step.opname.startswith("RETURN_")})
        places = {s.loc.line for s in trace.body if isinstance(s, ir.Instruction) and s.loc is not None}
        last = max(places.intersection(step.line for step in steps), default=0)
        return Loc(code.co_filename, next((line for line in returns if line >= last), returns[-1]))


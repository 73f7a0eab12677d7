"""``ptx.call``: the instruction behind the call of a `ptx_func`, for what a Python call does not say.

``f(x)`` is the usual spelling. Here a call may be guarded, be uniform (``ptx.call.uni``), or go through an address: a
function's address is ``ptx.mov.u64(f)``, and ``prototype=g`` says that what lies there is called as ``g`` is.
"""

from __future__ import annotations

from typing import Any

from .. import ir
from ..errors import PtxTypeError, with_article
from ..types import u64
from .builder import Trace, current
from .errors import described, located
from .memory.addresses import guard_of
from .subroutine import Subroutine
from .values.value import Reg, Result, Value

__all__ = ["call"]


def call(
    function: Any, arguments: tuple[Any, ...], out: Any, guard: Any, prototype: Any, uniform: bool
) -> Value | Reg | None:
    """Append the call of a `ptx_func`, or of the address of one; its result."""
    trace = current()
    model = function if prototype is None else prototype
    if not isinstance(model, Subroutine):
        raise located(
            PtxTypeError, f"`ptx.call` of {described(function)}",
            "`ptx.call(f, ..)` takes a `@ptx_func`; `ptx.call(address, .., prototype=f)` a u64, the address of one",
        )
    name, sources, kind = model.bound(trace, arguments, {})
    callee: ir.Symbol | ir.Register = ir.Symbol(name)
    label = None
    if prototype is not None:
        callee, label = _address(trace, function), _prototype(trace, name)
    predicate = None if guard is None else guard_of(trace, guard)
    if kind is None:
        if out is not None:
            raise located(PtxTypeError, f"function `{name}` has no result for `out`", "leave it out")
        targets: tuple[ir.Register, ...] = ()
        result: Value | Reg | None = None
    elif out is None:
        if predicate is not None:
            raise located(
                PtxTypeError, "a guarded call may compute nothing, and a Value has always been computed",
                f"`v = reg({kind}, 0)` before it, then `out=v, pred=..`",
            )
        register = trace.fresh(kind)
        targets, result = (register,), Result(register, kind, trace.region)
    else:
        if not isinstance(out, Reg) or out.type is not kind:
            got = f"a reg of {out.type}" if isinstance(out, Reg) else described(out)
            raise located(PtxTypeError, f"out of the call of `{name}` is a reg of {kind}, not {got}", f"`reg({kind})`")
        targets, result = (out.write(trace),), out
    trace.needs_verification = True
    trace.body.append(ir.Call(callee, targets, sources, label, uniform, predicate, trace.location()))
    return result


def _address(trace: Trace, address: Any) -> ir.Register:
    if not isinstance(address, Value) or address.type is not u64:
        got = with_article(address.type) if isinstance(address, Value) else described(address)
        raise located(PtxTypeError, f"the address of a function is a u64, not {got}", "`a = ptx.mov.u64(f)`")
    return address.use(trace)


def _prototype(trace: Trace, name: str) -> str:
    """The label of the ``.callprototype`` with the head of a function."""
    label = f"as_{name}"
    if label not in trace.prototypes:
        head = next(head for head in trace.functions.values() if head.name == name)
        trace.prototypes[label] = ir.Function(
            label, "func", list(head.parameters), list(head.results), body=None, linkage=""
        )
    return label

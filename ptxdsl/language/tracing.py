"""Tracing: a kernel function is run once, and what it does to its arguments becomes a module.

Parameters are loaded at the top, where every region can use them; those that are not used are not loaded.
Whatever happens inside, the thread is as it was afterwards: a failed trace leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple

from .. import ir
from ..errors import Loc, PtxError, TraceError, UnknownInstruction, did_you_mean, similar
from ..ir.signature import ArrayType, HandleType, KernelParameter, PtrType, Signature, definition_of
from ..isa import Form, lookup, targets
from ..types import ScalarType, u64
from .block_needs import BlockNeed, BoxNeed
from .builder import Trace, activated, current
from .errors import described
from .fragments import untype_fragments
from .introspection.call_sites import is_user_file
from .memory.addresses import ReadOnly
from .memory.arrays import View, row_major
from .memory.pointer_tables import PointerTable
from .memory.pointers import Pointer
from .memory.tensor_map import TensorMapValue
from .rules import early_exit, structure, unused_expressions
from .rules.aliasing import check_alias
from .rules.call_errors import miscalled
from .rules.python_protocol import missing
from .rules.wrong_brackets import wrong_brackets
from .values.value import Parameter, Value

__all__ = ["Traced", "argument", "check_source", "complete", "finish", "trace", "traced"]


class Traced(NamedTuple):
    """A module, whether it may be wrong although each operand was checked, and what it needs of the launch."""

    module: ir.Module
    needs_verification: bool
    block_needs: list[BlockNeed]
    box_needs: list[BoxNeed]


def check_source(function: Callable[..., object]) -> None:
    """Check what the source of a kernel function shows before it runs: unused expressions, and rule R5."""
    unused_expressions.check(function)
    early_exit.check(function)


def trace(
    function: Callable[..., object], *, constants: Mapping[str, Any] | None = None, arch: str = "auto",
    name: str | None = None, signature: Signature | None = None,
) -> ir.Module:
    """The module of a kernel function: its trace with these compile-time constants. See `traced`."""
    return traced(function, constants=constants, arch=arch, name=name, signature=signature).module


def traced(
    function: Callable[..., object], *, constants: Mapping[str, Any] | None = None, arch: str = "auto",
    name: str | None = None, signature: Signature | None = None,
) -> Traced:
    """The trace of a kernel function with these compile-time constants.

    ``arch`` is the target whose instructions may be used; with "auto" the module gets the lowest ``.version`` and
    ``.target`` that have what was used. Raises TraceError (and whatever the function itself raises).
    """
    assert isinstance(function, FunctionType)
    code = function.__code__
    loc = definition_of(code)
    unused_expressions.check_helpers(function)
    signature = signature or Signature.of(function)
    new = Trace(name or function.__name__, loc, arch, code)
    new.before_write = check_alias
    with activated(new):
        arguments = [argument(new, parameter) for parameter in signature.parameters]
        try:
            values = complete(
                signature, constants or {}, f"kernel `{function.__name__}`", TraceError, lambda: loc, "k.ptx({})"
            )
            result = function(*arguments, **values)
            structure.finish(new)
        except PtxError as error:
            if error.loc is None:
                place = _innermost(error.__traceback__, new)
                error.loc = loc if place is None else place[1]
            raise
        except (AttributeError, NameError, TypeError, RecursionError) as error:
            translated = _translated(error, new, function.__name__)
            if translated is None:
                raise
            try:
                raise translated from None
            finally:  # an error holds this frame, and so must not be held by it
                translated = None
        finally:
            new.fatal_error = None
    if result is not None:
        raise TraceError(
            f"kernel `{function.__name__}` returns {described(result)}, and a kernel returns nothing", loc=loc,
            hint="store results through a pointer: `out[i] = v`",
        )
    return Traced(_module(new, signature), new.needs_verification, new.block_needs, new.box_needs)


def complete(
    signature: Signature, given: Mapping[str, Any], what: str, error: type[PtxError],
    where: Callable[[], Loc | None], call: str, options: Iterable[str] = (),
) -> dict[str, Any]:
    """The value of each compile-time constant of ``what``; an ``error`` for one that is missing or unknown.

    ``where`` finds its line, ``call`` is how constants are given; ``options`` are other names that may be meant.
    """
    known = signature.constants
    for name in given:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise error(
                f"{what} has no compile-time constant `{name}`; {has}", loc=where(),
                hint=did_you_mean(similar(name, [*known, *options]), "`{}=`"),
            )
    values = {**known, **given}
    missing = [name for name, value in values.items() if value is Signature.REQUIRED]
    if missing:
        raise error(
            f"{what} needs the compile-time constant{'s' * (len(missing) > 1)} {', '.join(missing)}", loc=where(),
            hint=f"`{call.format(', '.join(f'{name}=...' for name in missing))}`",
        )
    return values


def _translated(
    error: AttributeError | NameError | TypeError | RecursionError, trace: Trace, name: str
) -> PtxError | None:
    """Python's error in the user's words, where it is about ptxdsl; None for the user's own."""
    place = _innermost(error.__traceback__, trace)
    if isinstance(error, NameError):
        return _foreign(error, error.name)
    if isinstance(error, AttributeError):
        return missing(error, place) or _foreign(error)
    if isinstance(error, TypeError):
        last = _last_frame(error.__traceback__)
        return miscalled(error, place, last) or wrong_brackets(error, place, last) or _foreign(error)
    return TraceError(
        f"kernel `{name}` calls without end: no run-time value can stop a recursion in Python",
        loc=trace.loc if place is None else place[1], hint="`@ptx_func` makes a function that may recurse",
    )


def _foreign(error: Exception, name: str | None = None) -> TraceError | None:
    """The error for a name of CUDA's, Numba's or Triton's, ``name`` if that is known; None if there is none."""
    from .foreign_names import hint_of_line, hint_of_name

    traceback, found = error.__traceback__, None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_user_file(file) or traceback.tb_frame.f_code is current().code:
            place = Loc(file, traceback.tb_lineno)
            hint = hint_of_line(place.source, name) or (name and hint_of_name(name))
            found = UnknownInstruction(str(error), loc=place, hint=hint) if hint else found
        traceback = traceback.tb_next
    return found


def _last_frame(traceback: TracebackType | None) -> FrameType | None:
    """The frame that raised."""
    frame = None
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    return frame


def _innermost(traceback: TracebackType | None, trace: Trace) -> tuple[FrameType, Loc] | None:
    """The innermost frame of the user's that an error passed through, and its line."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        generated = traceback.tb_frame.f_globals.get("__name__", "").startswith("namedtuple_")
        if (is_user_file(code.co_filename) and not generated) or code is trace.code:
            found = traceback.tb_frame, Loc(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Parameters


def argument(trace: Trace, parameter: KernelParameter) -> Any:
    """What the kernel function gets for a parameter."""
    annotation, entries = parameter.annotation, iter(parameter.ptx)
    if isinstance(annotation, ScalarType):
        return _load(trace, next(entries), annotation)
    if isinstance(annotation, PtrType):
        base, space = _load(trace, next(entries), u64), _space(annotation)
        if annotation.target is not None:
            return PointerTable(annotation.target, space, base)
        return Pointer(annotation.dtype, space, base)
    if isinstance(annotation, ArrayType):
        return _array(trace, parameter.name, annotation, entries)
    if isinstance(annotation, HandleType):
        return _load(trace, next(entries), u64)
    trace.reserve(parameter.name)
    return TensorMapValue(trace, parameter.name)


def _array(trace: Trace, name: str, annotation: ArrayType, entries: Iterator[ir.Parameter]) -> View:
    base = _load(trace, next(entries), u64)
    rest = list(entries)
    loaded = [_load(trace, entry, entry.type) for entry in rest]
    missing, names = iter(loaded), (ir.Symbol(entry.name) for entry in rest)
    shape = tuple(extent if extent is not None else next(missing) for extent in annotation.shape)
    strides = tuple(missing)
    steps = (*strides, 1) if strides or len(shape) == 1 else row_major(shape)
    view = View(annotation.dtype, _space(annotation), base, shape, steps)
    if len(shape) > 1:
        extents = tuple(extent if extent is not None else next(names) for extent in annotation.shape)
        view.origin = ir.Indexed(name, annotation.dtype, extents, ())
    return view


def _space(annotation: PtrType | ArrayType) -> str:
    return ReadOnly("global") if annotation.const else "global"


def _load(trace: Trace, entry: ir.Parameter, type: ScalarType) -> Value:
    trace.reserve(entry.name)
    return Parameter(trace.fresh(type), type, trace.kernel, _parameter_load(entry.type), entry.name)


@cache
def _parameter_load(type: ScalarType) -> Form:
    return lookup(f"ld.param.{type}")[0]


# ---------------------------------------------------------------------------------------------------------------------
# The module


def finish(trace: Trace, head: ir.Function) -> ir.Function:
    """``head`` with the registers, variables and body that were traced."""
    if not _returned(trace.body):
        trace.emit(lookup("ret")[0], (), loc=_last(trace))
    untype_fragments(trace)
    return ir.Function(
        head.name, head.kind, head.parameters, head.results, head.directives, trace.registers, trace.variables,
        [*trace.prologue, *trace.body], head.linkage, trace.prototypes, trace.tables,
        indexed=trace.indexed, kept=trace.kept,
    )


def _module(trace: Trace, signature: Signature) -> ir.Module:
    function = finish(trace, ir.Function(trace.name, parameters=list(signature.ptx)))
    version, target = _needed(trace)
    options = ("texmode_independent",) if any(
        p.annotation.__class__ is HandleType and p.annotation == _SAMPLER for p in signature.parameters
    ) else ()
    return ir.Module(
        version, target, variables=trace.module_variables, functions=[*trace.declarations.values(), function],
        target_options=options,
    )


_SAMPLER = HandleType("sampler")


def _returned(body: list[ir.Statement]) -> bool:
    last = body[-1] if body else None
    return isinstance(last, ir.Instruction) and last.guard is None and last.form.effects.ends


def _last(trace: Trace) -> Loc:
    return next((s.loc for s in reversed(trace.body) if isinstance(s, ir.Instruction) and s.loc), trace.loc)


def _needed(trace: Trace) -> tuple[tuple[int, int], str]:
    """The lowest PTX version, and the kernel's target or the lowest."""
    if trace.arch == "auto":
        return targets.lowest(tuple(trace.needs))
    versions = [need.version for need in trace.needs]
    return max(targets.introduced(trace.arch), *versions, (1, 0)), trace.arch

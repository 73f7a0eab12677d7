"""The short way of a launch: what the first ones of a signature went through, as a plan for machine code.

The first launches of a kernel with arguments of certain Python types go through every check there is. Then only what
can differ between two objects of the same types is checked again, and that by machine code (:mod:`.launch_code`):
dtype, shape, strides, device and alignment of an array, the range of a number, and whether settings and what the
kernel was traced from are as they were. What is unusual goes through all checks again, which either accept or explain
it. This module says which handler an argument gets, and fills in what that compares.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from .. import config
from ..errors import caller
from ..language.introspection.observed import MISSING, Observed
from ..launch import LaunchConfig, Launched
from ..launch.captures import current_stream
from ..launch.torch_tensors import count_versions, is_torch
from .argument_plans import ArgumentPlan, exchange_functions, planned
from .function import LoadedFunction
from .launch_code import NO_STREAM, Argument, Place, Plan, address
from .library_streams import stream_of

__all__ = ["plan_of"]

_LAUNCH, _GET, _PUSH, _POP, _CAPTURES = (
    b"cuLaunchKernelEx", b"cuCtxGetCurrent", b"cuCtxPushCurrent", b"cuCtxPopCurrent", b"cuStreamIsCapturing",
)
_VERSION = 12000
"""The least version of the driver's interface: all of these functions are as they were then."""


def plan_of(function: LoadedFunction, geometry: LaunchConfig, launched: Launched, owner: object) -> Plan | None:
    """What makes such launches again; None where that needs all checks each time.

    ``owner`` is the array whose library says on which stream, where none was given.
    """
    settings = config.current()
    if settings.log == "debug" or settings.debug or _has_references(function):
        return None
    stream = None if owner is not None else current_stream(geometry, function.gpu.device) or 0
    plan = Plan()
    plan.kept = [function, geometry, launched.observed, launched.generation]
    arguments = _arguments(plan, function, launched, stream)
    if arguments is None:
        return None
    total = len(launched.given)
    plan.positional, plan.named = total - len(launched.names), len(launched.names)
    plan.names = _words(plan, [_object(plan, sys.intern(name)) for name in launched.names])
    plan.arguments = ctypes.addressof(arguments)
    plan.alive = ctypes.addressof(launched.generation)
    plan.settings = _object(plan, config._overrides.get())
    _set_places(plan, launched.observed)
    plan.parameters = _words(plan, function.offsets[:-1])
    plan.parameter_count, plan.nbytes = len(function.offsets) - 1, function.offsets[-1]
    _set_driver(plan, function, geometry, stream, launched)
    _set_stream(plan, stream, owner, function.prepare(geometry).structs)
    plan.count_versions = _object(plan, count_versions())
    return plan


def _has_references(function: LoadedFunction) -> bool:
    """Whether the module declares textures, samplers or surfaces, which may be bound to others at any time."""
    return any(variable.type.kind == "o" for variable in function.kernel.module.variables)


def _object(plan: Plan, value: object) -> int:
    """The address of an object, which the plan keeps."""
    plan.kept.append(value)
    return id(value)


def _object_at(plan: Plan, structure: Any) -> int:
    """The address of a structure, which the plan keeps."""
    plan.kept.append(structure)
    return ctypes.addressof(structure)


def _words(plan: Plan, words: Sequence[int]) -> int:
    made = (ctypes.c_uint64 * max(len(words), 1))(*words)
    plan.kept.append(made)
    return ctypes.addressof(made)


# ---------------------------------------------------------------------------------------------------------------------
# The arguments


def _arguments(plan: Plan, function: LoadedFunction, launched: Launched, stream: int | None) -> Any:
    """What is checked of each argument, in the order in which they were given; None if one has no short way."""
    kernel, gpu = function.kernel, function.gpu
    starts = _starts(function)
    made = (Argument * max(len(launched.given), 1))()
    for entry, value, position in zip(made, launched.given, launched.positions):
        if position is None:
            entry.handler, entry.type, entry.object = address("constant"), id(type(value)), _object(plan, value)
            continue
        parameter = kernel.parameters[position]
        entries = slice(starts[position], starts[position] + len(parameter.ptx))
        argument = ArgumentPlan(
            parameter, value, launched.arguments[entries], function.offsets[entries],
            kernel.bind.converters[position], gpu.device, gpu.several, parameter.name in kernel.written,
            kernel.foreign, any(need.parameter == parameter.name for need in kernel.box_needs), stream,
        )
        kept = planned(argument, entry)
        if kept is None:
            return None
        plan.kept += kept
    plan.kept.append(made)
    return made


def _starts(function: LoadedFunction) -> list[int]:
    """Which .param each parameter begins with."""
    starts = [0]
    for parameter in function.kernel.parameters:
        starts.append(starts[-1] + len(parameter.ptx))
    return starts


# ---------------------------------------------------------------------------------------------------------------------
# What must be as it was


def _set_places(plan: Plan, observed: Observed | None) -> None:
    """The settings that matter, by the variables of the environment; what the kernel was traced from."""
    table, variables = config.variables()
    found = [("PyDict_GetItem", table, name, table.get(name, MISSING)) for name in variables]
    rest = None
    if observed is not None:
        compared, rest = observed.by_identity()
        found += compared
    places = (Place * len(found))()
    for place, (getter, owner, key, value) in zip(places, found):
        place.getter, place.owner = address(f"place:{getter}"), _object(plan, owner)
        place.key, place.value = _object(plan, key), 0 if value is MISSING else _object(plan, value)
    plan.kept.append(places)
    plan.places, plan.place_count = ctypes.addressof(places), len(found)
    plan.unchanged = 0 if rest is None else _object(plan, rest.unchanged)


# ---------------------------------------------------------------------------------------------------------------------
# What the driver is asked


def _set_driver(
    plan: Plan, function: LoadedFunction, geometry: LaunchConfig, stream: int | None, launched: Launched
) -> None:
    gpu = function.gpu
    prepared = function.prepare(geometry)
    struct = function.struct(prepared, stream or 0)
    plan.kept += (struct, prepared)
    ctypes.memmove(ctypes.addressof(plan) + Plan.config.offset, int(struct.getPtr()), Plan.config.size)
    plan.function, plan.context, plan.ordinal = int(function.handle), int(gpu.context), gpu.device
    plan.launch, plan.get_context, plan.push_context, plan.pop_context, plan.is_capturing = (
        gpu.address_of(name, _VERSION) for name in (_LAUNCH, _GET, _PUSH, _POP, _CAPTURES)
    )
    plan.module_kept = ctypes.addressof(function.loaded.kept)
    plan.number = gpu.in_flight.planned(function.kernel.entry, geometry, launched.arguments, caller())
    plan.ring = _object_at(plan, gpu.in_flight.ring)
    plan.failed = _object(plan, lambda code: _raise(function, code))


def _raise(function: LoadedFunction, code: int) -> None:
    gpu = function.gpu
    try:
        result: Any = gpu.cu.CUresult(code)
    except ValueError:  # a newer driver's
        result = code
    raise gpu.error(_LAUNCH.decode(), result)


def _set_stream(plan: Plan, stream: int | None, owner: object, structs: dict[int, Any]) -> None:
    exchange = exchange_functions(type(owner)) if is_torch(owner) else None
    current = stream_of(owner, plan.ordinal)
    if exchange is not None and exchange[1]:
        plan.work_stream = exchange[1]
    elif current is not None:
        plan.current_stream = _object(plan, current)
    if stream is None:
        plan.known_streams, plan.stream = _object(plan, structs), NO_STREAM
    else:
        plan.stream = stream

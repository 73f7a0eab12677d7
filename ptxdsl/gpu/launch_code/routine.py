"""The routine that makes launches: it tries the plans of a prepared launch one after the other.

``launch`` is what Python calls, a method of the class whose objects have ``prepared.plans``; ``attempt`` is one plan.
All that may run other code of Python, or have it run, comes before the parameters are packed for good; the
interpreter's lock is given up for the driver's call alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ..in_flight import Ring
from .code import INT, TYPE_OF_OBJECT, WORD, Code
from .layout import CONFIG_BYTES, Argument, Frame, Place, Plan, Slots

__all__ = ["STREAM_IN_CONFIG", "add_routine"]

STREAM_IN_CONFIG = 32
"""Where CUlaunchConfig has its stream."""
REFUSED, LAUNCHED, RAISED = 0, 1, 2
"""What an attempt comes to."""
CUDA = 2
"""DLPack's number of GPUs of NVIDIA."""


def add_routine(module: Any) -> None:
    """``launch``, ``attempt`` and what they need."""
    _add_places(module)
    _add_holds(module)
    _add_stream_of(module)
    _add_attempt(module)
    _add_launch(module)


def _add_places(module: Any) -> None:
    """What finds the object at a :class:`Place`, given its owner and its key; the references are not counted."""
    for name in ("PyFunction_GetCode", "PyFunction_GetDefaults", "PyFunction_GetKwDefaults"):
        code = Code(module, f"place:{name}", 2, WORD)
        code.ir.ret(code.call(name, code.arguments[0]))
    code = Code(module, "place:PyDict_GetItem", 2, WORD)
    code.ir.ret(code.call("PyDict_GetItemWithError", *code.arguments))
    code = Code(module, "place:PyCell_Get", 2, WORD)
    found = code.call("PyCell_Get", code.arguments[0])
    with code.ir.if_then(code.is_not(found, WORD(0))):
        code.release(found)  # only compared; who put it there holds it
    code.ir.ret(found)


def _add_holds(module: Any) -> None:
    """``holds(plan)``: whether settings, and what the kernel was traced from, are as they were."""
    code = Code(module, "holds", 1)
    (plan,) = code.arguments
    alive = code.ir.trunc(code.load(code.get(plan, Plan.alive)), code.byte)
    code.require(code.is_not(alive, code.byte(0)))
    code.require_same(code.call("PyList_Size", code.known("traces")), WORD(0))
    code.require_same(code.call("PyDict_Size", code.known("captures")), WORD(0))
    for variable, wanted in (("overrides", code.get(plan, Plan.settings)), ("observer", code.known("None"))):
        cell = code.room(8)
        code.store(WORD(0), cell)
        code.call("PyContextVar_Get", code.known(variable), WORD(0), cell, result=INT)
        held = code.load(cell)
        code.require_given(held)
        code.release(held)
        code.require_same(held, wanted)
    with code.each(code.get(plan, Plan.place_count)) as number:
        place = code.ir.add(code.get(plan, Plan.places), code.ir.mul(number, WORD(ctypes.sizeof(Place))))
        where = code.get(place, Place.owner), code.get(place, Place.key)
        held = code.call_address(code.get(place, Place.getter), *where, result=WORD)
        code.require_same(held, code.get(place, Place.value))
    compare = code.get(plan, Plan.unchanged)
    with code.ir.if_then(code.is_not(compare, WORD(0))):
        said = code.call_object(compare)
        code.require_given(said)
        code.release(said)
        code.require_same(said, code.known("True"))
    code.done()


def _add_stream_of(module: Any) -> None:
    """``stream_of(plan, memory)``: write the stream to launch on; refused if it cannot be found out."""
    code = Code(module, "stream_of", 2)
    plan, memory = code.arguments
    code.store(code.get(plan, Plan.stream), memory)
    ask = code.get(plan, Plan.work_stream)
    with code.ir.if_then(code.is_not(ask, WORD(0))):
        ordinal = code.ir.trunc(code.get(plan, Plan.ordinal), INT)
        code.require(code.is_(code.call_address(ask, INT(CUDA), ordinal, memory), INT(0)))
    ask = code.get(plan, Plan.current_stream)
    with code.ir.if_then(code.is_not(ask, WORD(0))):
        found = code.call_object(ask)
        code.require_given(found)
        code.store(code.number(found), memory)
    known, stream = code.get(plan, Plan.known_streams), code.load(memory)
    with code.ir.if_then(code.is_not(stream, code.get(plan, Plan.stream)), likely=False):
        number = code.call("PyLong_FromUnsignedLongLong", stream)
        code.require_given(number)
        found = code.call("PyDict_GetItemWithError", known, number)
        code.release(number)
        code.require_given(found)
        code.set(plan, Plan.stream, stream)
    code.done()


def _add_attempt(module: Any) -> None:
    """``attempt(plan, arguments, positional, names)``: make the launch if the plan is for it."""
    code = Code(module, "attempt", 4)
    plan, given, positional, names = code.arguments
    total = _require_signature(code, plan, given, positional, names)
    code.require(code.is_(code.call("holds", plan, result=INT), INT(1)))
    frame = code.room(ctypes.sizeof(Frame))
    code.set(frame, Frame.awaited, WORD(0))
    code.set(frame, Frame.tensor_count, WORD(0))
    code.set(frame, Frame.memory, _aligned(code, code.get(plan, Plan.nbytes)))
    with code.each(total) as number:
        entry = _argument(code, plan, number)
        taken = code.call_address(code.get(entry, Argument.handler), entry, code.item(given, number), frame)
        code.require(code.is_(taken, INT(1)))
    config = code.room(CONFIG_BYTES)
    for offset in range(0, CONFIG_BYTES, 8):
        code.store(code.load(plan, Plan.config.offset + offset), config, offset)
    stream_at = code.ir.add(config, WORD(STREAM_IN_CONFIG))
    code.require(code.is_(code.call("stream_of", plan, stream_at, result=INT), INT(1)))
    stream, awaited = code.load(stream_at), code.get(frame, Frame.awaited)
    stream = code.ir.select(code.is_(stream, WORD(0)), WORD(1), stream)
    code.require(code.ir.or_(code.is_(awaited, WORD(0)), code.is_(awaited, stream)))
    _require_uncaptured(code, plan, code.load(stream_at))
    _count_versions(code, plan, frame)
    _submit(code, plan, config, _pointers(code, plan, frame))
    code.set(plan, Plan.taken, code.ir.add(code.get(plan, Plan.taken), WORD(1)))
    _note(code, plan, code.load(stream_at))
    code.ir.ret(INT(LAUNCHED))


def _require_signature(code: Code, plan: Any, given: Any, positional: Any, names: Any) -> Any:
    """Refuse arguments of another number, of other names, or of other types; how many there are."""
    code.require_same(positional, code.get(plan, Plan.positional))
    count = code.variable(WORD(0))
    with code.ir.if_then(code.is_not(names, WORD(0))):
        code.ir.store(code.call("PyTuple_Size", names), count)
    named = code.ir.load(count)
    code.require_same(named, code.get(plan, Plan.named))
    with code.each(named) as number:
        wanted = code.item(code.get(plan, Plan.names), number)
        code.require_same(code.call("PyTuple_GetItem", names, number), wanted)
    total = code.ir.add(positional, named)
    with code.each(total) as number:
        entry = _argument(code, plan, number)
        code.require_same(code.load(code.item(given, number), TYPE_OF_OBJECT), code.get(entry, Argument.type))
    return total


def _argument(code: Code, plan: Any, number: Any) -> Any:
    size = WORD(ctypes.sizeof(Argument))
    return code.ir.add(code.get(plan, Plan.arguments), code.ir.mul(number, size))


def _aligned(code: Code, nbytes: Any) -> Any:
    """Memory on the stack, at a multiple of 64 bytes."""
    memory = code.ir.alloca(code.byte, size=code.ir.add(nbytes, WORD(64)))
    return code.ir.and_(code.ir.add(code.ir.ptrtoint(memory, WORD), WORD(63)), WORD(2**64 - 64))


def _count_versions(code: Code, plan: Any, frame: Any) -> None:
    """Tell torch which tensors are written."""
    count = code.get(frame, Frame.tensor_count)
    with code.ir.if_then(code.is_not(count, WORD(0))):
        written = code.call("PyTuple_New", count)
        code.require_given(written)
        with code.each(count) as number:
            tensor = code.item(code.ir.add(frame, WORD(Frame.tensors.offset)), number)
            code.call("Py_IncRef", tensor, result=code.nothing)
            code.call("PyTuple_SetItem", written, number, tensor, result=INT)
        told = code.call_object(code.get(plan, Plan.count_versions), written)
        code.release(written)
        code.require_given(told)
        code.release(told)


def _require_uncaptured(code: Code, plan: Any, stream: Any) -> None:
    """A graph goes on using the module, so the long way takes care that it stays; the default stream has none."""
    kept = code.ir.trunc(code.load(code.get(plan, Plan.module_kept)), code.byte)
    with code.ir.if_then(code.ir.and_(code.is_(kept, code.byte(0)), code.ir.icmp_unsigned(">", stream, WORD(1)))):
        state = code.room(8)
        code.store(WORD(0), state)
        code.require(code.is_(code.call_address(code.get(plan, Plan.is_capturing), stream, state), INT(0)))
        code.require(code.is_(code.load(state, 0, INT), INT(0)))


def _pointers(code: Code, plan: Any, frame: Any) -> Any:
    """The addresses of the parameters, as the driver wants them."""
    count, memory = code.get(plan, Plan.parameter_count), code.get(frame, Frame.memory)
    pointers = code.ir.ptrtoint(code.ir.alloca(WORD, size=code.ir.add(count, WORD(1))), WORD)
    with code.each(count) as number:
        address = code.ir.add(memory, code.item(code.get(plan, Plan.parameters), number))
        code.store(address, code.ir.add(pointers, code.ir.shl(number, WORD(3))))
    return pointers


def _submit(code: Code, plan: Any, config: Any, pointers: Any) -> None:
    """The driver's call, in the context of the function and without the interpreter's lock."""
    context, current = code.get(plan, Plan.context), code.room(8)
    code.store(WORD(0), current)
    code.require(code.is_(code.call_address(code.get(plan, Plan.get_context), current), INT(0)))
    other = code.is_not(code.load(current), context)
    with code.ir.if_then(other, likely=False):
        code.require_given(code.load(current))  # the long way makes one current, which stays
        code.require(code.is_(code.call_address(code.get(plan, Plan.push_context), context), INT(0)))
    state = code.call("PyEval_SaveThread")
    function = code.get(plan, Plan.function)
    result = code.call_address(code.get(plan, Plan.launch), config, function, pointers, WORD(0))
    code.call("PyEval_RestoreThread", state, result=code.nothing)
    with code.ir.if_then(other, likely=False):
        code.call_address(code.get(plan, Plan.pop_context), current)
    with code.ir.if_then(code.is_not(result, INT(0)), likely=False):
        number = code.call("PyLong_FromUnsignedLongLong", code.ir.zext(result, WORD))
        code.call_object(code.get(plan, Plan.failed), number)  # which raises
        code.release(number)
        code.ir.ret(INT(RAISED))


def _note(code: Code, plan: Any, stream: Any) -> None:
    """A fault may be this launch's."""
    ring, b = code.get(plan, Plan.ring), code.ir
    count = code.get(ring, Ring.count)
    slot = b.shl(b.urem(count, WORD(Ring.launches.size // 16)), WORD(4))
    at = b.add(b.add(ring, WORD(Ring.launches.offset)), slot)
    code.store(code.get(plan, Plan.number), at)
    code.store(stream, at, 8)
    code.set(ring, Ring.count, b.add(count, WORD(1)))


def _add_launch(module: Any) -> None:
    """``launch(self, arguments, positional, names)``, in Python's convention of calls with an array of arguments."""
    code = Code(module, "launch", 4, WORD)
    launch, *given = code.arguments
    plans = _plans(code, launch)
    addresses, count = code.call("PyBytes_AsString", plans), code.ir.lshr(code.call("PyBytes_Size", plans), WORD(3))
    outcome, number = code.variable(INT(REFUSED)), code.variable(WORD(0))
    test, attempt, onward, after = (code.function.append_basic_block() for _ in range(4))
    code.ir.branch(test)
    code.ir.position_at_end(test)
    code.ir.cbranch(code.ir.icmp_unsigned("<", code.ir.load(number), count), attempt, after)
    code.ir.position_at_end(attempt)
    result = code.call("attempt", code.item(addresses, code.ir.load(number)), *given, result=INT)
    code.ir.store(result, outcome)
    code.ir.store(code.ir.add(code.ir.load(number), WORD(1)), number)
    code.ir.cbranch(code.is_(result, INT(REFUSED)), onward, after)
    code.ir.position_at_end(onward)
    _forgive(code, plans, test)
    code.ir.position_at_end(after)
    code.release(plans)
    with code.ir.if_then(code.is_(code.ir.load(outcome), INT(LAUNCHED))):
        code.call("Py_IncRef", code.known("None"), result=code.nothing)
        code.ir.ret(code.known("None"))
    with code.ir.if_then(code.is_(code.ir.load(outcome), INT(RAISED))):
        code.ir.ret(WORD(0))
    _take_long_way(code, launch, *given)


def _take_long_way(code: Code, launch: Any, given: Any, positional: Any, names: Any) -> None:
    """The method of Python, which is given what came."""
    count = code.variable(positional)
    with code.ir.if_then(code.is_not(names, WORD(0))):
        code.ir.store(code.ir.add(positional, code.call("PyTuple_Size", names)), count)
    total = code.ir.load(count)
    passed = code.ir.ptrtoint(code.ir.alloca(WORD, size=code.ir.add(total, WORD(1))), WORD)
    code.store(launch, passed)
    with code.each(total) as number:
        at = code.ir.add(passed, code.ir.shl(number, WORD(3)))
        code.store(code.item(given, number), at, 8)
    with_self = code.ir.add(positional, WORD(1))
    code.ir.ret(code.call("PyObject_VectorcallMethod", code.name("long_way"), passed, with_self, names))


def _plans(code: Code, launch: Any) -> Any:
    """A new reference to the plans, which others may replace while they are tried."""
    plans = code.slot(code.slot(launch, Slots.launch_prepared), Slots.prepared_plans)
    code.call("Py_IncRef", plans, result=code.nothing)
    return plans


def _forgive(code: Code, plans: Any, onward: Any) -> None:
    """Pass over an error of a plan that refused, but not over what is to end the program."""
    error = code.call("PyErr_Occurred")
    with code.ir.if_then(code.is_not(error, WORD(0)), likely=False):
        common = code.call("PyErr_ExceptionMatches", code.known("Exception"), result=INT)
        with code.ir.if_then(code.is_(common, INT(0)), likely=False):
            code.release(plans)
            code.ir.ret(WORD(0))
        code.call("PyErr_Clear", result=code.nothing)
    code.ir.branch(onward)

"""Handlers of arguments that are arrays: what an object says of its memory, checked, and packed.

The reading of each library's arrays is a handler; what they have in common, shape, strides and alignment, is checked
by one function, by the same rules as in `launch.arguments`.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .code import INT, WORD, Code, handler, place
from .layout import MOST_AXES, MOST_TENSORS, Argument, Frame, Slots, Tensor

__all__ = ["add_arrays"]

AXES = 8 * MOST_AXES
NONE = 2**64 - 1
"""How many numbers there are where there is no tuple of them."""


def add_arrays(module: Any) -> None:
    """The handlers of arrays."""
    _add_numbers_of(module)
    _add_lay_out(module)
    with handler(module, "device_pointer") as (code, entry, value, frame):
        address = _device_array(code, entry, value)
        code.require_same(code.ir.urem(address, code.get(entry, Argument.align)), WORD(0))
        place(code, entry, frame, address)
    with handler(module, "device_array") as (code, entry, value, frame):
        address = _device_array(code, entry, value)
        shape = code.room(AXES)
        count = code.call("numbers_of", code.slot(value, Slots.array_shape), shape)
        code.require(code.is_not(count, WORD(NONE)))
        _lay_out(code, entry, frame, address, count, shape, WORD(0))
    with handler(module, "exchanged_tensor") as (code, entry, value, frame):
        _require_plain(code, entry, value)
        _exchanged(code, entry, value, frame)
        _note_written(code, entry, value, frame)
    with handler(module, "tensor") as (code, entry, value, frame):
        _require_plain(code, entry, value)
        _tensor(code, entry, value, frame)
        _note_written(code, entry, value, frame)
    _add_interface(module)


# ---------------------------------------------------------------------------------------------------------------------
# What all arrays have in common


def _add_numbers_of(module: Any) -> None:
    """``numbers_of(tuple, memory)``: how many ints a tuple has, which it writes; NONE if it is no such tuple."""
    code = Code(module, "numbers_of", 2, WORD, NONE)
    given, memory = code.arguments
    count = code.call("PyTuple_Size", given)
    code.require(code.ir.icmp_unsigned("<=", count, WORD(MOST_AXES)))
    with code.each(count) as index:
        number = code.call("PyLong_AsLongLong", code.call("PyTuple_GetItem", given, index))
        code.require_valid(number)
        code.store(number, code.ir.add(memory, code.ir.shl(index, WORD(3))))
    code.ir.ret(count)


def _tuple(code: Code, reference: Any, memory: Any) -> Any:
    """The ints of a tuple, whose reference is released: how many they are."""
    count = code.call("numbers_of", reference, memory)
    code.release(reference)
    code.require(code.is_not(count, WORD(NONE)))
    return count


def _lay_out(code: Code, entry: Any, frame: Any, *array: Any) -> None:
    code.require(code.is_(code.call("lay_out", entry, frame, *array, result=INT), INT(1)))


def _add_lay_out(module: Any) -> None:
    """``lay_out(entry, frame, address, ndim, shape, strides)``: check an array, and pack its parameters.

    Strides are in elements; 0 in place of their address says that the array is contiguous.
    """
    code = Code(module, "lay_out", 6)
    entry, frame, address, ndim, shape, strides = code.arguments
    b, steps, dense_steps = code.ir, code.room(AXES), code.room(AXES)
    rank = code.get(entry, Argument.rank)
    is_pointer = code.is_(rank, WORD(NONE))
    code.require(b.or_(is_pointer, code.is_(rank, ndim)))
    dense, count, bad = code.variable(WORD(1)), code.variable(WORD(1)), code.variable(WORD(0))
    with code.each(ndim) as number:
        axis = b.sub(b.sub(ndim, WORD(1)), number)
        extent, step = code.item(shape, axis), code.variable(b.load(dense))
        at = b.shl(axis, WORD(3))
        code.store(b.load(dense), b.add(dense_steps, at))
        with b.if_then(b.and_(code.is_not(strides, WORD(0)), code.is_not(extent, WORD(1)))):
            b.store(code.item(strides, axis), step)
        code.store(b.load(step), b.add(steps, at))
        wrong = _wrong_step(code, entry, is_pointer, number, b.load(step), b.load(dense))
        b.store(b.or_(b.load(bad), b.zext(wrong, WORD)), bad)
        with b.if_then(b.not_(is_pointer)):
            _require_extent(code, entry, axis, extent)
        b.store(b.mul(b.load(count), extent), count)
        b.store(b.mul(b.load(dense), b.select(code.is_(extent, WORD(0)), WORD(1), extent)), dense)
    filled = code.is_not(b.load(count), WORD(0))
    code.require(b.not_(b.and_(filled, code.is_not(b.load(bad), WORD(0)))))
    align = code.get(entry, Argument.align)
    fits = b.and_(code.is_not(address, WORD(0)), code.is_(b.urem(address, align), WORD(0)))
    code.require(b.or_(b.not_(filled), fits))
    place(code, entry, frame, address)
    nbytes = b.mul(b.load(count), code.get(entry, Argument.itemsize))
    code.require(b.or_(b.not_(is_pointer), code.is_(b.urem(nbytes, align), WORD(0))))
    with b.if_then(b.not_(is_pointer)):
        _place_shape(code, entry, frame, ndim, shape, b.select(filled, steps, dense_steps))
    code.done()


def _wrong_step(code: Code, entry: Any, is_pointer: Any, number: Any, step: Any, dense: Any) -> Any:
    """Whether a stride, of the dimension that is the last but ``number``, cannot be taken."""
    b = code.ir
    strided = b.and_(b.not_(is_pointer), code.is_not(code.get(entry, Argument.strided), WORD(0)))
    contiguous = b.or_(b.not_(strided), code.is_(number, WORD(0)))
    written = code.is_not(code.get(entry, Argument.written), WORD(0))
    repeated = b.and_(written, code.is_(step, WORD(0)))
    free = b.or_(b.icmp_unsigned(">=", step, WORD(2**32)), repeated)
    return b.select(contiguous, code.is_not(step, dense), free)


def _require_extent(code: Code, entry: Any, axis: Any, extent: Any) -> None:
    fixed = code.item(code.ir.add(entry, WORD(Argument.extents.offset)), axis)
    code.require(code.ir.or_(code.is_(fixed, WORD(NONE)), code.is_(fixed, extent)))
    code.require(code.ir.icmp_unsigned("<", extent, WORD(2**32)))


def _place_shape(code: Code, entry: Any, frame: Any, ndim: Any, shape: Any, steps: Any) -> None:
    """The extents that are not fixed, then the strides of all dimensions but the last."""
    b = code.ir
    start = b.add(code.get(frame, Frame.memory), code.get(entry, Argument.offset))
    at = code.variable(b.add(start, WORD(16)))
    with code.each(ndim) as axis:
        fixed = code.item(b.add(entry, WORD(Argument.extents.offset)), axis)
        with b.if_then(code.is_(fixed, WORD(NONE))):
            code.store(code.item(shape, axis), b.load(at))
            b.store(b.add(b.load(at), WORD(16)), at)
    with b.if_then(code.is_not(code.get(entry, Argument.strided), WORD(0))), code.each(b.sub(ndim, WORD(1))) as axis:
        code.store(code.item(steps, axis), b.load(at))
        b.store(b.add(b.load(at), WORD(16)), at)


# ---------------------------------------------------------------------------------------------------------------------
# Our own


def _device_array(code: Code, entry: Any, value: Any) -> Any:
    """The address of a device array."""
    code.require_same(code.slot(value, Slots.array_dtype), code.get(entry, Argument.dtype))
    code.require_same(code.slot(value, Slots.array_device), code.get(entry, Argument.device))
    address = code.call("PyLong_AsUnsignedLongLong", code.slot(value, Slots.array_address))
    code.require_valid(address)
    return address


# ---------------------------------------------------------------------------------------------------------------------
# Torch's


def _require_plain(code: Code, entry: Any, value: Any) -> None:
    """A tensor whose memory is what it shows; one that is stored to needs no gradient, or torch records none."""
    for at in range(0, Argument.lazy.size, 8):
        function = code.load(entry, Argument.lazy_functions.offset + at)
        with code.ir.if_then(code.is_not(function, WORD(0))):
            _require_false(code, code.call_address(function, value, WORD(0), result=WORD))
        method = code.load(entry, Argument.lazy.offset + at)
        with code.ir.if_then(code.is_not(method, WORD(0)), likely=False):
            _require_false(code, code.called(value, method))
    recording = code.get(entry, Argument.recording)
    with code.ir.if_then(code.is_not(recording, WORD(0))):
        needs = code.attribute(value, code.name("requires_grad"))
        code.release(needs)
        with code.ir.if_then(code.is_not(needs, code.known("False")), likely=False):
            _require_false(code, code.call_object(recording))


def _require_false(code: Code, answer: Any) -> None:
    """Refuse all answers but one; the reference is released."""
    code.require_given(answer)
    code.release(answer)
    code.require_same(answer, code.known("False"))


def _note_written(code: Code, entry: Any, value: Any, frame: Any) -> None:
    """Have the version of a tensor counted, when all arguments have been taken."""
    with code.ir.if_then(code.is_not(code.get(entry, Argument.counted), WORD(0))):
        count = code.get(frame, Frame.tensor_count)
        code.require(code.ir.icmp_unsigned("<", count, WORD(MOST_TENSORS)))
        tensors = code.ir.add(frame, WORD(Frame.tensors.offset))
        code.store(value, code.ir.add(tensors, code.ir.shl(count, WORD(3))))
        code.set(frame, Frame.tensor_count, code.ir.add(count, WORD(1)))


def _exchanged(code: Code, entry: Any, value: Any, frame: Any) -> None:
    """``object`` is the function of DLPack's exchange API that fills a DLTensor in."""
    tensor = code.room(ctypes.sizeof(Tensor))
    failed = code.call_address(code.get(entry, Argument.object), value, tensor)
    code.require(code.is_(failed, INT(0)))
    code.require_same(code.get(tensor, Tensor.device), code.get(entry, Argument.device))
    code.require_same(code.get(tensor, Tensor.dtype), code.get(entry, Argument.dtype))
    address = code.ir.add(code.get(tensor, Tensor.data), code.get(tensor, Tensor.byte_offset))
    ndim = code.get(tensor, Tensor.ndim)
    code.require(code.ir.icmp_unsigned("<=", ndim, WORD(MOST_AXES)))
    _lay_out(code, entry, frame, address, ndim, code.get(tensor, Tensor.shape), code.get(tensor, Tensor.strides))


def _tensor(code: Code, entry: Any, value: Any, frame: Any) -> None:
    """By the methods of a tensor; ``object`` is its layout."""
    code.require_attribute(value, "dtype", code.get(entry, Argument.dtype))
    code.require_attribute(value, "layout", code.get(entry, Argument.object))
    code.require_same(code.number(code.called(value, code.name("get_device"))), code.get(entry, Argument.device))
    address = code.number(code.called(value, code.name("data_ptr")))
    shape, strides = code.room(AXES), code.room(AXES)
    ndim = _tuple(code, code.attribute(value, code.name("shape")), shape)
    code.require_same(_tuple(code, code.called(value, code.name("stride")), strides), ndim)
    _lay_out(code, entry, frame, address, ndim, shape, strides)


# ---------------------------------------------------------------------------------------------------------------------
# Those with __cuda_array_interface__


def _add_interface(module: Any) -> None:
    code = Code(module, "interface", 3)
    _read_interface(code, *code.arguments)
    code.done()
    with handler(module, "cuda_array") as (code, entry, value, frame):
        _require_ordinal(code, entry, value)
        dtype = code.get(entry, Argument.object)
        with code.ir.if_then(code.is_not(dtype, WORD(0))):  # the interface has no name for it
            code.require_attribute(value, "dtype", dtype)
        interface = code.attribute(value, code.name("__cuda_array_interface__"))
        taken = code.call("interface", interface, entry, frame, result=INT)
        code.release(interface)
        code.require(code.is_(taken, INT(1)))


def _require_ordinal(code: Code, entry: Any, value: Any) -> None:
    """The attribute that is the number of the GPU, or has it; none is asked where there is one GPU."""
    name = code.get(entry, Argument.device_name)
    with code.ir.if_then(code.is_not(name, WORD(0))):
        device = code.variable(code.attribute(value, name))
        part = code.get(entry, Argument.device_part)
        with code.ir.if_then(code.is_not(part, WORD(0))):
            whole = code.ir.load(device)
            found = code.call("PyObject_GetAttr", whole, part)
            code.release(whole)
            code.require_given(found)
            code.ir.store(found, device)
        code.require_same(code.number(code.ir.load(device)), code.get(entry, Argument.device))


def _read_interface(code: Code, interface: Any, entry: Any, frame: Any) -> None:
    b = code.ir

    def found(name: str) -> tuple[Any, Any]:
        """An entry of the dict, and whether there is one that is not None."""
        item = code.call("PyDict_GetItemWithError", interface, code.name(name))
        return item, b.and_(code.is_not(item, WORD(0)), code.is_not(item, code.known("None")))

    code.require(b.not_(found("mask")[1]))
    dtype, given = found("typestr")
    code.require(given)
    with b.if_then(code.is_not(dtype, code.get(entry, Argument.dtype))):
        differ = code.call("PyUnicode_Compare", dtype, code.get(entry, Argument.dtype), result=INT)
        code.require(code.is_(differ, INT(0)))
    data, given = found("data")
    code.require(given)
    number = code.call("PyTuple_GetItem", data, WORD(0))
    code.require_given(number)
    address = code.call("PyLong_AsUnsignedLongLong", number)
    code.require_valid(address)
    with b.if_then(code.is_not(code.get(entry, Argument.written), WORD(0))):
        code.require_same(code.call("PyTuple_GetItem", data, WORD(1)), code.known("False"))
    stream, given = found("stream")
    with b.if_then(given):
        _await(code, frame, stream)
    shape, strides, steps = code.room(AXES), code.room(AXES), code.variable(WORD(0))
    extents, given = found("shape")
    code.require(given)
    ndim = code.call("numbers_of", extents, shape)
    code.require(code.is_not(ndim, WORD(NONE)))
    bytes_apart, given = found("strides")
    with b.if_then(b.and_(given, code.is_not(ndim, WORD(0)))):
        code.require_same(code.call("numbers_of", bytes_apart, strides), ndim)
        _in_elements(code, ndim, strides, code.get(entry, Argument.itemsize))
        b.store(strides, steps)
    _lay_out(code, entry, frame, address, ndim, shape, b.load(steps))


def _in_elements(code: Code, count: Any, strides: Any, itemsize: Any) -> None:
    with code.each(count) as axis:
        nbytes = code.item(strides, axis)
        code.require_same(code.ir.srem(nbytes, itemsize), WORD(0))
        code.store(code.ir.sdiv(nbytes, itemsize), code.ir.add(strides, code.ir.shl(axis, WORD(3))))


def _await(code: Code, frame: Any, stream: Any) -> None:
    """Note the stream on which an array is valid: one for all; 1 is the default stream, as 0 is."""
    number = code.call("PyLong_AsUnsignedLongLong", stream)
    code.require_valid(number)
    number = code.ir.select(code.is_(number, WORD(0)), WORD(1), number)
    known = code.get(frame, Frame.awaited)
    code.require(code.ir.or_(code.is_(known, WORD(0)), code.is_(known, number)))
    code.set(frame, Frame.awaited, number)

"""How the machine code is written: words, fields of structures, calls of the C API, and what refuses an argument.

Every value is a word of 64 bits, also a pointer, which is passed as one; only what a function of C gives back as an
``int`` or a ``double`` is of that type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from .layout import Argument, Frame

__all__ = ["DOUBLE", "INT", "OBJECT", "TYPE_OF_OBJECT", "WORD", "Code", "handler", "place"]

WORD, INT, DOUBLE, BYTE = ir.IntType(64), ir.IntType(32), ir.DoubleType(), ir.IntType(8)
TYPE_OF_OBJECT, OBJECT = 8, 16
"""Where an object has its type, and what its class adds; :mod:`.library` asks for a Python where it is so."""


class Code:
    """One function. ``refused`` is where it goes with what it does not take: it gives back ``refusal``."""

    byte, nothing = BYTE, ir.VoidType()

    def __init__(self, module: Any, name: str, parameters: int, result: Any = INT, refusal: int = 0) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(result, [WORD] * parameters), name)
        self.function.attributes.add("nounwind")
        self.ir = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.arguments = self.function.args
        self.refused = self.function.append_basic_block("refused")
        with self.ir.goto_block(self.refused):
            self.ir.ret(result(refusal))

    # -- values

    def word(self, value: int) -> Any:
        """A constant."""
        return WORD(value)

    def known(self, name: str) -> Any:
        """The address of something that :mod:`.library` knows by a name."""
        found = self.module.globals.get(name)
        if found is None:
            found = ir.GlobalVariable(self.module, BYTE, name)
        return self.ir.ptrtoint(found, WORD)

    def name(self, attribute: str) -> Any:
        """The string that is the name of an attribute."""
        return self.known(f"name:{attribute}")

    def at(self, address: Any, kind: Any = WORD) -> Any:
        return self.ir.inttoptr(address, kind.as_pointer())

    def load(self, address: Any, offset: int = 0, kind: Any = WORD) -> Any:
        return self.ir.load(self.at(self.ir.add(address, WORD(offset)), kind), align=1)

    def store(self, value: Any, address: Any, offset: int = 0) -> None:
        self.ir.store(value, self.at(self.ir.add(address, WORD(offset)), value.type), align=1)

    def get(self, structure: Any, field: Any) -> Any:
        """A field of a structure, as ctypes describes it."""
        found = self.load(structure, field.offset, ir.IntType(8 * min(field.size, 8)))
        return found if found.type == WORD else self.ir.zext(found, WORD)

    def set(self, structure: Any, field: Any, value: Any) -> None:
        self.store(value, structure, field.offset)

    def item(self, address: Any, index: Any) -> Any:
        """The word of that number."""
        return self.load(self.ir.add(address, self.ir.shl(index, WORD(3))))

    def room(self, nbytes: int) -> Any:
        """Memory of the function."""
        with self.ir.goto_entry_block():
            return self.ir.ptrtoint(self.ir.alloca(ir.ArrayType(BYTE, nbytes)), WORD)

    def variable(self, value: Any) -> Any:
        with self.ir.goto_entry_block():
            made = self.ir.alloca(value.type)
        self.ir.store(value, made)
        return made

    # -- what is done

    def call(self, name: str, *arguments: Any, result: Any = WORD) -> Any:
        """A function of C, or of this module."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(result, [WORD] * len(arguments)), name)
        return self.ir.call(function, arguments)

    def call_address(self, address: Any, *arguments: Any, result: Any = INT) -> Any:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.ir.call(self.ir.inttoptr(address, kind.as_pointer()), arguments)

    def call_object(self, callee: Any, *argument: Any) -> Any:
        """Call an object of Python with at most one argument: a new reference, 0 for an error."""
        given = self.room(8)
        for value in argument:
            self.store(value, given)
        return self.call("PyObject_VectorcallDict", callee, given, WORD(len(argument)), WORD(0))

    def release(self, reference: Any) -> None:
        self.call("Py_DecRef", reference, result=self.nothing)

    def is_(self, one: Any, other: Any) -> Any:
        return self.ir.icmp_unsigned("==", one, other)

    def is_not(self, one: Any, other: Any) -> Any:
        return self.ir.icmp_unsigned("!=", one, other)

    def require(self, condition: Any) -> None:
        """Go on where a condition holds, refuse where it does not."""
        onward = self.function.append_basic_block()
        self.ir.cbranch(condition, onward, self.refused)
        self.ir.position_at_end(onward)

    def require_same(self, one: Any, other: Any) -> None:
        self.require(self.is_(one, other))

    def require_given(self, word: Any) -> None:
        """Refuse 0, which is no object."""
        self.require(self.is_not(word, WORD(0)))

    @contextmanager
    def each(self, count: Any) -> Iterator[Any]:
        """The numbers from 0 to ``count`` - 1."""
        number = self.variable(WORD(0))
        test, body, after = (self.function.append_basic_block() for _ in range(3))
        self.ir.branch(test)
        self.ir.position_at_end(test)
        now = self.ir.load(number)
        self.ir.cbranch(self.ir.icmp_unsigned("<", now, count), body, after)
        self.ir.position_at_end(body)
        yield now
        self.ir.store(self.ir.add(now, WORD(1)), number)
        self.ir.branch(test)
        self.ir.position_at_end(after)

    # -- objects

    def attribute(self, owner: Any, name: Any) -> Any:
        """A new reference to an attribute, which there must be."""
        found = self.call("PyObject_GetAttr", owner, name)
        self.require_given(found)
        return found

    def slot(self, owner: Any, field: Any) -> Any:
        """What an object of a class of our own holds, which there must be; the reference is not counted."""
        found = self.load(self.ir.add(owner, self.get(self.known("slots"), field)))
        self.require_given(found)
        return found

    def require_attribute(self, owner: Any, name: str, wanted: Any) -> None:
        """An attribute that must be that object."""
        found = self.attribute(owner, self.name(name))
        self.release(found)
        self.require_same(found, wanted)

    def called(self, owner: Any, method: Any) -> Any:
        """A new reference to what a method without arguments gives."""
        given = self.room(8)
        self.store(owner, given)
        found = self.call("PyObject_VectorcallMethod", method, given, WORD(1), WORD(0))
        self.require_given(found)
        return found

    def number(self, reference: Any) -> Any:
        """The number from 0 to 2**64 - 1 that an int is; the reference is released."""
        found = self.call("PyLong_AsUnsignedLongLong", reference)
        self.release(reference)
        self.require_valid(found)
        return found

    def require_valid(self, number: Any) -> None:
        """Refuse -1 where it stands for an error."""
        with self.ir.if_then(self.is_(number, WORD(2**64 - 1)), likely=False):
            self.require_same(self.call("PyErr_Occurred"), WORD(0))

    def done(self) -> None:
        """The argument is taken."""
        self.ir.ret(INT(1))


@contextmanager
def handler(module: Any, name: str) -> Iterator[tuple[Code, Any, Any, Any]]:
    """A handler: its code, the :class:`Argument`, the value that came, the :class:`Frame`."""
    code = Code(module, name, 3)
    entry, value, frame = code.arguments
    yield code, entry, value, frame
    code.done()


def place(code: Code, entry: Any, frame: Any, number: Any, offset: int = 0) -> None:
    """Pack a number as the parameter of an argument, or one that follows it."""
    memory = code.ir.add(code.get(frame, Frame.memory), code.get(entry, Argument.offset))
    code.store(number, memory, offset)



"""Expressions over what a thread sees, in Python's syntax: ``i == 3 and tile[i + 1] > 0.5``, ``acc[7]``, ``tid.x``.

Names are the variables of the function in focus, special registers, and PTX registers with their ``%``. An index of a
pointer or an array is an element's, an index of any other variable a lane's. Nothing is called but what is listed here.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...types import ScalarType
from ..tools.observed_thread import formatted
from ..tools.variable_names import Held
from .view import ArrayView, Cell, DebugError, View

__all__ = ["Lanes", "evaluate", "lookup", "parse", "shown"]

_REGISTER = re.compile(r"(?<![\w)\]])(\s*)%([A-Za-z_$][\w$.]*)")
_MARK = "__register_"
_SHOWN = 8
"""Elements of an array that are shown with it."""
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "min": min, "max": max, "int": int, "float": float, "bool": bool, "hex": hex, "bin": bin,
    "round": round, "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
}


class Lanes(list[Any]):
    """The numbers of a variable in all lanes, of which the one in focus counts in computations."""

    def __init__(self, name: str, register: str, values: list[Any], lane: int, type: ScalarType) -> None:
        super().__init__(values)
        self.name, self.register, self.lane, self.type = name, register, lane, type

    @property
    def number(self) -> Any:
        """That of the lane in focus. Raises DebugError where it has none."""
        value = self[self.lane]
        if value is None:
            raise DebugError(f"{self.name} has no value yet")
        return value


@lru_cache(maxsize=256)
def parse(text: str) -> ast.expr:
    """The expression that a text is. Raises DebugError where it is none."""
    try:
        marked = _REGISTER.sub(lambda m: f"{m[1]}{_MARK}{m[2].replace('$', '_S_').replace('.', '_D_')}", text.strip())
        return ast.parse(marked, mode="eval").body
    except (SyntaxError, ValueError) as error:
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DebugError(f"`{text}` is no expression: {what}") from None


def evaluate(text: str, view: View) -> Any:
    """What an expression is for a thread: a number, a tuple, an :class:`ArrayView`. Raises DebugError."""
    value = _value(parse(text), view)
    if isinstance(value, Lanes):
        return value.number
    return value.read() if isinstance(value, Cell) else value


def lookup(text: str, view: View) -> Any:
    """As :func:`evaluate`, but a variable as :class:`Lanes` of all lanes, an element of memory as a :class:`Cell`."""
    return _value(parse(text), view)


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, Lanes):
        return shown(value.number)
    if isinstance(value, Cell):
        return shown(value.read())
    if isinstance(value, ArrayView):
        return f"{value} in {value.space} memory at {value.address:#x}: {_elements(value)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(shown, value))})"
    if value is None:
        return "no value yet"
    if isinstance(value, (int, float)):
        return formatted(value)
    return str(value)


def _elements(array: ArrayView) -> str:
    """The first elements of an array."""
    values = [shown(array.cell(index).read()) for index in array.indices(0, _SHOWN)]
    return f"[{', '.join(values)}{', ...' if array.size > _SHOWN else ''}]"


def _plain(value: Any) -> Any:
    if isinstance(value, Lanes):
        return value.number
    if isinstance(value, Cell):
        return value.read()
    if isinstance(value, ArrayView):
        return value.address
    return value


def _value(node: ast.expr, view: View) -> Any:
    kind = type(node)
    try:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            return _name(node.id, view)
        if isinstance(node, ast.Attribute):
            return _attribute(node, view)
        if isinstance(node, ast.Subscript):
            return _subscript(node, view)
        if isinstance(node, ast.BoolOp):
            return _boolean(node, view)
        if isinstance(node, ast.Tuple):
            return tuple(_plain(_value(item, view)) for item in node.elts)
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](_plain(_value(node.left, view)), _plain(_value(node.right, view)))
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](_plain(_value(node.operand, view)))
        if isinstance(node, ast.Compare):
            return _comparison(node, view)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            return _FUNCTIONS[node.func.id](*(_plain(_value(item, view)) for item in node.args))
    except (ArithmeticError, TypeError, ValueError, KeyError) as error:
        raise DebugError(f"`{ast.unparse(node)}` cannot be computed: {error}") from None
    functions = ", ".join(_FUNCTIONS)
    raise DebugError(f"`{ast.unparse(node)}` ({kind.__name__}) is nothing that a debugger computes",
                     hint=f"names, indices, operators, and of functions {functions}")


def _name(name: str, view: View) -> Any:
    variables = view.variables
    if name in variables:
        return _held(name, variables[name], view)
    if name in view.constants:
        return view.constants[name]
    if name.startswith(_MARK):
        register = "%" + name[len(_MARK) :].replace("_S_", "$").replace("_D_", ".")
        if register in view.registers:
            return _held(register, Held(register, view.registers[register]), view)
        special = view.special()
        if register[1:] in special:
            return special[register[1:]]
        raise DebugError(f"there is no register {register}")
    places = {"block": view.block, "thread": view.thread, "lane": view.lane, "warp": view.warp}
    known = {**places, **view.special(), "True": True, "False": False}
    if name in known:
        return known[name]
    raise DebugError(f"there is no variable `{name}` here; there are {', '.join(variables) or 'none'}")


def _held(name: str, held: Held, view: View) -> Any:
    if held.points is not None:
        return view.array(name, held)
    return Lanes(name, held.register, view.lanes(held, name), view.lane, view.type_of(held))


def _attribute(node: ast.Attribute, view: View) -> Any:
    value = _value(node.value, view)
    if isinstance(value, tuple) and node.attr in ("x", "y", "z") and len(value) == 3:
        return value["xyz".index(node.attr)]
    if isinstance(value, ArrayView) and node.attr in ("shape", "strides", "address"):
        return getattr(value, node.attr)
    raise DebugError(f"`{ast.unparse(node)}`: there is no .{node.attr}")


def _subscript(node: ast.Subscript, view: View) -> Any:
    text = ""
    if view.has_lists:  # of Python's, whose elements are variables
        text = ast.unparse(node)
        if text in view.variables:
            return _held(text, view.variables[text], view)
    value = _value(node.value, view)
    index = _plain(_value(node.slice, view))
    items = index if isinstance(index, tuple) else (index,)
    text = text or (ast.unparse(node) if not isinstance(value, ArrayView) else "")
    if not all(isinstance(item, int) for item in items):
        raise DebugError(f"`{ast.unparse(node)}`: an index is an integer, not {shown(index)}")
    if isinstance(value, ArrayView):
        return value.cell(items)
    if isinstance(value, Lanes):
        if len(items) != 1 or not 0 <= items[0] < len(value):
            raise DebugError(f"`{text}`: the warp has lanes 0 to {len(value) - 1}")
        return Lanes(f"{value.name}[{items[0]}]", value.register, value, items[0], value.type)
    if isinstance(value, tuple):
        return value[items[0]]
    raise DebugError(f"`{text}`: {shown(value)} has no elements")


def _boolean(node: ast.BoolOp, view: View) -> Any:
    value: Any = None
    for item in node.values:
        value = _plain(_value(item, view))
        if bool(value) != isinstance(node.op, ast.And):
            break
    return value


def _comparison(node: ast.Compare, view: View) -> bool:
    left = _plain(_value(node.left, view))
    for op, right_node in zip(node.ops, node.comparators):
        right = _plain(_value(right_node, view))
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True

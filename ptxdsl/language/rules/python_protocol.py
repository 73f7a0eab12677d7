"""Rule R4: a run-time value has no Python truth, number, length, hash or iterator.

The kernel function runs once, while it is traced, for all threads together: a value has no number then that ``if v:``
could test. Refused are the methods of Python's protocols: ``__bool__`` (``if``, ``and``, ``or``, ``not``, chained
comparisons, ``in``), ``__index__`` (``range(v)``), ``__int__``, ``__len__``, ``__iter__``, ``__hash__`` and the like,
each with the way to say it at run time: `when`, `loop`, `select`, ``&``. A truth that was asked for ends the trace even
if the kernel catches the error, since Python has taken one way by then.

What it cannot see: questions that Python answers without a protocol: ``v is w``, ``isinstance``, ``type(v)``.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, NoReturn

from ...errors import Loc, PtxTypeError, TruthError, did_you_mean, similar
from ..builder import fatal
from ..introspection.call_sites import location_of, user_frame
from ..introspection.variable_names import name_of

__all__ = ["MissingAttribute", "RunTime", "missing"]

_TRUTH = "truth"
_FLOATS = ("f16", "bf16", "f32", "f64")
_ELSEWHERE = {
    "astype": "`v.to(f32)` converts", "float": "`v.to(f32)` converts", "int": "`v.to(s64)` converts",
    "item": "a value is there when the kernel runs; it has no Python number",
    "T": "index it the other way round: `a[j, i]`", "size": "`a.shape[0]`, or a parameter `n: u32`",
    "sum": "`ptxdsl.warp.reduce_sum(v)`, `ptxdsl.block.reduce_sum(v, threads)`",
    "max": "`ptxdsl.warp.reduce_max(v)`, `ptxdsl.block.reduce_max(v, threads)`",
    "dtype": "`v.type` of a value, `p.dtype` of a pointer", "shape": "a parameter `x: Array[f32, 1]` has its extents",
    "reshape": "`p + i` and `p.cast(u32)` make other pointers",
    "set": "only a `reg` changes: `acc = reg(f32, 0.0)`, then `acc.set(v)`",
}
"""Names of numpy and of a `reg`, and what is used instead."""


class MissingAttribute(PtxTypeError, AttributeError):
    """A name that a value does not have; `hasattr` sees an AttributeError."""


# ruff: noqa: PLE0303, PLE0304, PLE0305, PLE0309 -- these methods never return


class RunTime:
    """What exists only when the kernel runs."""

    __slots__ = ()

    def _describe(self, frame: FrameType | None = None) -> str:
        """What the value is, for a message: ``the u32 `n` ``."""
        name = name_of(self, frame or user_frame(3))
        return f"`{name}`, a run-time {self._kind()}," if name else f"a run-time {self._kind()}"

    def _kind(self) -> str:
        return "value"

    def _refuse(self, what: str, hint: str) -> NoReturn:
        error = TruthError(
            f"{self._describe()} has no Python {what}: the kernel is traced once, before it runs",
            loc=location_of(user_frame(2)), hint=hint,
        )
        raise fatal(error) if what is _TRUTH else error

    def __bool__(self) -> bool:
        self._refuse(
            _TRUTH,
            "`with when(p):` for `if`, `with loop(): ... break_if(p)` for `while`, "
            "`select(p, a, b)` for `a if p else b`, "
            "`&`, `|`, `~` for `and`, `or`, `not`, `(a <= x) & (x < b)` for a chained comparison, "
            "`minimum` and `maximum` for `min` and `max`",
        )

    def __int__(self) -> int:
        whole = "it is an integer when the kernel runs: leave `int` away"
        self._refuse("int", "`v.to(s64)` rounds towards zero" if self._kind() in _FLOATS else whole)

    def __float__(self) -> float:
        wide = "" if self._kind() in _FLOATS else "`v.to(f64)` converts at run time; "
        self._refuse("float", f"{wide}functions are in `ptxdsl.math` and `ptx.sqrt.rn.f32(v)`")

    def __complex__(self) -> complex:
        self._refuse("complex number", "use two values, one for each part")

    def __index__(self) -> int:
        self._refuse(
            "int",
            "`with loop(v) as i:` for `for i in range(v)`; an index into a Python list, a shape or a modifier must be "
            "known while tracing: a keyword-only parameter of the kernel is",
        )

    def __len__(self) -> int:
        self._refuse(
            "length", "pass the length as a parameter of the kernel: `n: u32`, or take `a.shape[0]` of an Array"
        )

    def __iter__(self) -> Any:
        self._refuse(
            "iterator", "`with loop(n) as i:` runs over run-time indices; a Vec (`p.load(i, width=4)`) can be unpacked"
        )

    def __contains__(self, item: object) -> bool:
        self._refuse("membership test", "compare with each: `(v == a) | (v == b)`")

    def __hash__(self) -> int:
        self._refuse("hash", "keep values in a list, or in a dict under their names")

    def __round__(self, digits: object = None) -> int:
        self._refuse("rounding", self._rounded("rni", "rounds to the nearest whole number"))

    def __floor__(self) -> int:
        self._refuse("floor", self._rounded("rmi", "rounds down"))

    def __ceil__(self) -> int:
        self._refuse("ceiling", self._rounded("rpi", "rounds up"))

    def __trunc__(self) -> int:
        self._refuse("truncation", self._rounded("rzi", "rounds towards zero"))

    def _rounded(self, mode: str, what: str) -> str:
        kind = self._kind()
        return f"`v.to({kind}, '{mode}')` {what}" if kind in _FLOATS else "it is a whole number already"

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse("number to format", f'`printf("{self._conversion()}", v)` prints when the kernel runs')
        return str(self)

    def _conversion(self) -> str:
        kind = self._kind()
        sizes = {"f": "%f", "u64": "%llu", "s64": "%lld", "u": "%u"}
        return sizes.get(kind) or sizes.get(kind[0]) or "%d"

    def __enter__(self) -> NoReturn:
        self._refuse("block", "`with when(p):`")

    def __exit__(self, *error: object) -> None: ...

    def __array__(self, *arguments: object, **options: object) -> NoReturn:
        self._refuse("array", "numpy works on the host; load from a pointer (`x[i]`) and use ptxdsl's functions")


def missing(error: AttributeError, place: tuple[FrameType, Loc] | None) -> MissingAttribute | None:
    """The error for a name that a value does not have, where Python's own, raised at ``place``, is of one.

    A ``__getattr__`` would do too, and make every attribute of every value take twice as long.
    """
    value, name = error.obj, error.name or "__"
    if place is None or not isinstance(value, RunTime) or name.startswith("__"):
        return None
    frame, loc = place
    near = similar(name, (word for word in dir(value) if not word.startswith("_")))
    hint = _ELSEWHERE.get(name) or did_you_mean(near, "`.{}`")
    return MissingAttribute(f"{value._describe(frame)} has no `.{name}`", loc=loc, hint=hint)

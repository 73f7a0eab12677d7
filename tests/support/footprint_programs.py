"""Random kernels of loads, stores and barriers, as PTX and as a program that is run thread by thread in Python.

What one run of the Python program touches is the truth that proofs are held to: it knows nothing of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ARRAY", "LOCAL", "SHARED", "Kernel", "Touch", "random_kernel"]

ARRAY, SHARED, LOCAL = 1 << 14, 2048, 64
"""Bytes of each global array, of each array in shared memory, and of that in the memory of each thread."""
_SIZES = {"x": ARRAY, "y": ARRAY, "s": SHARED, "t": SHARED, "l": LOCAL}
_MASK = (1 << 32) - 1
_LONG = 12345678912345
_BINARY: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b, "sub.u32": lambda a, b: a - b, "mul.lo.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b, "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b,
    "min.u32": min, "max.u32": max, "min.s32": lambda a, b: min(_s(a), _s(b)), "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b, "shr.s32": lambda a, b: _s(a) >> b, "rem.u32": lambda a, b: a % b,
    "div.u32": lambda a, b: a // b, "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: _s(a) * _s(b) >> 32,
}
_UNARY: dict[str, Callable[[int], int]] = {
    "not.b32": lambda a: ~a, "neg.s32": lambda a: -a, "abs.s32": lambda a: abs(_s(a)),
    "brev.b32": lambda a: int(f"{a:032b}"[::-1], 2),
}
_TESTS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}


def _s(value: int) -> int:
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


@dataclass
class Touch:
    """An execution of an access: its number, the array, the bytes, the thread, the barriers that it has passed."""

    access: int
    array: str
    start: int
    nbytes: int
    writes: bool
    block: int
    thread: int
    interval: int


class _Ended(Exception):
    """The thread has ended."""


@dataclass
class _Thread:
    special: dict[str, int]
    block: int
    number: int
    memory: random.Random
    names: dict[str, int] = field(default_factory=dict)
    interval: int = 0
    barriers: list[int] = field(default_factory=list)
    touched: list[Touch] = field(default_factory=list)
    steps: int = 0


Expression = Any
"""A number, a name, or an operation and its operands."""


class Kernel:
    """A kernel: its PTX text, its accesses in the order of the text, and what its threads touch."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.block = draw.choice([(32, 1, 1), (40, 1, 1), (8, 4, 1), (4, 3, 2), (33, 1, 1), (16, 3, 1)])
        self.grid = draw.choice([(1, 1, 1), (2, 1, 1), (3, 1, 1), (2, 2, 1), (1, 3, 1)])
        self.n = draw.choice([7, 16, 32, 50, 64, 100, 128, 0, 1 << 31])
        self.lines: list[str] = []
        self.registers = self.predicates = self.labels = self.wide = 0
        self.arrays: dict[int, str] = {}
        """By the number of an access the array that it is to."""
        self.atomic: dict[int, bool] = {}
        self.loops: list[str] = []
        self.depth = 0
        self.body: list[Callable[[_Thread], None]] = self._statements(draw.randint(2, 6))

    # Expressions

    def _leaf(self) -> Expression:
        draw = self.draw
        x, y, z = self.block
        kind = draw.random()
        if kind < 0.35:
            return "%tid.x"
        if kind < 0.4:
            return ("mad", "%tid.y", x, "%tid.x") if z == 1 else ("mad", ("mad", "%tid.z", y, "%tid.y"), x, "%tid.x")
        if kind < 0.5:
            return draw.choice(["%tid.y", "%tid.z", "%ntid.x", "%nctaid.x", "%laneid"])
        if kind < 0.62:
            return ("mad", "%ctaid.x", "%ntid.x", "%tid.x")
        if kind < 0.7:
            return draw.choice(["%ctaid.x", "%ctaid.y"])
        if kind < 0.78 and self.loops:
            return draw.choice(self.loops)
        if kind < 0.83:
            return "n"
        if kind < 0.86:
            return "loaded"
        return draw.choice([0, 1, 2, 3, 4, 8, 16, 31, 32, 64, 128, _MASK, 1 << 30])

    def _expression(self, depth: int = 0) -> Expression:
        draw = self.draw
        if depth > 2 or draw.random() < 0.5:
            return self._leaf()
        op = draw.choice(["add.u32"] * 5 + ["mad"] * 4 + ["selp"] + list(_BINARY) + list(_UNARY))
        if op in _UNARY:
            return (op, self._expression(depth + 1))
        if op in ("shl.b32", "shr.u32", "shr.s32"):
            return (op, self._expression(depth + 1), draw.choice([0, 1, 2, 3, 4, 5, 30]))
        if op in ("rem.u32", "div.u32"):
            return (op, self._expression(depth + 1), draw.choice([1, 2, 4, 7, 8, 16, 32, 33]))
        if op in ("and.b32", "or.b32", "xor.b32") and draw.random() < 0.7:
            return (op, self._expression(depth + 1), draw.choice([1, 3, 7, 15, 31, 63, 64, 32, _MASK - 3]))
        if op == "mad":
            factor = draw.choice([1, 2, 4, 16, 32, 33, "n", "n", "%ntid.x", "%ntid.x", 1 << 30])
            return ("mad", self._expression(depth + 1), factor, self._expression(depth + 1))
        if op == "selp":
            return ("selp", self._expression(depth + 1), self._expression(depth + 1), self._condition())
        return (op, self._expression(depth + 1), self._expression(depth + 1))

    def _condition(self) -> Expression:
        draw = self.draw
        test = (draw.choice(list(_TESTS)), draw.choice(["u32", "s32"]), self._expression(2),
                draw.choice([0, 1, 8, 16, 31, 32, 33, 48, 64, "n", "n", self._leaf()]))
        return ("and.pred", test, self._condition()) if draw.random() < 0.15 else test

    def _emit(self, expression: Expression) -> str:
        """The instructions that compute an expression; the register that has it."""
        if isinstance(expression, int):
            return str(expression)
        if isinstance(expression, str):
            return {"n": "%n", "loaded": "%loaded"}.get(expression, expression)
        if expression[0] == "selp":
            _, yes, no, condition = expression
            parts = [self._emit(yes), self._emit(no), self._emit_condition(condition)]
            name = "selp.b32"
        else:
            name = "mad.lo.u32" if expression[0] == "mad" else expression[0]
            parts = [self._emit(each) for each in expression[1:]]
        parts = [self._moved(part) if "." in part or part == "%laneid" else part for part in parts]
        self.registers += 1
        self.lines.append(f"{name} %r{self.registers}, {', '.join(parts)};")
        return f"%r{self.registers}"

    def _moved(self, special: str) -> str:
        self.registers += 1
        self.lines.append(f"mov.u32 %r{self.registers}, {special};")
        return f"%r{self.registers}"

    def _register(self, expression: Expression) -> str:
        found = self._emit(expression)
        return found if found.startswith("%") and "." not in found and found != "%laneid" else self._moved(found)

    def _emit_condition(self, condition: Expression) -> str:
        if condition[0] == "and.pred":
            parts = [self._emit_condition(each) for each in condition[1:]]
            self.predicates += 1
            self.lines.append(f"and.pred %p{self.predicates}, {parts[0]}, {parts[1]};")
            return f"%p{self.predicates}"
        test, kind, left, right = condition
        a, b = self._register(left), self._register(right)
        self.predicates += 1
        self.lines.append(f"setp.{test}.{kind} %p{self.predicates}, {a}, {b};")
        return f"%p{self.predicates}"

    def value(self, expression: Expression, t: _Thread) -> int:
        """What an expression is in a thread."""
        if isinstance(expression, int):
            return expression & _MASK
        if isinstance(expression, str):
            return self.n if expression == "n" else (t.special | t.names)[expression]
        if expression[0] == "selp":
            return self.value(expression[1 if self.holds(expression[3], t) else 2], t)
        if expression[0] == "mad":
            a, b, c = (self.value(each, t) for each in expression[1:])
            return (a * b + c) & _MASK
        if expression[0] in _UNARY:
            return _UNARY[expression[0]](self.value(expression[1], t)) & _MASK
        a, b = (self.value(each, t) for each in expression[1:])
        return _BINARY[expression[0]](a, b) & _MASK

    def holds(self, condition: Expression, t: _Thread) -> bool:
        """Whether a condition holds in a thread."""
        if condition[0] == "and.pred":
            return self.holds(condition[1], t) and self.holds(condition[2], t)
        test, kind, *sides = condition
        a, b = (self.value(side, t) for side in sides)
        return _TESTS[test](_s(a), _s(b)) if kind == "s32" else _TESTS[test](a, b)

    # Statements

    def _statements(self, count: int) -> list[Callable[[_Thread], None]]:
        return [self._statement() for _ in range(count)]

    def _statement(self) -> Callable[[_Thread], None]:
        kind = self.draw.random()
        if kind < 0.5 or self.depth > 2:
            return self._access()
        if kind < 0.7:
            return self._barrier()
        if kind < 0.82:
            return self._branch()
        return self._loop() if kind < 0.96 else self._return()

    def _access(self) -> Callable[[_Thread], None]:
        draw = self.draw
        array = draw.choice(["x", "y", "s", "s", "s", "t", "l"])
        nbytes = draw.choice([4, 4, 4, 4, 1, 2, 8, 16])
        adds = nbytes == 4 and array != "l" and draw.random() < 0.4
        role = draw.choice(["ld", "st", "st", "red"] if adds else ["ld", "st"])
        index, scale = self._expression(), draw.choice([nbytes] * 6 + [4, 8, 1, 16])
        offset = draw.choice([0] * 8 + [4, 16, 64, 256, 128])
        guard = self._condition() if draw.random() < 0.2 else None
        signed = draw.random() < 0.5
        wide = array in "xy"
        register = self._register(index)
        before = f"@{self._emit_condition(guard)} " if guard else ""
        self.registers += 1
        self.wide += 1
        if wide:
            base = f"%rd{self.wide}"
            style = draw.choice(["mul", "mad", "cvt", "end", "long"])
            kind = "s32" if signed else "u32"
            if style == "mad":
                self.lines.append(f"mad.wide.{kind} {base}, {register}, {scale}, %{array};")
            elif style == "mul":
                self.lines.append(f"mul.wide.{kind} {base}, {register}, {scale};")
                self.lines.append(f"add.s64 {base}, {base}, %{array};")
            elif style == "long":
                self.lines += [
                    f"cvt.u64.u32 {base}, {register};", f"mul.lo.u64 {base}, {base}, {_LONG};",
                    f"shr.u64 {base}, {base}, 7;", f"rem.u64 {base}, {base}, 61;",
                    f"mad.lo.s64 {base}, {base}, {scale}, %{array};",
                ]
            else:
                self.lines.append(f"cvt.{kind[0]}64.{kind} {base}, {register};")
                if style == "end":
                    self.lines += [f"shr.s64 %w, {base}, 63;", "and.b64 %w, %w, 64;", f"add.s64 {base}, {base}, %w;"]
                self.lines.append(f"mad.lo.s64 {base}, {base}, {scale}, %{array};")
            space = "global"
        else:
            base, space, style = f"%r{self.registers}", "local" if array == "l" else "shared", ""
            self.lines.append(f"mad.lo.u32 {base}, {register}, {scale}, %{array};")
        number = len(self.arrays)
        self.arrays[number], self.atomic[number] = array, role == "red"
        name = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v2.u64"}[nbytes]
        value = {1: "%h", 2: "%h", 4: "%r0", 8: "%q", 16: "{%q, %q}"}[nbytes]
        into = {1: "%h", 2: "%h", 4: "%loaded", 8: "%u", 16: "{%u, %v}"}[nbytes]
        if role == "red":
            self.lines.append(f"{before}red.{space}.add.u32 [{base}+{offset}], 1;")
        elif role == "st":
            self.lines.append(f"{before}st.{space}.{name} [{base}+{offset}], {value};")
        else:
            self.lines.append(f"{before}ld.{space}.{name} {into}, [{base}+{offset}];")

        def run(t: _Thread) -> None:
            found = self.value(index, t)
            if guard and not self.holds(guard, t):
                return
            found = _s(found) if wide and signed and style != "long" else found
            if style == "long":
                found = (found * _LONG % (1 << 64) >> 7) % 61
            start = (found + 64 * (style == "end" and found < 0)) * scale + offset
            if not wide:
                start = _s(start)
            if role == "ld" and nbytes == 4:
                t.names["loaded"] = t.memory.choice([0, 1, 5, 64, t.memory.getrandbits(32)])
            if 0 <= start and start + nbytes <= _SIZES[array]:
                t.touched.append(
                    Touch(number, array, start, nbytes, role != "ld", t.block, t.number, t.interval)
                )

        return run

    def _barrier(self) -> Callable[[_Thread], None]:
        number = len(self.lines)
        x, y, z = self.block
        kinds = ["bar.sync 0;", "barrier.sync.aligned 0;", "bar.sync 1;"]
        if x * y * z <= 32:
            kinds += ["bar.warp.sync 0xffffffff;"] * 2
        self.lines.append(self.draw.choice(kinds))

        def run(t: _Thread) -> None:
            t.interval += 1
            t.barriers.append(number)

        return run

    def _label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def _branch(self) -> Callable[[_Thread], None]:
        condition, end = self._condition(), self._label()
        predicate = self._emit_condition(condition)
        self.lines.append(f"@!{predicate} bra {end};")
        self.depth += 1
        inside = self._statements(self.draw.randint(1, 3))
        self.depth -= 1
        self.lines.append(f"{end}:")

        def run(t: _Thread) -> None:
            if self.holds(condition, t):
                for each in inside:
                    each(t)

        return run

    def _loop(self) -> Callable[[_Thread], None]:
        draw = self.draw
        x, y, z = self.block
        start, end = self._expression(1), self._expression(2)
        start, end = draw.choice([start, "%tid.x", 0]), draw.choice([end, "n", "n", 64, 100])
        step = draw.choice([1, 4, 16, 32, x, x * y * z, "%ntid.x", ("mul.lo.u32", "%ntid.x", "%nctaid.x")])
        kind, style = draw.choice(["u32", "s32"]), draw.choice(["top", "bottom", "early"])
        name, head, out = f"%i{len(self.lines)}", self._label(), self._label()
        test: Expression = ("lt", kind, name, end)
        by, last = self._register(step), self._register(end)
        self.lines.append(f"mov.u32 {name}, {self._register(start)};")
        self.predicates += 1
        p = f"%p{self.predicates}"
        if style != "top":
            self.lines.append(f"setp.ge.{kind} {p}, {name}, {last};")
            self.lines.append(f"@{p} bra {out};")
        self.lines.append(f"{head}:")
        if style == "top":
            self.lines.append(f"setp.ge.{kind} {p}, {name}, {last};")
            self.lines.append(f"@{p} bra {out};")
        self.loops.append(name)
        self.depth += 1
        inside = self._statements(draw.randint(1, 3))
        self.depth -= 1
        self.loops.remove(name)
        if style == "early":  # what the test asks is one step behind
            self.lines.append(f"setp.lt.{kind} {p}, {name}, {last};")
        self.lines.append(f"add.u32 {name}, {name}, {by};")
        if style == "bottom":
            self.lines.append(f"setp.lt.{kind} {p}, {name}, {last};")
        self.lines.append(f"bra {head};" if style == "top" else f"@{p} bra {head};")
        self.lines.append(f"{out}:")

        def run(t: _Thread) -> None:
            bound, add = self.value(end, t), self.value(step, t)
            t.names[name] = self.value(start, t)
            fixed = ("lt", kind, name, bound)
            going = self.holds(fixed, t)
            while going:
                for each in inside:
                    each(t)
                t.steps += 1
                if t.steps > 200:
                    raise OverflowError
                before = self.holds(fixed, t)
                t.names[name] = (t.names[name] + add) & _MASK
                going = before if style == "early" else self.holds(fixed, t)

        del test
        return run

    def _return(self) -> Callable[[_Thread], None]:
        condition = self._condition()
        self.lines.append(f"@{self._emit_condition(condition)} ret;")

        def run(t: _Thread) -> None:
            if self.holds(condition, t):
                raise _Ended

        return run

    # The whole

    @property
    def text(self) -> str:
        """The kernel as PTX."""
        names = sorted({part.strip("{},;[]+") for line in self.lines for part in line.split() if "%i" in part[:2]})
        loops = ", ".join(name.split("+")[0] for name in names) or "%i"
        lines = "\n    ".join(self.lines)
        return f"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x_p, .param .u64 y_p, .param .u32 n_p) {{
    .reg .b32 %r<{self.registers + 1}>, %n, %loaded, %s, %t, %l, {loops};
    .reg .b64 %rd<{self.wide + 1}>, %x, %y, %q, %u, %v, %w;
    .reg .b16 %h;
    .reg .pred %p<{self.predicates + 1}>;
    .shared .align 16 .b8 s_a[{SHARED}];
    .shared .align 16 .b8 t_a[{SHARED}];
    .local .align 16 .b8 l_a[{LOCAL}];
    ld.param.u64 %x, [x_p];
    ld.param.u64 %y, [y_p];
    ld.param.u32 %n, [n_p];
    mov.u32 %s, s_a;
    mov.u32 %t, t_a;
    mov.u32 %l, l_a;
    mov.u32 %loaded, 5;
    mov.u32 %r0, %tid.x;
    cvt.u64.u32 %q, %r0;
    cvt.u16.u32 %h, %r0;
    {lines}
    ret;
}}
"""

    def threads(self) -> Iterator[_Thread]:
        """The threads of the launch, before they run."""
        x, y, z = self.block
        gx, gy, gz = self.grid
        for block in range(gx * gy * gz):
            for number in range(x * y * z):
                special = {
                    "%tid.x": number % x, "%tid.y": number // x % y, "%tid.z": number // (x * y), "%ntid.x": x,
                    "%nctaid.x": gx, "%ctaid.x": block % gx, "%ctaid.y": block // gx % gy, "%laneid": number % 32,
                }
                yield _Thread(special, block, number, random.Random(self.draw.random()), {"loaded": 5})

    def touches(self) -> list[Touch] | None:
        """What all threads touch; None of a kernel that runs for too long."""
        found = []
        for thread in self.threads():
            try:
                for each in self.body:
                    each(thread)
            except _Ended:
                pass
            except OverflowError:
                return None
            found += thread.touched
        return found


def random_kernel(seed: int) -> Kernel:
    """The kernel of a seed."""
    return Kernel(random.Random(seed))

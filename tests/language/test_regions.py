"""Control flow: the labels and branches that each statement leaves, the values that loops give, and their misuse."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from tracing_helpers import ptx as lines
from tracing_helpers import refused, said

from ptxdsl import (
    Ptr, break_if, check, continue_if, f32, label, loop, otherwise, ptx, ptx_kernel, reg, s16, s32, s64, select, u16,
    u32, u64, when,
)
from ptxdsl.language.control import regions as control, labels, loops

# ---------------------------------------------------------------------------------------------------------------------
# What is emitted


def test_when() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with when(n < 5):
            x[0] = n

    assert lines(kernel) == [
        "setp.lt.u32 %p0, %r0, 5", "@!%p0 bra $endif_1", "st.global.u32 [%rd0], %r0", "$endif_1:", "ret",
    ]


def test_when_of_a_negated_predicate_costs_nothing() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with when(~(n < 5)):
            x[0] = n

    assert lines(kernel)[1] == "@%p0 bra $endif_1"


def test_when_and_otherwise() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with when(n < 5):
            x[0] = n
        with otherwise():
            x[1] = n

    assert lines(kernel) == [
        "setp.lt.u32 %p0, %r0, 5", "@!%p0 bra $else_1", "st.global.u32 [%rd0], %r0", "bra $endif_1", "$else_1:",
        "st.global.u32 [%rd0+4], %r0", "$endif_1:", "ret",
    ]


def test_otherwise_goes_with_the_when_at_its_own_level() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with when(n < 5):
            with when(n < 3):
                x[0] = n
        with otherwise():
            x[1] = n

    assert lines(kernel) == [
        "setp.lt.u32 %p0, %r0, 5", "@!%p0 bra $else_1", "setp.lt.u32 %p1, %r0, 3", "@!%p1 bra $endif_2",
        "st.global.u32 [%rd0], %r0", "$endif_2:", "bra $endif_1", "$else_1:", "st.global.u32 [%rd0+4], %r0",
        "$endif_1:", "ret",
    ]


def test_counted_loop_is_three_instructions_an_iteration() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with loop(n) as i:
            x[0] = i

    assert lines(kernel) == [
        "mov.u32 %i, 0", "setp.ge.u32 %p0, %i, %r0", "@%p0 bra $endloop_1",
        "$loop_1:", "st.global.u32 [%rd0], %i", "add.u32 %i, %i, 1", "setp.lt.u32 %p0, %i, %r0", "@%p0 bra $loop_1",
        "$endloop_1:", "ret",
    ]


def test_loop_of_known_bounds_is_not_tested_before() -> None:
    def kernel(x: Ptr[u32]):
        with loop(2, 10, 3) as i:
            x[0] = i

    assert lines(kernel) == [
        "mov.u32 %i, 2", "$loop_1:", "st.global.u32 [%rd0], %i", "setp.lt.u32 %p0, %i, 7", "add.u32 %i, %i, 3",
        "@%p0 bra $loop_1", "ret",
    ]


def test_loop_that_is_known_to_be_empty_is_passed_by() -> None:
    def kernel(x: Ptr[u32]):
        with loop(3, 3) as i:
            x[0] = i

    assert lines(kernel)[:3] == ["mov.u32 %i, 3", "bra $endloop_1", "$loop_1:"]


def test_endless_loop_is_one_branch() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with loop():
            continue_if(n < 3)
            break_if(~(n < 5))

    assert lines(kernel) == [
        "$loop_1:", "setp.lt.u32 %p0, %r0, 3", "@%p0 bra $loop_1", "setp.lt.u32 %p1, %r0, 5",
        "@!%p1 bra $endloop_1", "bra $loop_1", "$endloop_1:", "ret",
    ]


def test_continue_goes_on_to_the_next_count() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with loop(n) as i:
            continue_if(i == 3)
            x[0] = i

    text = lines(kernel)
    assert text.index("@%p1 bra $next_1") < text.index("st.global.u32 [%rd0], %i") < text.index("$next_1:")
    assert text[text.index("$next_1:") + 1] == "add.u32 %i, %i, 1"


def test_break_and_continue_belong_to_the_innermost_loop() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with loop(n) as i:
            with loop(n) as j:
                with when(i == j):
                    break_if(i > 7)
                    continue_if(i > 5)
            break_if(i == 9)

    text = lines(kernel)
    assert [line for line in text if "bra $endloop" in line and "%p0" not in line and "%p1 " not in line] == [
        "@%p3 bra $endloop_2", "@%p5 bra $endloop_1",
    ]
    assert "@%p4 bra $next_2" in text


def test_break_in_any_case() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with loop():
            with when(n < 5):
                x[0] = n
                break_if(True)
            break_if(False)

    assert lines(kernel) == [
        "$loop_1:", "setp.lt.u32 %p0, %r0, 5", "@!%p0 bra $endif_2", "st.global.u32 [%rd0], %r0", "bra $endloop_1",
        "$endif_2:", "bra $loop_1", "$endloop_1:", "ret",
    ]


def test_labels_of_one_line_are_told_apart() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        for k in range(3):
            with when(n == k): x[k] = n  # noqa: E701

    assert [line for line in lines(kernel) if line.endswith(":")] == ["$endif_2:", "$endif_2_1:", "$endif_2_2:"]
    assert lines(kernel) == lines(kernel)


def test_raw_labels() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        i = reg(u32, 0)
        done = label(here=False)
        top = label()
        ptx.bra(done, pred=i >= n)
        ptx.bra("out", pred=i == 100)
        i += 1
        ptx.bra(top)
        done.here()
        x[0] = i
        label("out")

    assert lines(kernel) == [
        "mov.u32 %i, 0", "$label_3:", "setp.ge.u32 %p0, %i, %r0", "@%p0 bra $label_2", "setp.eq.u32 %p1, %i, 100",
        "@%p1 bra out", "add.u32 %i, %i, 1", "bra $label_3", "$label_2:", "st.global.u32 [%rd0], %i", "out:", "ret",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# What is computed: Python's range is the oracle

_RANGES = [
    (u32, 0, 5, 1), (u32, 3, 3, 1), (u32, 7, 3, 1), (u32, 0, 10, 3), (u32, 0, 9, 3), (u32, 5, 2, 4), (u32, 0, 1, 100),
    (u32, 2**32 - 3, 2**32 - 1, 1), (u32, 2**32 - 3, 2**32 - 1, 7), (u32, 0, 2**32 - 1, 2**30 + 1),
    (s32, -3, 3, 2), (s32, 3, -3, -2), (s32, 3, -3, -1), (s32, 3, 3, -1), (s32, -3, 3, -1),
    (s32, 2**31 - 4, 2**31 - 1, 3), (s32, -(2**31) + 3, -(2**31), -2), (s32, -(2**31), -(2**31) + 9, 2**31 - 1),
    (s32, 2**31 - 1, -(2**31), -(2**30) - 5), (s64, -5, 5, 3), (s64, 2**63 - 3, 2**63 - 1, 5),
    (s64, 4, -(2**63), -(2**62) - 1),
    (u64, 2**64 - 4, 2**64 - 1, 2), (u16, 0, 65535, 60000), (u16, 65530, 65535, 4), (s16, 5, -32768, -30000),
    (s16, -32768, 32767, 32767),
]


_KNOWN = ["start stop step", "stop step", "start step", "step", "start stop", "start", ""]
_MIXTURES = [(*r, known) for r in _RANGES for known in _KNOWN if r[3] > 0 or "step" in known]  # a run-time step is > 0


@pytest.mark.parametrize(("kind", "start", "stop", "step", "known"), _MIXTURES, ids=str)
def test_loop_is_range(kind: type, start: int, stop: int, step: int, known: str) -> None:
    """Every mixture of run-time and known bounds, to the ends of each type."""

    def kernel(out: Ptr[kind], count: Ptr[u32], a: kind, b: kind, c: kind):  # type: ignore[valid-type]
        n = reg(u32, 0)
        bounds = [v if name in known.split() else r for name, v, r in
                  (("start", start, a), ("stop", stop, b), ("step", step, c))]
        # At least one Value gives the type; where all is known the type is chosen for 32 or 64 bits.
        with loop(*bounds) as i:
            out[n] = i.to(kind)
            n += 1
        count[0] = n

    expected = list(range(start, stop, step))
    name = str(kind).replace("u", "uint").replace("s", "int")
    out, count = np.full(len(expected) + 4, 77, name), np.full(1, 99, np.uint32)
    ptx_kernel(kernel)[1, 1](out, count, start, stop, step if step > 0 else 1)
    assert count[0] == len(expected)
    assert list(map(int, out)) == [*expected, 77, 77, 77, 77]


@pytest.mark.parametrize(("bounds", "kind"), [
    ((5,), "u32"), ((-3, 3), "s32"), ((3, 0, -1), "s32"), ((2**32,), "u64"), ((2**31,), "u32"), ((-1, 2**31), "s64"),
    ((0, np.int64(4)), "u32"),
], ids=str)
def test_type_of_known_bounds(bounds: tuple[int, ...], kind: str) -> None:
    def kernel(x: Ptr[u32]):
        with loop(*bounds) as i:
            assert str(i.type) == kind

    assert lines(kernel)[0].startswith(f"mov.{kind} %i, ")


def test_collatz_with_both_branches_and_a_break(rng: np.random.Generator) -> None:
    @ptx_kernel
    def collatz(x: Ptr[u32], steps: Ptr[u32], n: u32):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        ptx.ret(pred=i >= n)
        v, count = reg(u32, x[i]), reg(u32, 0)
        with loop():
            break_if(v == 1)
            count += 1
            with when((v & 1) == 0):
                v >>= 1
                continue_if(v > 1)
            with otherwise():
                v.set(v * 3 + 1)
        steps[i] = count

    def oracle(v: int) -> int:
        count = 0
        while v != 1:
            v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
        return count

    x = rng.integers(1, 10_000, 100).astype(np.uint32)
    steps = np.full(101, 0xDEAD, np.uint32)
    collatz[4, 32](x, steps, 100)
    assert list(steps) == [*(oracle(int(v)) for v in x), 0xDEAD]


def test_nested_loops_and_select(rng: np.random.Generator) -> None:
    @ptx_kernel
    def upper(out: Ptr[f32], n: u32):
        row = ptx.tid.x
        total = reg(f32, 0.0)
        with loop(row, n) as i:
            with loop(i, n, 2) as j:
                continue_if(j == 5)
                total += select(j > 3, i.to(f32), 1.0)
        out[row] = total

    n = int(rng.integers(1, 32))
    out = np.full(32, np.nan, np.float32)
    upper[1, 32](out, n)
    expected = [
        sum(float(i) if j > 3 else 1.0 for i in range(row, n) for j in range(i, n, 2) if j != 5) for row in range(32)
    ]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))


# ---------------------------------------------------------------------------------------------------------------------
# Misuse


def _if_when(n: u32, x: Ptr[u32]):
    if when(n < 5):
        x[0] = n


def _when_true(n: u32, x: Ptr[u32]):
    with when(True):
        x[0] = n


def _when_number(n: u32, x: Ptr[u32]):
    with when(n):
        x[0] = n


def _when_none(n: u32, x: Ptr[u32]):
    with when(None):
        x[0] = n


def _reused(n: u32, x: Ptr[u32]):
    w = when(n < 5)
    with w:
        x[0] = n
    with w:
        x[1] = n


def _never_entered(n: u32, x: Ptr[u32]):
    when(n < 5)
    x[0] = n


def _otherwise_alone(n: u32, x: Ptr[u32]):
    with otherwise():
        x[0] = n


def _otherwise_late(n: u32, x: Ptr[u32]):
    with when(n < 5):
        x[0] = n
    x[1] = n
    with otherwise():
        x[2] = n


def _otherwise_after_a_block(n: u32, x: Ptr[u32]):
    with when(n < 5):
        x[0] = n
    with loop(n):
        x[1] = n
    with otherwise():
        x[2] = n


def _otherwise_twice(n: u32, x: Ptr[u32]):
    with when(n < 5):
        x[0] = n
    with otherwise():
        x[1] = n
    with otherwise():
        x[2] = n


def _otherwise_inside(n: u32, x: Ptr[u32]):
    with when(n < 5):
        x[0] = n
        with otherwise():
            x[1] = n


def _without_parentheses(n: u32, x: Ptr[u32]):
    with when(n < 5):
        x[0] = n
    with otherwise:
        x[1] = n


def _loop_without_parentheses(n: u32, x: Ptr[u32]):
    with loop:
        x[0] = n


def _for_in_loop(n: u32, x: Ptr[u32]):
    for i in loop(n):
        x[0] = i


def _while_loop(n: u32, x: Ptr[u32]):
    while loop(n):
        x[0] = n


def _loop_predicate(n: u32, x: Ptr[u32]):
    with loop(n < 5):
        x[0] = n


def _loop_float(n: u32, x: Ptr[u32]):
    with loop(2.5):
        x[0] = n


def _loop_range(n: u32, x: Ptr[u32]):
    with loop(range(2, 8)):
        x[0] = n


def _loop_pointer(n: u32, x: Ptr[u32]):
    with loop(x):
        x[0] = n


def _loop_f32(n: u32, v: f32, x: Ptr[u32]):
    with loop(v):
        x[0] = n


def _loop_mixed(n: u32, m: s32, x: Ptr[u32]):
    with loop(n, m):
        x[0] = n


def _loop_zero_step(n: u32, x: Ptr[u32]):
    with loop(0, n, 0):
        x[0] = n


def _loop_down_unsigned(n: u32, x: Ptr[u32]):
    with loop(n, 0, -1):
        x[0] = n


def _loop_four(n: u32, x: Ptr[u32]):
    with loop(0, n, 1, 4):
        x[0] = n


def _loop_literal_too_large(n: u32, x: Ptr[u32]):
    with loop(n, 2**40):
        x[0] = n


def _bound_changes(n: u32, x: Ptr[u32]):
    stop = reg(u32, n)
    with loop(stop) as i:
        x[0] = i
        stop -= 1


def _break_outside(n: u32, x: Ptr[u32]):
    with when(n < 5):
        break_if(n < 3)


def _continue_outside(n: u32, x: Ptr[u32]):
    for _ in range(4):
        continue_if(n < 3)


def _break_number(n: u32, x: Ptr[u32]):
    with loop():
        break_if(n)


def _label_nowhere(n: u32, x: Ptr[u32]):
    ptx.bra("done", pred=n < 5)
    x[0] = n


def _label_twice(n: u32, x: Ptr[u32]):
    for _ in range(2):
        label("top")
        x[0] = n


def _label_name(n: u32, x: Ptr[u32]):
    label("to the top")


def _bra_number(n: u32, x: Ptr[u32]):
    ptx.bra(5)


_MISUSE = {
    _if_when: ("TruthError", "`if when(...)` does not work: `when` is a block", "if when(n < 5):", "`with when(p):`"),
    _when_true: (
        "PtxTypeError", "`when` of the bool True", "with when(True):",
        "what is known while tracing is a plain Python `if`; `when` takes a predicate, such as `i < n`",
    ),
    _when_number: ("PtxTypeError", "`when` of a u32, which is no predicate", "with when(n):", "`when(n != 0)`"),
    _when_none: (
        "PtxTypeError", "`when` of the NoneType None", "with when(None):",
        "what is known while tracing is a plain Python `if`; `when` takes a predicate, such as `i < n`",
    ),
    _reused: (
        "StructureError", "this `when` was entered before", "with w:", "write `with when(p):` anew for each block",
    ),
    _never_entered: (
        "StructureError", "this `when(...)` is never entered, so it does nothing", "when(n < 5)", "`with when(p):`",
    ),
    _otherwise_alone: (
        "StructureError", "this `otherwise()` has no `when()` before it", "with otherwise():",
        "`with when(p): ...`, then `with otherwise(): ...`",
    ),
    _otherwise_late: (
        "StructureError",
        "`otherwise()` must directly follow its `when()` of line 1; line 3 (`x[1] = n`) stands between",
        "with otherwise():", "move what stands between before the `when()`, or into both blocks",
    ),
    _otherwise_after_a_block: (
        "StructureError", "this `otherwise()` has no `when()` before it", "with otherwise():",
        "`with when(p): ...`, then `with otherwise(): ...`",
    ),
    _otherwise_twice: (
        "StructureError", "this `otherwise()` has no `when()` before it", "with otherwise():",
        "`with when(p): ...`, then `with otherwise(): ...`",
    ),
    _otherwise_inside: (
        "StructureError", "this `otherwise()` has no `when()` before it", "with otherwise():",
        "`with when(p): ...`, then `with otherwise(): ...`",
    ),
    _without_parentheses: (
        "StructureError", "`with otherwise:` lacks its parentheses", "with otherwise:", "`with otherwise():`",
    ),
    _loop_without_parentheses: (
        "StructureError", "`with loop:` lacks its parentheses", "with loop:", "`with loop():`",
    ),
    _for_in_loop: (
        "TruthError", "`for ... in loop(...)` does not work: `loop` is a block", "for i in loop(n):",
        "`with loop(n) as i:`",
    ),
    _while_loop: (
        "TruthError", "`if loop(...)` does not work: `loop` is a block", "while loop(n):", "`with loop(n) as i:`",
    ),
    _loop_predicate: (
        "PtxTypeError", "loop() takes bounds, no predicate", "with loop(n < 5):",
        "`with loop():` and, where it shall end, `break_if(~(...))`",
    ),
    _loop_float: (
        "PtxTypeError", "loop() over the float 2.5: bounds are integers", "with loop(2.5):",
        "`with loop(n) as i:`, `with loop(start, stop, step) as i:`",
    ),
    _loop_range: (
        "PtxTypeError", "loop() over the range range(2, 8): bounds are integers", "with loop(range(2, 8)):",
        "`with loop(2, 8, 1) as i:`",
    ),
    _loop_f32: (
        "PtxTypeError", "loop() over f32: bounds are integers of 16 to 64 bits", "with loop(v):",
        "`v.to(s32)` rounds towards zero (cvt)",
    ),
    _loop_mixed: (
        "PtxTypeError", "loop() over u32 and s32: its bounds have one type", "with loop(n, m):",
        "`n.to(s64)` and `m.to(s64)`",
    ),
    _loop_zero_step: (
        "StructureError", "a loop with step 0 never ends", "with loop(0, n, 0):", "`with loop():` and `break_if(p)`",
    ),
    _loop_down_unsigned: (
        "PtxTypeError", "a loop over u32 cannot count down by -1", "with loop(n, 0, -1):",
        "make its bounds signed: `n.to(s64)`",
    ),
    _loop_four: (
        "PtxTypeError", "loop() takes up to three bounds, and 4 came", "with loop(0, n, 1, 4):",
        "`loop(start, stop, step)`",
    ),
    _bound_changes: (
        "StructureError", "`stop` is changed inside the loop of line 2 that it bounds", "stop -= 1",
        "bound the loop by `stop.copy()`, or write `with loop():` and `break_if(...)`",
    ),
    _break_outside: (
        "StructureError", "`break_if` outside a loop", "break_if(n < 3)",
        "`with loop():` is what it leaves; a Python `for` unrolls",
    ),
    _continue_outside: (
        "StructureError", "`continue_if` outside a loop", "continue_if(n < 3)",
        "`with loop():` is what it leaves; a Python `for` unrolls",
    ),
    _break_number: (
        "PtxTypeError", "`break_if` of a u32, which is no predicate", "break_if(n)", "`break_if(n != 0)`",
    ),
    _label_nowhere: (
        "StructureError", "no label `done` stands anywhere in the kernel", 'ptx.bra("done", pred=n < 5)',
        'place it: `label("done")`',
    ),
    _label_twice: (
        "StructureError", "label `top` already stands at line 2", 'label("top")',
        "a label that a helper or an unrolled loop places more than once has no name: `top = label()`",
    ),
    _label_name: (
        "StructureError", "'to the top' is no name for a label", 'label("to the top")',
        '`label("done")`: letters, digits and `_`',
    ),
}


@pytest.mark.parametrize("function", _MISUSE, ids=lambda function: function.__name__)
def test_misuse(function: object) -> None:
    assert said(refused(function), function) == _MISUSE[function]  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [_loop_pointer, _loop_literal_too_large, _bra_number], ids=lambda f: f.__name__)
def test_misuse_worded_elsewhere(function: object) -> None:
    """Errors whose words belong to another module: that they are located is what counts here."""
    kind, _, source, hint = said(refused(function), function)  # type: ignore[arg-type]
    assert kind == "PtxTypeError" and source.startswith(("with loop(", "ptx.bra(")) and hint


def test_an_exception_in_a_block_passes_and_leaves_nothing_behind() -> None:
    def kernel(n: u32, x: Ptr[u32]):
        with when(n < 5):
            with loop(n):
                raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        lines(kernel)

    def right(n: u32, x: Ptr[u32]):
        with when(n < 5):
            x[0] = n

    assert lines(right)[-2:] == ["$endif_1:", "ret"]


def test_a_loop_that_nothing_leaves() -> None:
    def alone(x: Ptr[u32]):
        with loop():
            x[0] = 1

    def around_another(n: u32):
        with loop():
            with loop():
                break_if(n < 5)

    def never_left(n: u32):
        with loop():
            break_if(False)
            continue_if(n < 5)

    for kernel in (alone, around_another, never_left):
        assert said(refused(kernel), kernel) == (
            "StructureError", "this `with loop():` never ends: nothing in it leaves it", "with loop():",
            "`break_if(p)` leaves the loop, `ptx.ret(pred=p)` ends the thread; `with loop(n) as i:` counts",
        )


def test_ways_to_leave_a_loop() -> None:
    def returns(n: u32):
        with loop():
            ptx.ret(pred=n < 5)

    def branches(n: u32):
        with loop():
            with when(n < 5):
                ptx.bra("out")
        label("out")

    def stops(n: u32):
        with loop():
            check(n < 5)

    for kernel in (returns, branches, stops):
        assert "$loop_" in " ".join(lines(kernel))


def test_statements_outside_a_kernel() -> None:
    from ptxdsl import TraceError

    for statement in (lambda: when(True), lambda: loop(3), lambda: break_if(True), label, otherwise):
        with pytest.raises(TraceError, match="no kernel is being traced here"):
            statement()


@pytest.mark.parametrize("module", [control, labels, loops], ids=lambda module: module.__name__)
def test_doctests(module: object) -> None:
    outcome = doctest.testmod(module)  # type: ignore[arg-type]
    assert outcome.failed == 0
    assert outcome.attempted

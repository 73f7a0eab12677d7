"""What following floats in float64 finds in known examples, how it is shown, and how it fails."""

from __future__ import annotations

import doctest
import json
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    ConfigError, LaunchError, MemoryFault, NumericalError, Ptr, PtxError, bf16, f16, f32, loop, ptx, ptx_kernel, reg,
    s32, u32, when,
)
from ptxdsl.emulator.tools import numerics as module
from ptxdsl.emulator.tools.numerics_data import LineNumerics, ulps
from ptxdsl.emulator.tools.twin_memory import decoded
from ptxdsl.emulator.semantics.formats import FORMATS

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("emulated")


def followed(kernel: Any, grid: Any, block: Any, *args: Any, **named: Any) -> ptxdsl.numerics:
    launch = kernel.configure(grid, block, twin="float64")
    launch(*args, **named)
    return launch.numerics


def line_with(n: ptxdsl.numerics, text: str) -> LineNumerics:
    found = [line for line in n.lines if text in line.source]
    assert len(found) == 1, [line.source for line in n.lines]
    return found[0]


@ptx_kernel
def variance(n: u32, x: Ptr[f32], out: Ptr[f32]):
    total, squares = reg(f32, 0.0), reg(f32, 0.0)
    with loop(0, n) as i:
        total += x[i]
        squares += x[i] * x[i]
    mean = total / n.to(f32)
    out[0] = squares / n.to(f32) - mean * mean


def test_cancellation_in_a_naive_variance(rng: np.random.Generator) -> None:
    """E[x^2] - E[x]^2: both are right to seven digits, and their difference, an even number, to none."""
    x, out = (5000 + rng.standard_normal(300)).astype(np.float32), np.zeros(1, np.float32)
    n = followed(variance, 1, 1, 300, x, out)
    wide = x.astype(np.float64)
    total = squares = 0.0
    for value in wide:
        total, squares = total + value, squares + value * value
    assert n.float64(out)[0] == squares / 300 - (total / 300) ** 2
    assert n.outputs[0].origin is not None and n.outputs[0].origin.source.startswith("out[0] = squares")
    first, *others = n.lines
    assert first.source.startswith("out[0] = squares") and first.reaches > 1e-3 > 1e-5 > first.inherited
    assert all(line.reaches == 0 and line.error < 1e-5 for line in others)
    case = next(row.arises for row in first.instructions if row.text.startswith("sub.f32"))
    assert case is not None and case.rounding == 0 and len(case.sources) == 2  # the subtraction itself is exact
    assert case.real == np.float32(case.sources[0][0]) - np.float32(case.sources[1][0])


@ptx_kernel
def softmax(x: Ptr[f32], y: Ptr[f32], *, shifted: bool = False):
    t = ptx.tid.x
    top = ptxdsl.warp.reduce_max(x[t]) if shifted else 0.0
    e = ptx.ex2.approx.f32((x[t] - top) * 1.4426950408889634)
    total = ptxdsl.warp.reduce_sum(e)
    y[t] = e / total


def test_overflow_of_a_softmax() -> None:
    x, y = np.linspace(0, 100, 32).astype(np.float32), np.zeros(32, np.float32)
    n = followed(softmax, 1, 32, x, y)
    line = line_with(n, "ex2.approx")
    born = next(row for row in line.instructions if row.infinities)
    assert born.infinities == np.sum(x * 1.4426950408889634 >= 128) == line.infinities
    assert born.infinity is not None and np.isfinite(born.infinity.twin) and born.infinity.thread == (28, 0, 0)
    nan = line_with(n, "e / total")
    assert nan.nans == born.infinities and nan.infinities == 0
    assert n.outputs[0].error == np.inf and n.outputs[0].origin is not None
    assert "ex2.approx" in n.outputs[0].origin.source
    wide = np.exp2(x.astype(np.float64) * np.float64(np.float32(1.4426950408889634)))
    np.testing.assert_allclose(n.float64(y), wide / wide.sum(), rtol=1e-13)
    n = followed(softmax, 1, 32, x, y, shifted=True)
    assert not any(row.infinities or row.nans for row in n.instructions) and n.outputs[0].error < 1e-5


@ptx_kernel
def sum_of_halves(n: u32, x: Ptr[f16], out: Ptr[f16]):
    acc = reg(f16, 0.0)
    with loop(0, n) as i:
        acc += x[i]
    out[0] = acc


@ptx_kernel
def pairwise(x: Ptr[f16], out: Ptr[f16]):
    values = [x[i] for i in range(256)]
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2])]
    out[0] = values[0]


def test_long_sums_of_halves(rng: np.random.Generator) -> None:
    """What grows again and again at one line is added up."""
    x, out = rng.random(256).astype(np.float16), np.zeros(1, np.float16)
    one_by_one = followed(sum_of_halves, 1, 1, 256, x, out)
    line = line_with(one_by_one, "acc += x[i]")
    assert line.reaches == one_by_one.outputs[0].error > 0
    assert line.arises > 0.5 * line.error
    assert one_by_one.float64(out)[0] == x.astype(np.float64).sum()  # which is exact
    in_pairs = followed(pairwise, 1, 1, x, out)
    assert in_pairs.float64(out)[0] == x.astype(np.float64).sum()
    worst = max(line.error for line in in_pairs.lines)
    assert worst <= 8 * 2.0**-11 < 256 * 2.0**-11


@ptx_kernel
def kahan(n: u32, x: Ptr[f32], out: Ptr[f32]):
    total, lost = reg(f32, 0.0), reg(f32, 0.0)
    with loop(0, n) as i:
        y = x[i] - lost
        t = total + y
        lost.set((t - total) - y)
        total.set(t)
    out[0] = total


def test_compensation_does_not_reach_the_result(rng: np.random.Generator) -> None:
    """The lost part of Kahan's sum is nothing in float64, so it is all error, but none that reaches the result."""
    x, out = rng.random(400).astype(np.float32), np.zeros(1, np.float32)
    n = followed(kahan, 1, 1, 400, x, out)
    assert line_with(n, "lost.set").error == 1 and line_with(n, "lost.set").reaches < 1e-6
    assert n.outputs[0].error <= 2.0**-23


@ptx_kernel
def decides(x: Ptr[f32], y: Ptr[s32]):
    i = ptx.tid.x
    v = (x[i] + 1.0) - 1.0
    y[i] = 0
    with when(v > 0.0):
        y[i] = ptx.cvt.rzi.s32.f32(v * 1e9)


def test_decisions() -> None:
    x, y = np.full(40, 1e-9, np.float32), np.zeros(40, np.int32)
    x[3:6] = 1.0
    n = followed(decides, 1, 40, x, y)
    line = line_with(n, "when(v")
    assert line.decisions == 37
    case = next(row.decision for row in line.instructions if row.decision is not None)
    assert case.thread == (0, 0, 0) and case.sources[0] == (0.0, np.float64(np.float32(1e-9)) + 1 - 1)
    assert line_with(n, "cvt.rzi").decisions == 0  # the twins go where the real numbers go


@ptx_kernel
def divides(x: Ptr[f32], y: Ptr[f32]):
    t, b = ptx.tid.x, ptx.ctaid.x
    y[b * 32 + t] = x[b * 32 + t] / x[b * 32 + t]


def test_a_nan_that_float64_has_too() -> None:
    x, y = np.ones(96, np.float32), np.zeros(96, np.float32)
    x[70] = x[80] = 0
    x[3] = np.inf
    n = followed(divides, 3, 32, x, y)
    row = next(row for row in n.instructions if row.nans)
    assert row.nans == 3 and row.nan is not None and np.isnan(row.nan.twin)
    assert (row.nan.block, row.nan.thread) == ((0, 0, 0), (3, 0, 0))
    assert n.outputs[0].error == 0
    assert "NaN begins at" in n.table() and "float64 has it too" in n.table()


@ptx_kernel
def difference(x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    larger = x[i] + 1.0
    y[i] = larger - 1.0


def _difference(**options: Any) -> None:
    x, y = np.zeros((2, 40), np.float32), np.zeros((2, 40), np.float32)
    x[1, 3] = 1e-6
    difference.configure(2, 40, **options)(x, y)


def test_an_error_that_is_too_large() -> None:
    _difference(twin="float64", max_error=0.05)
    with pytest.raises(NumericalError) as found:
        _difference(twin="float64", max_error=1e-3)
    error, start = found.value, difference.function.__code__.co_firstlineno
    assert str(error) == f"""\
y[1, 3] is 9.53674316e-07 where float64 has 9.99999997e-07: an error of 0.046; max_error is 0.001
  in block (1, 0, 0), thread (3, 0, 0)
  at {__file__}:{start + 4}: y[i] = larger - 1.0
  PTX line {error.ptx_line}: {error.instruction}
  hint: most of the error arises at test_numerics.py:{start + 4}: y[i] = larger - 1.0"""
    assert error.code == "P507" and error.instruction.startswith("st.global.f32")
    assert json.loads(error.to_json())[0]["kind"] == "NumericalError"


def test_table() -> None:
    with ptxdsl.numerics() as n:
        _difference()
    start = difference.function.__code__.co_firstlineno
    assert str(n) == f"""\
difference: 1 launch, followed in float64
reaches arrays  arises here    error  inherited
         0.046        0.046    0.046    4.6e-08  test_numerics.py:{start + 4}: y[i] = larger - 1.0
             -      4.6e-08  4.6e-08          -  test_numerics.py:{start + 3}: larger = x[i] + 1.0
array y: y[1, 3] is 9.53674316e-07 where float64 has 9.99999997e-07: an error of 0.046, arises at \
test_numerics.py:{start + 4}
arises at test_numerics.py:{start + 4}: sub.f32 %f2, %f1, 0f3F800000, thread (3, 0, 0) of block (1, 0, 0): of \
1.00000095 (float64 1.000001), 1 it makes 9.53674316e-07 where float64 has 9.99999997e-07; the error of its operands \
is 4.6e-08"""
    assert repr(n) == "<numerics of difference (1x)>"
    assert len(n.table(limit=1).splitlines()) == 5
    assert json.loads(n.to_json())["outputs"][0]["element"] == "y[1, 3]"
    assert "y[i] = larger - 1.0" in n._repr_html_()


def test_page(tmp_path: Any) -> None:
    with ptxdsl.numerics() as n:
        _difference()
    n.html(tmp_path / "n.html")
    assert "<h2>difference</h2>" in (tmp_path / "n.html").read_text("utf-8")
    assert str(ptxdsl.numerics()) == "nothing was launched" and repr(ptxdsl.numerics()) == "<numerics of nothing>"


@ptx_kernel
def counts(x: Ptr[u32], y: Ptr[f32]):
    x[ptx.tid.x] += 1
    y[ptx.tid.x] = y[ptx.tid.x] * 2.0


def test_what_is_exact() -> None:
    n = followed(counts, 1, 32, np.zeros(32, np.uint32), np.ones(32, np.float32))
    assert str(n) == "counts: 1 launch, followed in float64\narray y: as in float64"


@ptx_kernel
def beyond(x: Ptr[f32], y: Ptr[f32], *, what: str = ""):
    t = ptx.tid.x
    if what == "load":
        y[t] = x[t + 1] * x[t]
    elif what == "store":
        y[t + 1] = x[t] * x[t]
    else:
        ptx.red.global_.add.f32(y.at(t + 1), x[t])


@pytest.mark.parametrize("what", ["load", "store", "atomic"])
def test_faults_are_those_of_a_launch_without(what: str) -> None:
    """With the same arrays: the message may name what lies beside one."""
    both: list[dict[str, Any]] = [{}, {"twin": "float64"}]
    x, y, told = np.ones(32, np.float32), np.ones(32, np.float32), []
    for options in both:
        with pytest.raises(MemoryFault) as found:
            beyond.configure(1, 32, **options)(x, y, what=what)
        told.append(str(found.value))
    assert told[0] == told[1]


@ptx_kernel
def flips_signs(x: Ptr[f32], y: Ptr[f32]):
    i = ptx.tid.x
    v = x[i] * x[i]
    w = (v.bits(u32) ^ 0x80000000).bits(f32)
    y[i] = w + 1.0


def test_what_is_not_followed_is_said() -> None:
    x, y = np.full(32, 0.1, np.float32), np.zeros(32, np.float32)
    n = followed(flips_signs, 1, 32, x, y)
    assert n.float64(y)[0] == 1.0 - np.float64(x[0] * x[0])
    assert "not followed, their results count as exact: xor.b32 at test_numerics.py:" in str(n)


def test_settings() -> None:
    launch = difference[2, 40]
    assert not hasattr(launch, "numerics")
    with pytest.raises(LaunchError, match="no launch of this geometry of kernel `difference` was followed in float64"):
        _ = launch.numerics
    with ptxdsl.config.override(twin="float64", max_error="1e-3"), pytest.raises(NumericalError):
        _difference()
    with ptxdsl.config.override(twin="float64"):
        _difference()
    for wrong in ({"twin": "float32"}, {"max_error": "-1"}, {"max_error": "x"}):
        with pytest.raises(ConfigError):
            ptxdsl.config.override(**wrong)
    with pytest.raises(PtxError, match="max_error is a number from 0 on, not 'x'"):
        ptxdsl.numerics(max_error="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"twin": "float32"}, "twin is 'float64', not 'float32'"),
        ({"max_error": 1e-3}, "twin is 'float64' where max_error is given, not None"),
        ({"twin": "float64", "max_error": -1}, "max_error is a number from 0 on, not -1"),
        ({"twin": "float64", "schedule": "explore"},
         "a launch is followed, or has a schedule: twin='float64' and schedule='explore'"),
        ({"twin": "float64", "sanitize": "race"},
         "ptxdsl.numerics() and the sanitizer's checks (race) do not run together"),
        ({"twin": "float64", "backend": "gpu"},
         "twin='float64' is the emulator's, and kernel `difference` is launched on a GPU"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PtxError) as found:
        _difference(**options)
    if options.get("backend") != "gpu" or "is launched on a GPU" in str(found.value):  # which needs a GPU
        assert found.value.message == message


def test_one_observer_at_a_time() -> None:
    with ptxdsl.profile(), pytest.raises(LaunchError, match="launches have one observer at a time"):
        _difference(twin="float64")
    with ptxdsl.numerics() as n:
        _difference(twin="float64")
    assert n.launches == {"difference": 1}


def test_arrays_that_hold_no_floats() -> None:
    n = ptxdsl.numerics()
    np.testing.assert_array_equal(n.float64(np.ones((2, 3), np.float32)), np.ones((2, 3)))
    with pytest.raises(PtxError, match="an array of uint16 holds no u16"):
        n.float64(np.zeros(2, np.uint16))
    with pytest.raises(PtxError, match="an array of float32 holds no bf16"):
        n.float64(np.zeros(2, np.float32), bf16)
    with pytest.raises(PtxError, match="list is no array in one piece of host memory"):
        n.float64([1.0])
    with pytest.raises(PtxError, match="ndarray is no array in one piece of host memory"):
        n.float64(np.zeros((4, 4), np.float32).T[::2])


def test_distances_in_units_in_the_last_place() -> None:
    single = FORMATS["f32"]
    assert ulps(1.0, 1.0 + 2.0**-23, single) == 1 and ulps(1.0, 1.0 - 2.0**-25, single) == 0.5
    assert ulps(0.0, 2.0**-149, single) == 1 and ulps(np.inf, 1.0, single) == np.inf
    assert ulps(np.nan, np.nan, single) == 0


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2"])
def test_formats_are_decoded(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn,
            "e5m2": ml_dtypes.float8_e5m2}[name]
    form = FORMATS[name]
    codes = np.arange(1 << form.bits).astype(f"<u{form.bits // 8}")
    with np.errstate(invalid="ignore"):
        expected = codes.view(kind).astype(np.float64)
    np.testing.assert_array_equal(decoded(codes, form), expected)


def test_the_option_of_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import numpy as np
        from ptxdsl import Ptr, f32, ptx, ptx_kernel

        @ptx_kernel
        def k(x: Ptr[f32]):
            x[ptx.tid.x] = (x[ptx.tid.x] + 1.0) - 1.0

        def test_it():
            k.configure(1, 64, backend="emulator")(np.full(64, 1e-6, np.float32))
    """)
    installed = any(point.name == "ptxdsl" for point in entry_points(group="pytest11"))
    options = [] if installed else ["-p", "ptxdsl.pytest_plugin"]
    result = pytester.runpytest_subprocess(*options, "--ptx-max-error", "1e-3")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ptxdsl: max_error=0.001*", "*NumericalError*max_error is 0.001*"])


def test_doctests() -> None:
    assert doctest.testmod(module).failed == 0

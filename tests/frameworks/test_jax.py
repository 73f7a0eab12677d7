"""Kernels as functions of JAX: results under jit, vmap and grad, and what is said when something does not fit."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from framework_kernels import copy_box

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'ptxdsl[jax]'")

import jax.numpy as jnp  # noqa: E402

import ptxdsl.jax  # noqa: E402
from ptxdsl import (  # noqa: E402
    Array, LaunchError, Ptr, bf16, cdiv, f16, f32, f64, loop, ptx, ptx_kernel, reg, s32, tensor_map, u8, u32, when,
)

JaxError = jax.errors.JaxRuntimeError


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def square(n: u32, x: Ptr[f32], out: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        out[i] = x[i] * x[i]


@ptx_kernel
def square_backward(n: u32, x: Ptr[f32], grad_out: Ptr[f32], grad_x: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        grad_x[i] = 2 * x[i] * grad_out[i]


@ptx_kernel
def fill(value: f32, out: Ptr[f32]):
    out[ptx.tid.x] = value


SQUARE: Any = {
    "grid": lambda n: cdiv(n, 128), "block": 128, "outputs": {"out": "x"}, "computed": {"n": lambda x: x.size},
}
SAXPY: Any = {"grid": lambda n: cdiv(n, 128), "block": 128, "computed": {"n": lambda x: x.size}}


def random(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Any:
    return rng.standard_normal(shape).astype(dtype)


def close(result: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-5, atol=1e-6)


# -- what a function does


@pytest.mark.parametrize("jit", [False, True])
def test_what_is_stored_to_is_returned_changed(jit: bool, rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, **SAXPY)
    assert repr(f) == "<jax function of kernel `saxpy`: (a, x, y) -> (y)>"
    call = jax.jit(f) if jit else f
    for n in (1, 127, 1001):
        x, y = random(rng, n), jnp.asarray(random(rng, n))
        before = np.array(y)
        result = call(2.5, x, y)
        assert isinstance(result, jax.Array) and result.dtype == np.float32
        close(result, 2.5 * x + before)
        assert (np.asarray(y) == before).all()


def test_arguments_by_name_and_numbers_of_jax(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, grid=lambda x: cdiv(x.size, 128), block=128)
    x, y = random(rng, 2, 60)
    close(f(y=y, x=x, a=jnp.float32(3), n=jnp.int32(60)), 3 * x + y)
    close(jax.jit(lambda n, a: f(n, a, x, y))(40, -1.0), np.where(np.arange(60) < 40, y - x, y))


def test_an_output_of_another_shape_and_one_that_begins_as_something(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(
        fill, grid=1, block=lambda out: out.size - 1, outputs={"out": lambda: jnp.full(7, 5.0)}
    )
    assert f(2.0).tolist() == [2.0] * 6 + [5.0]
    g = ptxdsl.jax.function(fill, grid=1, block=4, outputs={"out": lambda: jax.ShapeDtypeStruct((2, 2), np.float32)})
    assert jax.jit(g)(-1.5).tolist() == [[-1.5, -1.5]] * 2


@ptx_kernel
def extremes(x: Array[f32, 2], low: Array[f32, 1], high: Array[f32, 1]):
    row = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(row < x.shape[0]):
        least, most = reg(f32, x[row, 0]), reg(f32, x[row, 0])
        with loop(1, x.shape[1]) as column:
            least.set(ptx.min.f32(least, x[row, column]))
            most.set(ptx.max.f32(most, x[row, column]))
        low[row], high[row] = least, most


def test_several_outputs(rng: np.random.Generator) -> None:
    def rows(x: Any) -> Any:
        return jax.ShapeDtypeStruct(x.shape[:1], x.dtype)

    f = ptxdsl.jax.function(
        extremes, grid=lambda x: cdiv(x.shape[0], 32), block=32, outputs={"high": rows, "low": rows}
    )
    x = random(rng, 45, 7)
    high, low = jax.jit(lambda x: f(x.T))(x.T.copy())  # XLA makes it row-major for the kernel
    close(high, x.max(1))
    close(low, x.min(1))


@ptx_kernel
def scalars(a: f16, b: bf16, c: u8, d: s32, out: Ptr[f32], *, sign: int = 1, by: str = ""):
    out[0] = (a.to(f32) + b.to(f32) + c.to(f32, "rn") + d.to(f32, "rn")) * (sign * (10 if by == "ten" else 1))


@pytest.mark.parametrize("jit", [False, True])
def test_all_kinds_of_numbers_and_constants(jit: bool) -> None:
    f = ptxdsl.jax.function(
        scalars, grid=1, block=1, outputs={"out": lambda: jax.ShapeDtypeStruct((1,), np.float32)}
    )
    call = jax.jit(f, static_argnames=("sign", "by")) if jit else f
    assert call(0.5, -3.0, 200, -7).item() == 190.5
    assert call(0.5, -3.0, 200, -7, sign=-1, by="ten").item() == -1905
    assert call(jnp.float16(0.5), jnp.bfloat16(-3), jnp.uint8(200), jnp.int8(-7)).item() == 190.5


@ptx_kernel
def add_all(count: u32, tables: Ptr[Ptr[f32]], out: Ptr[f32]):
    i, total = ptx.tid.x, reg(f32, 0.0)
    with loop(count) as k:
        total += tables[k][i]
    out[i] = total


def test_lists_of_arrays(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(
        add_all, grid=1, block=lambda out: out.size, computed={"count": lambda tables: len(tables)},
        outputs={"out": lambda tables: jax.ShapeDtypeStruct(tables[0].shape, tables[0].dtype)},
        backward=lambda tables, grad_out: {"tables": [grad_out * (k + 1) for k in range(len(tables))]},
    )
    parts = list(random(rng, 5, 33))
    close(jax.jit(f)(parts), sum(parts))
    gradients = jax.grad(lambda parts: f(parts).sum())([jnp.asarray(part) for part in parts])
    assert [gradient[0].item() for gradient in gradients] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("jit", [False, True])
def test_tensor_maps_are_made_of_arrays_in_memory(jit: bool, rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(
        copy_box, grid=1, block=32, outputs={"target": "source"},
        computed={
            "source": lambda source: tensor_map(source, (8, 8)), "target": lambda target: tensor_map(target, (8, 8)),
        },
    )
    x = random(rng, 8, 8)
    assert ((jax.jit(f) if jit else f)(x) == x).all()


def test_nothing_is_launched_for_a_grid_of_no_blocks() -> None:
    f = ptxdsl.jax.function(square, **SQUARE)
    assert f(jnp.zeros((0, 3))).shape == (0, 3)
    assert jax.jit(f)(jnp.zeros((0, 3))).shape == (0, 3)


def test_inside_loops_and_among_other_operations(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, **SAXPY)
    x, y = random(rng, 2, 50)

    @jax.jit
    def steps(x: Any, y: Any) -> Any:
        return jax.lax.fori_loop(0, 10, lambda k, y: f(0.5, x, jnp.sin(y) + k), y) * 2

    expected = y
    for k in range(10):
        expected = 0.5 * x + (np.sin(expected) + np.float32(k))
    close(steps(x, y), 2 * expected)


def test_donated_rematerialised_and_scanned(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(square, **SQUARE, backward=square_backward)
    add = ptxdsl.jax.function(saxpy, **SAXPY)
    x, y = random(rng, 2, 70)
    close(jax.jit(add, donate_argnums=2)(2.0, x, jnp.array(y)), 2 * x + y)
    close(jax.grad(jax.checkpoint(lambda x: f(x).sum()))(x), 2 * x)
    last = jax.grad(lambda x: jax.lax.scan(lambda carry, _: (f(carry) / 2, None), x, None, length=2)[0].sum())(x)
    close(last, x**3 / 2)


def test_from_many_threads(rng: np.random.Generator) -> None:
    f = jax.jit(ptxdsl.jax.function(square, **SQUARE))
    inputs = [random(rng, 100 + n) for n in range(6)]
    results: dict[int, Any] = {}

    def work(n: int) -> None:
        for _ in range(20):
            results[n] = f(inputs[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, x in enumerate(inputs):
        close(results[n], x * x)


# -- vmap


def test_vmap(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, **SAXPY)
    a, x, y = random(rng, 4), random(rng, 4, 21), random(rng, 21, 4)
    close(jax.vmap(f, in_axes=(None, 0, 1))(2.0, x, y), 2 * x + y.T)
    close(jax.jit(jax.vmap(f, in_axes=(0, None, 1), out_axes=1))(a, x[0], y), (a[:, None] * x[0] + y.T).T)
    g = ptxdsl.jax.function(square, **SQUARE, backward=square_backward)
    close(jax.vmap(jax.grad(lambda x: g(x).sum()))(x), 2 * x)
    close(jax.vmap(jax.vmap(g))(x.reshape(2, 2, 21)), (x * x).reshape(2, 2, 21))


# -- gradients


@pytest.mark.parametrize("how", ["kernel", "function", "python"])
@pytest.mark.parametrize("jit", [False, True])
def test_gradients(how: str, jit: bool, rng: np.random.Generator) -> None:
    backward: Any = {
        "kernel": square_backward,
        "function": ptxdsl.jax.function(
            square_backward, grid=lambda x: cdiv(x.size, 32), block=32, outputs={"grad_x": "x"},
            computed={"n": lambda x: x.size},
            backward=lambda x, grad_out, grad_grad_x: {
                "x": 2 * grad_out * grad_grad_x, "grad_out": 2 * x * grad_grad_x,
            },
        ),
        "python": lambda x, grad_out: {"x": 2 * x * grad_out},
    }[how]
    f = ptxdsl.jax.function(square, **SQUARE, backward=backward)
    wrap = jax.jit if jit else lambda function: function
    x = random(rng, 9, 30)
    close(wrap(jax.grad(lambda x: f(x).sum()))(x), 2 * x)
    close(wrap(jax.grad(lambda x: jnp.sin(f(x)).sum()))(x), np.cos(x * x) * 2 * x)
    value, gradient = wrap(jax.value_and_grad(lambda x: (f(x) * x).sum()))(x)
    close(value, (x**3).sum())
    close(gradient, 3 * x * x)
    if how != "kernel":
        close(wrap(jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()))(x), np.full_like(x, 2))


@ptx_kernel
def scale(n: u32, w: f32, x: Ptr[f32], out: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        out[i] = w * x[i]


@ptx_kernel
def scale_backward(n: u32, w: f32, x: Ptr[f32], grad_out: Ptr[f32], grad_x: Ptr[f32], grad_w: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        grad_x[i] = w * grad_out[i]
        ptx.red.global_.add.f32(grad_w, x[i] * grad_out[i])


@pytest.mark.parametrize("jit", [False, True])
def test_numbers_have_gradients_and_backward_kernels_begin_with_zeros(jit: bool, rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(scale, **SQUARE, backward=scale_backward)
    wrap = jax.jit if jit else lambda function: function
    x = random(rng, 200)
    w_gradient, x_gradient = wrap(jax.grad(lambda w, x: f(w, x).sum(), argnums=(0, 1)))(1.5, x)
    np.testing.assert_allclose(w_gradient, x.sum(), rtol=1e-3, atol=1e-3)
    assert w_gradient.shape == ()
    close(x_gradient, np.full(200, 1.5, np.float32))
    close(wrap(jax.grad(lambda x: f(2.0, x).sum()))(x), np.full(200, 2, np.float32))


def test_the_gradient_of_a_changed_copy(rng: np.random.Generator) -> None:
    @ptx_kernel
    def backward(a: f32, grad_y: Ptr[f32], grad_x: Ptr[f32]):
        grad_x[ptx.tid.x] = a * grad_y[ptx.tid.x]
        grad_y[ptx.tid.x] = grad_y[ptx.tid.x] * 1

    f = ptxdsl.jax.function(
        saxpy, grid=1, block=lambda x: x.size, computed={"n": lambda x: x.size}, backward=backward
    )
    x, y, weight = random(rng, 3, 40)
    gradients = jax.grad(lambda x, y: (f(-3.0, x, y) * weight).sum(), argnums=(0, 1))(x, y)
    close(gradients[0], -3 * weight)
    close(gradients[1], weight)


def test_what_has_no_gradient_is_zero(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, **SAXPY, backward=lambda a, grad_y: {"x": a * grad_y})
    x, y = random(rng, 2, 8)
    gradients = jax.grad(lambda a, x, y: f(a, x, y).sum(), argnums=(0, 1, 2))(2.0, x, y)
    assert gradients[0].item() == 0 and gradients[1].tolist() == [2.0] * 8 and not gradients[2].any()


def test_no_gradient_without_a_backward_pass(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(square, **SQUARE)
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: f(x).sum())(random(rng, 3))


# -- errors


def wrong(call: Any) -> tuple[str, str | None]:
    """The message and the hint of the error that a call raises, at a line of this file."""
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.loc is not None and caught.value.loc.file == __file__
    return caught.value.message, caught.value.hint


def test_what_does_not_fit_is_told_when_a_function_is_called_or_traced(rng: np.random.Generator) -> None:
    f, x = ptxdsl.jax.function(saxpy, **SAXPY), random(rng, 9)
    owner = "jax function of kernel `saxpy`"
    for call in (f, jax.jit(f)):
        assert wrong(lambda: call(1.0, x.astype(np.int32), x)) == (
            "argument `x` of kernel `saxpy` is a jax Array of int32, shape (9,); Ptr[f32] wants float32",
            "declare `x: Ptr[s32]`; or, rounded, `x = x.astype(np.float32)`",
        )
    assert wrong(lambda: f(1.0, x, x.astype(np.float16))) == (
        f"output `y` of {owner} is made as float16; Ptr[f32] wants float32", None
    )
    assert wrong(lambda: f("1", x, x))[0] == (
        "argument `a` of kernel `saxpy` is the str '1'; f32 wants a float or a float32 scalar"
    )
    assert wrong(lambda: f(x, x, x))[0] == (
        "argument `a` of kernel `saxpy` is a numpy array of float32, shape (9,); f32 wants a float or a float32 scalar"
    )
    for value, told in ((None, "None"), ([1.0, 2.0], "a list"), (x[0], f"the numpy float32 {x[0]}")):
        assert wrong(lambda: f(1.0, value, x)) == (
            f"argument `x` of {owner} is {told}; it wants an array of JAX or numpy", "`x = jax.numpy.asarray(x)`"
        )
    ours = ptxdsl.to_device(x, backend="emulator")
    assert wrong(lambda: f(1.0, ours, x))[0] == (
        f"argument `x` of {owner} is a device array of float32, shape (9,); it wants an array of JAX or numpy"
    )
    assert wrong(lambda: f(1.0, x)) == (f"{owner} takes a, x, y: `y` missing", None)
    assert wrong(lambda: f()) == (f"{owner} takes a, x, y: `a` and `x` and `y` missing", None)
    assert wrong(lambda: f(1.0, x, x, x)) == (f"{owner} takes a, x, y: 4 came", None)
    assert wrong(lambda: f(1.0, x, x=x, y=x)) == (f"{owner} takes a, x, y: `x` came twice", None)
    assert wrong(lambda: f(1.0, x, x, n=3)) == (f"{owner} takes a, x, y: it has no `n`", None)


def test_numbers_of_64_bits_that_jax_would_round(rng: np.random.Generator) -> None:
    @ptx_kernel
    def half(x: Ptr[f64]):
        x[ptx.tid.x] = x[ptx.tid.x] * 0.5

    f = ptxdsl.jax.function(half, grid=1, block=4, outputs={"x": lambda x: x})
    x = random(rng, 4, dtype=np.float64)
    assert wrong(lambda: f(x)) == (
        (
            "argument `x` of jax function of kernel `half` is a numpy array of float64, shape (4,); "
            "JAX would make it float32"
        ),
        '`jax.config.update("jax_enable_x64", True)`',
    )
    with jax.enable_x64(True):
        close(f(x), x / 2)


def test_a_grid_that_depends_on_what_is_computed(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, grid=lambda n: cdiv(n, 128), block=128)
    x = random(rng, 9)
    message, _ = wrong(lambda: jax.jit(f)(9, 1.0, x, x))
    assert message.startswith("grid.x is an int, not ")


def test_a_constant_that_is_traced() -> None:
    f = ptxdsl.jax.function(scalars, grid=1, block=1, outputs={"out": lambda: jax.ShapeDtypeStruct((1,), np.float32)})
    assert wrong(lambda: jax.jit(lambda s: f(0.5, 1.0, 2, 3, sign=s))(2)) == (
        "compile-time constant `sign` of jax function of kernel `scalars` is a value that JAX computes",
        '`jax.jit(f, static_argnames="sign")`',
    )


def test_what_goes_wrong_in_a_launch(rng: np.random.Generator) -> None:
    f = ptxdsl.jax.function(saxpy, grid=lambda x: cdiv(x.size, 128), block=128)
    x = random(rng, 130)
    with pytest.raises(JaxError) as caught:
        jax.block_until_ready(jax.jit(f)(131, 1.0, x, x))
    lines = str(caught.value).splitlines()
    assert lines[0] == "INTERNAL: MemoryFault: load from x[130]: x is f32[130]"
    assert lines[2].endswith(": y[i] = a * x[i] + y[i]") and __file__ in lines[2]
    with pytest.raises(JaxError) as caught:
        jax.block_until_ready(jax.jit(lambda n: f(n, 1.0, x, x))(-1))  # the call
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "INTERNAL: LaunchError: argument `n` of kernel `saxpy` is the int -1; u32 wants an int from 0 to 4294967295"
    )
    assert lines[1].endswith("# the call")
    close(f(130, 1.0, x, x), 2 * x)  # and the next launch is as if nothing had been


@ptx_kernel
def nothing(x: Ptr[f32]):
    ptx.bar.sync(0)


WRONG: list[tuple[Any, dict[str, Any], str, str]] = [
    (
        nothing, {}, "{} would give nothing: the kernel stores to none of its arguments",
        "launch it: `nothing[grid, block](...)`",
    ),
    (
        square, {"outputs": {"x": "out"}},
        "output `x` of {} is an argument to which kernel `square` does not store", "it stores to `out`",
    ),
    (
        square, {"grid": lambda m: m}, "grid of {} is a function of `m`, which it cannot be",
        "the names are n, x, out",
    ),
    (
        square, {**SQUARE, "backward": lambda grad: {}},
        "backward of {} is a function of `grad`, which it cannot be", "did you mean `grad_out`?",
    ),
    (square, {"stream": 1}, "`stream`, given for {}, follows from the device of the tensors", "leave it out"),
]


@pytest.mark.parametrize(("kernel", "options", "message", "hint"), WRONG)
def test_what_cannot_be_a_function(kernel: Any, options: Any, message: str, hint: str) -> None:
    told = wrong(lambda: ptxdsl.jax.function(kernel, **{"grid": 1, "block": 32, **options}))
    assert told == (message.format(f"jax function of kernel `{kernel.entry}`"), hint)


def test_without_jax() -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import ptxdsl\n"
        "try:\n    ptxdsl.jax\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("which ptxdsl.jax is for: `pip install 'ptxdsl[jax]'`\n")

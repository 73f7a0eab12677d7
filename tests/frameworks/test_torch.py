"""Ops of torch made of kernels: what torch is told of them, what they compute, and how they differentiate."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from framework_kernels import copy_box

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ptxdsl[torch]'")

import ptxdsl.torch  # noqa: E402
from ptxdsl import (  # noqa: E402
    Array, LaunchError, MemoryFault, Ptr, TensorMap, bf16, cdiv, f16, f32, f64, loop, ptx, ptx_kernel, reg,
    s64, tensor_map, u8, u32, when,
)

WHOLE = {"test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"}


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


def make_square(kind: Any) -> Any:
    @ptx_kernel
    def square(n: u32, x: Ptr[kind], out: Ptr[kind]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            out[i] = x[i] * x[i]

    return square


def make_square_backward(kind: Any) -> Any:
    @ptx_kernel
    def square_backward(n: u32, x: Ptr[kind], grad_out: Ptr[kind], grad_x: Ptr[kind]):
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            grad_x[i] = 2 * x[i] * grad_out[i]

    return square_backward


square, square_backward = make_square(f32), make_square_backward(f32)
SQUARE: Any = {
    "grid": lambda n: cdiv(n, 128), "block": 128, "outputs": {"out": "x"}, "computed": {"n": lambda x: x.numel()},
}


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other op has."""
    return "tests::" + "".join(c if c.isalnum() else "_" for c in request.node.name)


@pytest.fixture(params=["eager", "aot_eager"])
def backend(request: pytest.FixtureRequest) -> Any:
    """One of torch.compile's backends, that of the longest way but its last step."""
    torch._dynamo.reset()
    yield request.param
    torch._dynamo.reset()


def tensor(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Any:
    return torch.from_numpy(rng.standard_normal(shape).astype(dtype))


def schema(op: Any) -> str:
    return str(op._opoverload._schema).partition("(")[2]


def check(op: Any, *args: Any, **constants: Any) -> None:
    """Torch's own check of an op."""
    assert torch.library.opcheck(op, args, constants) == dict.fromkeys(WHOLE, "SUCCESS")


# -- what an op does


def test_an_op_that_changes_a_tensor(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=lambda n: cdiv(n, 128), block=128)
    assert schema(op) == "SymInt n, float a, Tensor x, Tensor(a3!) y) -> ()"
    x, y = tensor(rng, 1001), tensor(rng, 1001)
    expected, version = 2.5 * x + y, y._version
    assert op(1001, 2.5, x, y) is None
    torch.testing.assert_close(y, expected)
    assert y._version > version
    getattr(torch.ops.tests, name.partition("::")[2])(1000, -2.5, x, y)
    torch.testing.assert_close(y[:1000], expected[:1000] - 2.5 * x[:1000])
    check(op, 1001, 2.5, x, y)


def test_an_op_that_gives_a_tensor(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(square, name, **SQUARE)
    assert schema(op) == "Tensor x) -> Tensor"
    x = tensor(rng, 7, 33)
    torch.testing.assert_close(op(x), x * x)
    check(op, x)


def test_a_copy_that_is_changed(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=lambda n: cdiv(n, 128), block=128, outputs={"y": "y"})
    assert schema(op) == "SymInt n, float a, Tensor x, Tensor y) -> Tensor"
    x, y = tensor(rng, 300), tensor(rng, 300)
    before = y.clone()
    torch.testing.assert_close(op(300, 0.5, x, y), 0.5 * x + y)
    assert torch.equal(y, before)
    columns = tensor(rng, 20, 15).T  # its copy is contiguous, as the kernel wants it
    torch.testing.assert_close(op(300, 0.0, x, columns), columns)
    check(op, 300, 0.5, x, y)


@ptx_kernel
def extremes(x: Array[f32, 2], low: Array[f32, 1], high: Array[f32, 1]):
    row = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(row < x.shape[0]):
        least, most = reg(f32, x[row, 0]), reg(f32, x[row, 0])
        with loop(1, x.shape[1]) as column:
            least.set(ptx.min.f32(least, x[row, column]))
            most.set(ptx.max.f32(most, x[row, column]))
        low[row], high[row] = least, most


def test_several_outputs_of_other_shapes(name: str, rng: np.random.Generator) -> None:
    def rows(x: Any) -> Any:
        return x.new_empty(x.shape[0])

    op = ptxdsl.torch.register(
        extremes, name, grid=lambda x: cdiv(x.shape[0], 32), block=32, outputs={"low": rows, "high": rows}
    )
    assert schema(op) == "Tensor x) -> (Tensor, Tensor)"
    x = tensor(rng, 41, 9)[:, 2:]  # with a stride
    low, high = op(x)
    assert torch.equal(low, x.amin(1)) and torch.equal(high, x.amax(1))
    check(op, x)


@ptx_kernel
def scalars(a: f16, b: bf16, c: f64, d: u8, e: s64, out: Ptr[f64], *, sign: int = 1, twice: bool = False, by: str = ""):
    total = a.to(f64) + b.to(f64) + c + d.to(f64, "rn") + e.to(f64, "rn")
    out[0] = total * (sign * (2 if twice else 1) * (10 if by == "ten" else 1))


def test_all_kinds_of_numbers_and_constants(name: str) -> None:
    op = ptxdsl.torch.register(scalars, name, grid=1, block=1)
    assert schema(op) == (
        "float a, float b, float c, SymInt d, SymInt e, Tensor(a5!) out, *, int sign=1, bool twice=False, "
        'str by="") -> ()'
    )
    out = torch.zeros(1, dtype=torch.float64)
    op(0.5, -3.0, 0.125, 200, -(1 << 40), out)
    total = 0.5 - 3 + 0.125 + 200 - (1 << 40)
    assert out.item() == total
    op(0.5, -3.0, 0.125, 200, -(1 << 40), out, sign=-1, twice=True, by="ten")
    assert out.item() == -20 * total
    check(op, 0.5, -3.0, 0.125, 200, 7, out, sign=3)


@ptx_kernel
def add_all(count: u32, tables: Ptr[Ptr[f32]], out: Ptr[f32], *, kind=f32):
    i, total = ptx.tid.x, reg(kind, 0.0)
    with loop(count) as k:
        total += tables[k][i]
    out[i] = total


def test_lists_of_tensors(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(
        add_all, name, grid=1, block=lambda out: out.numel(),
        outputs={"out": lambda tables: torch.empty_like(tables[0])},
        computed={"count": lambda tables: len(tables), "kind": f32},
    )
    assert schema(op) == "Tensor[] tables) -> Tensor"
    parts = [tensor(rng, 37) for _ in range(5)]
    torch.testing.assert_close(op(parts), sum(parts))
    check(op, parts)


@ptx_kernel
def store_all(count: u32, targets: Ptr[Ptr[f32]], value: f32):
    with loop(count) as k:
        targets[k].store(ptx.tid.x, value)


def test_lists_of_tensors_that_are_changed(name: str) -> None:
    op = ptxdsl.torch.register(store_all, name, grid=1, block=8, computed={"count": lambda targets: len(targets)})
    assert schema(op) == "Tensor(a0!)[] targets, float value) -> ()"
    parts = [torch.zeros(8) for _ in range(3)]
    op(parts, 4.0)
    assert all((part == 4).all() for part in parts)
    check(op, parts, 4.0)


def test_tensor_maps(name: str, rng: np.random.Generator) -> None:
    maps = {"source": lambda source: tensor_map(source, (8, 8)), "target": lambda target: tensor_map(target, (8, 8))}
    op = ptxdsl.torch.register(copy_box, name, grid=1, block=32, computed=maps)
    assert schema(op) == "Tensor source, Tensor(a1!) target) -> ()"
    x, y = tensor(rng, 8, 8), torch.zeros(8, 8)
    op(x, y)
    assert torch.equal(x, y)
    made = ptxdsl.torch.register(
        copy_box, name + "_new", grid=1, block=32, outputs={"target": "source"}, computed=maps
    )
    assert schema(made) == "Tensor source) -> Tensor"
    assert torch.equal(made(x), x)
    check(op, x, y)


def test_memory_that_nobody_else_sees(name: str, rng: np.random.Generator) -> None:
    @ptx_kernel
    def fourth_power(n: u32, x: Ptr[f32], scratch: Ptr[f32], out: Ptr[f32]):
        i = ptx.tid.x
        with when(i < n):
            scratch[i] = x[i] * x[i]
            out[i] = scratch[i] * scratch[i]

    op = ptxdsl.torch.register(
        fourth_power, name, grid=1, block=64, outputs={"out": "x"},
        computed={"n": lambda x: x.numel(), "scratch": lambda x: torch.empty_like(x)},
    )
    assert schema(op) == "Tensor x) -> Tensor"
    x = tensor(rng, 50)
    torch.testing.assert_close(op(x), x**4)
    check(op, x)


def test_nothing_is_launched_for_a_grid_of_no_blocks(name: str) -> None:
    op = ptxdsl.torch.register(square, name, **SQUARE)
    assert op(torch.empty(0, 5)).shape == (0, 5)
    check(op, torch.empty(0))
    numpys = ptxdsl.torch.register(square, name + "_numpys", **{**SQUARE, "grid": lambda n: (1, np.int64(n))})
    assert numpys(torch.empty(0)).shape == (0,)


def test_vmap_launches_once_for_each_element(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(
        saxpy, name, grid=lambda n: cdiv(n, 128), block=128, outputs={"y": "y"}, computed={"n": lambda y: y.numel()}
    )
    x, y = tensor(rng, 6, 21), tensor(rng, 21, 6)
    torch.testing.assert_close(torch.vmap(op, in_dims=(None, 0, 1))(2.0, x, y), 2 * x + y.T)
    torch.testing.assert_close(torch.vmap(op, in_dims=(None, None, 1), out_dims=1)(2.0, x[0], y), 2 * x[:1].T + y)
    assert torch.vmap(torch.vmap(op, in_dims=(None, 0, 0)), in_dims=(None, 0, 0))(
        1.0, tensor(rng, 2, 3, 4), tensor(rng, 2, 3, 4)
    ).shape == (2, 3, 4)


# -- torch.compile and torch.export


def test_dynamic_shapes_are_compiled_once(name: str, rng: np.random.Generator) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    op = ptxdsl.torch.register(square, name, **SQUARE, backward=square_backward)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x: op(x + 1) * 2, fullgraph=True, dynamic=True, backend=counter)
    for n in (3, 129, 1000):
        x = tensor(rng, n).requires_grad_()
        compiled(x).sum().backward()
        torch.testing.assert_close(x.grad, 4 * (x + 1).detach())
    assert counter.frame_count == 1


def test_compiled_in_place(name: str, backend: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=lambda n: cdiv(n, 128), block=128)

    def steps(x: Any, y: Any) -> Any:
        z = y * 3
        op(x.shape[0], 2.0, x, z)
        op(x.shape[0], -1.0, x, y)
        return z - y

    x, y = tensor(rng, 200), tensor(rng, 200)
    expected, changed = 3 * x + 2 * y, y - x
    torch.testing.assert_close(torch.compile(steps, fullgraph=True, backend=backend)(x, y), expected)
    torch.testing.assert_close(y, changed)


@pytest.mark.skipif(not shutil.which("g++"), reason="torch's inductor needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules
@pytest.mark.slow
def test_inductor(name: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch._dynamo.reset()
    op = ptxdsl.torch.register(square, name, **SQUARE, backward=square_backward)
    x = tensor(rng, 500).requires_grad_()
    torch.compile(lambda x: (op(x.sin()) + x).sum(), fullgraph=True)(x).backward()
    torch.testing.assert_close(x.grad, (2 * x.sin() * x.cos() + 1).detach())


def test_export(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(square, name, **SQUARE)

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return op(x) + 1

    x = tensor(rng, 6, 5)
    exported = torch.export.export(Module(), (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert f"torch.ops.tests.{name.partition('::')[2]}.default" in exported.graph_module.code
    y = tensor(rng, 9, 5)
    torch.testing.assert_close(exported.module()(y), y * y + 1)


def test_a_launch_that_is_no_op_breaks_the_graph_and_says_what_to_do(rng: np.random.Generator) -> None:
    from torch._dynamo import explain, reset

    reset()

    def direct(x: Any, y: Any) -> Any:
        z = x * 2
        saxpy[2, 128](200, 2.0, x, y)
        return y * z

    x, y = tensor(rng, 200), tensor(rng, 200)
    expected = (2 * x + y) * 2 * x
    found = explain(direct)(x, y.clone())
    assert found.graph_count == 2
    assert "`ptxdsl.torch.register` makes an op of it" in found.break_reasons[0].reason
    torch.testing.assert_close(torch.compile(direct, backend="eager")(x, y), expected)


def test_cuda_tensors_go_to_the_gpu(name: str) -> None:
    from torch._subclasses import FakeTensorMode

    op = ptxdsl.torch.register(square, name, **SQUARE)
    with FakeTensorMode():
        x = torch.empty(5, device="cuda:1")
        assert op(x).device == torch.device("cuda:1")
        assert ptxdsl.torch._backend(op.declaration, {"x": x, "n": 5}) == "gpu"
        with pytest.raises(LaunchError) as caught:
            ptxdsl.torch._backend(op.declaration, {"x": x, "out": torch.empty(5)})
    assert caught.value.message == (
        f"the tensors of op `{name}` are on several devices: `x` on cuda:1 and `out` on cpu"
    )
    assert op(torch.empty(5, device="meta")).device.type == "meta"


# -- gradients


def make_gradient(how: str, name: str, kind: Any) -> Any:
    if how == "kernel":
        return make_square_backward(kind)
    if how == "op":
        return ptxdsl.torch.register(
            make_square_backward(kind), name + "_gradient", grid=lambda x: cdiv(x.numel(), 32), block=32,
            outputs={"grad_x": "x"}, computed={"n": lambda x: x.numel()},
            backward=lambda x, grad_out, grad_grad_x: {
                "x": 2 * grad_out * grad_grad_x, "grad_out": 2 * x * grad_grad_x,
            },
        )
    return lambda x, grad_out: {"x": 2 * x * grad_out}


@pytest.mark.parametrize("how", ["kernel", "op", "function"])
def test_gradients(name: str, how: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(make_square(f64), name, **SQUARE, backward=make_gradient(how, name, f64))
    x = tensor(rng, 4, 9, dtype=np.float64).requires_grad_()
    assert torch.autograd.gradcheck(op, x)
    if how != "kernel":
        assert torch.autograd.gradgradcheck(op, x)
    check(op, x)
    x.grad = None
    op(x).sum().backward()  # the gradient of a sum is one number, expanded
    torch.testing.assert_close(x.grad, (2 * x).detach())


@ptx_kernel
def scale(n: u32, w: Ptr[f64], x: Ptr[f64], out: Ptr[f64]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        out[i] = w[0] * x[i]


@ptx_kernel
def scale_backward(n: u32, w: Ptr[f64], x: Ptr[f64], grad_out: Ptr[f64], grad_x: Ptr[f64], grad_w: Ptr[f64]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        grad_x[i] = w[0] * grad_out[i]
        ptx.red.global_.add.f64(grad_w, x[i] * grad_out[i])


def test_what_a_backward_kernel_stores_to_begins_as_zeros(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(
        scale, name, grid=lambda x: cdiv(x.numel(), 64), block=64, outputs={"out": "x"},
        computed={"n": lambda x: x.numel()}, backward=scale_backward,
    )
    w, x = (tensor(rng, n, dtype=np.float64).requires_grad_() for n in (1, 150))
    assert torch.autograd.gradcheck(op, (w, x), nondet_tol=1e-9)
    op(w.detach(), x).sum().backward()
    torch.testing.assert_close(x.grad, w.detach().expand(150))
    assert w.grad is None


@ptx_kernel
def axpy_backward(a: f32, grad_y: Ptr[f32], grad_x: Ptr[f32]):
    grad_x[ptx.tid.x] = a * grad_y[ptx.tid.x]
    grad_y[ptx.tid.x] = grad_y[ptx.tid.x] * 1


def test_the_gradient_of_a_changed_copy_begins_as_that_of_the_output(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(
        saxpy, name, grid=1, block=lambda x: x.numel(), outputs={"y": "y"}, computed={"n": lambda x: x.numel()},
        backward=axpy_backward,
    )
    x, y = tensor(rng, 40).requires_grad_(), tensor(rng, 40).requires_grad_()
    weight = tensor(rng, 40)
    (op(-3.0, x, y) * weight).sum().backward()
    torch.testing.assert_close(x.grad, -3 * weight)
    torch.testing.assert_close(y.grad, weight)


def test_a_function_may_ask_for_everything_and_leave_gradients_out(name: str, rng: np.random.Generator) -> None:
    seen: dict[str, Any] = {}

    def backward(n: int, w: Any, x: Any, out: Any, grad_out: Any) -> Any:
        seen.update(n=n, out=out.clone(), contiguous=grad_out.is_contiguous())
        return {"w": (x * grad_out).sum().reshape(1)}

    op = ptxdsl.torch.register(
        scale, name, grid=lambda n: cdiv(n, 64), block=64, outputs={"out": "x"}, computed={"n": lambda x: x.numel()},
        backward=backward,
    )
    w, x = (tensor(rng, n, dtype=np.float64).requires_grad_() for n in (1, 70))
    out = op(w, x)
    out.sum().backward()
    torch.testing.assert_close(w.grad, x.detach().sum().reshape(1))
    assert x.grad is None and seen["n"] == 70 and seen["contiguous"]
    torch.testing.assert_close(seen["out"], out.detach())


def test_the_gradient_of_lists(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(
        add_all, name, grid=1, block=lambda out: out.numel(),
        outputs={"out": lambda tables: torch.empty_like(tables[0])},
        computed={"count": lambda tables: len(tables), "kind": f32},
        backward=lambda tables, grad_out: {"tables": [grad_out * (k + 1) for k in range(len(tables))]},
    )
    parts = [tensor(rng, 5).requires_grad_(k != 1) for k in range(3)]
    op(parts).sum().backward()
    assert [None if p.grad is None else p.grad.unique().tolist() for p in parts] == [[1.0], None, [3.0]]


def test_constants_reach_the_backward_kernel(name: str, rng: np.random.Generator) -> None:
    @ptx_kernel
    def power(x: Ptr[f32], out: Ptr[f32], *, exponent: int = 2):
        value = x[ptx.tid.x]
        result = value
        for _ in range(exponent - 1):
            result = result * value
        out[ptx.tid.x] = result

    @ptx_kernel
    def power_backward(x: Ptr[f32], grad_out: Ptr[f32], grad_x: Ptr[f32], *, exponent: int = 2):
        value = grad_out[ptx.tid.x] * float(exponent)
        for _ in range(exponent - 1):
            value = value * x[ptx.tid.x]
        grad_x[ptx.tid.x] = value

    op = ptxdsl.torch.register(
        power, name, grid=1, block=lambda x: x.numel(), outputs={"out": "x"}, backward=power_backward
    )
    x = tensor(rng, 30).requires_grad_()
    op(x, exponent=3).sum().backward()
    torch.testing.assert_close(x.grad, (3 * x * x).detach())
    x.grad = None
    torch.compile(lambda x: op(x, exponent=4), fullgraph=True, backend="aot_eager")(x).sum().backward()
    torch.testing.assert_close(x.grad, (4 * x**3).detach())


def test_an_op_that_changes_tensors_refuses_gradients(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=1, block=64)
    x, y = tensor(rng, 9).requires_grad_(), tensor(rng, 9)
    before = y.clone()
    with pytest.raises(LaunchError) as caught:
        op(9, 1.0, x, y)
    assert caught.value.message == (
        f"argument `x` of op `{name}` requires a gradient; the op stores to `y`, of which no gradient knows"
    )
    assert caught.value.hint == (
        "`with torch.no_grad():` around the call, pass `.detach()`, or let the op give a changed copy: "
        "`outputs={'y': 'y'}`"
    )
    assert caught.value.loc is not None and caught.value.loc.source == "op(9, 1.0, x, y)"
    assert torch.equal(y, before)
    with torch.no_grad():
        op(9, 1.0, x, y)
    op(9, 1.0, x.detach(), y)
    torch.testing.assert_close(y, before + 2 * x.detach())
    with torch.inference_mode():
        op(9, 1.0, x, torch.zeros(9))


# -- errors


def test_an_error_of_a_launch_names_the_users_line(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=lambda n: cdiv(n, 128), block=128)
    with pytest.raises(LaunchError) as caught:
        op(3, 1.0, tensor(rng, 3, dtype=np.float64), tensor(rng, 3))
    assert caught.value.message == (
        "argument `x` of kernel `saxpy` is a torch tensor of float64, shape (3,); Ptr[f32] wants float32"
    )
    assert caught.value.loc is not None and caught.value.loc.source.startswith("op(3, 1.0, tensor(rng, 3, dtype")


def test_a_fault_names_the_line_of_the_kernel(name: str, backend: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(saxpy, name, grid=lambda n: cdiv(n, 128), block=128)

    def call(x: Any, y: Any) -> Any:
        op(len(x) + 1, 1.0, x, y)
        return y * 2

    with pytest.raises(MemoryFault) as caught:
        torch.compile(call, backend=backend)(tensor(rng, 50), tensor(rng, 50))
    assert caught.value.message == "load from x[50]: x is f32[50]"
    assert caught.value.loc is not None and caught.value.loc.source == "y[i] = a * x[i] + y[i]"


@pytest.mark.parametrize("made", [lambda x: x, lambda x: x.view(-1)], ids=["itself", "view"])
def test_an_output_in_memory_of_an_argument(name: str, made: Any, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(square, name, **{**SQUARE, "outputs": {"out": made}})
    x = tensor(rng, 4)
    before = x.clone()
    with pytest.raises(LaunchError) as caught:
        op(x)
    assert caught.value.message == f"output `out` of op `{name}` is in the memory of `x`"
    assert caught.value.hint == "let its function allocate it: `torch.empty_like(...)`"
    assert torch.equal(x, before)


def test_an_output_of_another_dtype(name: str, rng: np.random.Generator) -> None:
    op = ptxdsl.torch.register(square, name, **{**SQUARE, "outputs": {"out": lambda x: x.double()}})
    with pytest.raises(LaunchError) as caught:
        op(tensor(rng, 4))
    assert caught.value.message == f"output `out` of op `{name}` is made as float64; Ptr[f32] wants float32"
    assert caught.value.loc is not None and caught.value.loc.source == "op(tensor(rng, 4))"


@ptx_kernel
def choosing(x: Ptr[f32], y: Ptr[f32], *, both: bool = False, required: int):
    y[0] = float(required)
    if both:
        x[0] = 1.0


def test_a_constant_that_changes_what_is_stored(name: str) -> None:
    op = ptxdsl.torch.register(choosing, name, grid=1, block=1, computed={"required": 3})
    x, y = torch.zeros(1), torch.zeros(1)
    op(x, y)
    with pytest.raises(LaunchError) as caught:
        op(x, y, both=True)
    assert caught.value.message == (
        f"kernel `choosing` with both=True, required=3 stores to `x`, as it did not when op `{name}` was made"
    )
    assert caught.value.hint == "make an op for each such value: `computed={...}` fixes it"
    assert (x.item(), y.item()) == (0, 3)


@ptx_kernel
def unsupported(x: Ptr[f32], m: TensorMap, *, missing: object = None):
    x[0] = 1.0


@ptx_kernel
def unrelated(weights: Ptr[f32], grad_x: Ptr[f32]):
    grad_x[0] = weights[0]


@ptx_kernel
def overwriting(x: Ptr[f32], grad_out: Ptr[f32]):
    x[0] = grad_out[0]


WRONG: dict[str, tuple[Any, dict[str, Any], str, str | None]] = {
    "no kernel": (make_square, {}, f"op `tests::wrong` is made of a kernel, not of {make_square!r}",
        "write `@ptx_kernel` above it"),
    "an output that is misspelt": (square, {"outputs": {"ouf": "x"}},
        "outputs of op `tests::wrong` has `ouf`, and kernel `square` has no parameter of that name",
        "did you mean `out`?"),
    "an output that is not stored to": (square, {"outputs": {"x": "out"}},
        "output `x` of op `tests::wrong` is an argument to which kernel `square` does not store", "it stores to `out`"),
    "an output that is a number": (square, {"outputs": {"n": "x"}},
        "output `n` of op `tests::wrong` is no array: kernel `square` has `n: u32`", None),
    "an output like nothing": (square, {"outputs": {"out": "z"}},
        "output `out` of op `tests::wrong` is like `z`, which is no argument", "the names are n, x, out"),
    "an output that is a tensor": (square, {"outputs": {"out": 3}},
        ("output `out` of op `tests::wrong` is 3; it is a function that allocates it, or the name of the argument that "
        "it is like"), "`outputs={'out': 'n'}`"),
    "a computed argument that is stored to": (
        saxpy, {"computed": {"y": lambda y: y.contiguous()}},
        (
            "computed argument `y` of op `tests::wrong` is one to which kernel `saxpy` stores; "
            "what it stores would be lost"
        ),
        "let it be an output: `outputs={'y': ...}`",
    ),
    "an output of an output": (extremes, {"outputs": {"low": lambda high: high, "high": lambda x: x[0]}},
        "output `low` of op `tests::wrong` is a function of `high`, which is made after it", "it can be one of `x`"),
    "a grid of what is not there": (square, {"grid": lambda rows: rows},
        "grid of op `tests::wrong` is a function of `rows`, which it cannot be", "the names are n, x, out"),
    "a block of what is misspelt": (saxpy, {"block": lambda nn: nn},
        "block of op `tests::wrong` is a function of `nn`, which it cannot be", "did you mean `n`?"),
    "a function without a signature": (square, {"grid": max},
        f"grid of op `tests::wrong` is {max!r}, whose parameters Python does not know", "wrap it: `lambda n: ...`"),
    "an option that is none": (square, {"shard": 3},
        "`shard`, given for op `tests::wrong`, is no option of a launch", "did you mean `shared=`?"),
    "a stream": (square, {"stream": 3},
        "`stream`, given for op `tests::wrong`, follows from the device of the tensors", "leave it out"),
    "a tensor map": (unsupported, {},
        "parameter `m: TensorMap` of kernel `unsupported` can be no argument of op `tests::wrong`",
        "compute it from others: `computed={'m': lambda m: ptxdsl.tensor_map(m, box)}`"),
    "a constant of no type": (unsupported, {"computed": {"m": lambda m: m}},
        ("compile-time constant `missing=None` of kernel `unsupported` can be no argument of op `tests::wrong`: torch "
        "has none of this type"), "give its value: `computed={'missing': ...}`"),
    "a constant without a value": (choosing, {},
        ("compile-time constant `required` of kernel `choosing` has no default; op `tests::wrong` traces it now to see "
        "what it stores to"), "give it a default, or a value: `computed={'required': ...}`"),
    "a gradient of what is changed": (saxpy, {"backward": lambda x: {}},
        "op `tests::wrong` stores to its argument `y`, so it can have no gradient",
        "let it give a changed copy: `outputs={'y': 'y'}`"),
    "a gradient of what is not there": (square, {**SQUARE, "backward": lambda grad_ouf: {}},
        "backward of op `tests::wrong` is a function of `grad_ouf`, which it cannot be", "did you mean `grad_out`?"),
    "a backward kernel that takes what is not there": (square, {**SQUARE, "backward": unrelated},
        "backward of op `tests::wrong` takes `weights`, which op `tests::wrong` does not have",
        "it can take x, out, n, grad_out"),
    "a backward kernel that stores to what is saved": (square, {**SQUARE, "backward": overwriting},
        "backward of op `tests::wrong` stores to its argument `x`",
        "what it computes is called `grad_` and the name of an argument of op `tests::wrong`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_an_op(case: str) -> None:
    kernel, options, message, hint = WRONG[case]
    with pytest.raises(LaunchError) as caught:
        ptxdsl.torch.register(kernel, "tests::wrong", **{"grid": 1, "block": 32, **options})  # here
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.loc is not None and caught.value.loc.source.endswith("# here")
    assert not hasattr(torch.ops.tests, "wrong")


@pytest.mark.parametrize("given", ["square", "mylib:square", "mylib::square::more", "my-lib::square", "", 3])
def test_a_name_that_is_none(given: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        ptxdsl.torch.register(square, given, grid=1, block=1)
    assert (caught.value.message, caught.value.hint) == (f"{given!r} is no name of an op of torch", '"mylib::square"')


def test_a_name_that_is_taken(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(LaunchError) as caught:
        ptxdsl.torch.register(square, "aten::square", **SQUARE)
    assert caught.value.message == "torch has an op `aten::square` already"
    assert caught.value.hint == "give it another name"
    for _ in range(2):  # as a cell of a notebook that runs twice
        op = ptxdsl.torch.register(make_square(f64), name, **SQUARE)
    x = tensor(rng, 5, dtype=np.float64)
    torch.testing.assert_close(op(x), x * x)
    with pytest.raises(LaunchError) as caught:
        ptxdsl.torch.register(saxpy, name, grid=1, block=1)
    assert caught.value.message.startswith(f"torch has an op `{name}` already, made of kernel `")
    torch.testing.assert_close(op(x), x * x)


@pytest.mark.parametrize(
    ("returned", "message", "hint"),
    [
        (lambda x: x, "returned Tensor, not a dict from arguments to gradients", "return {'x': ...}"),
        (
            lambda x: {"y": x}, "returned a gradient of `y`, which is no argument of {} that has a gradient",
            "those are `x`",
        ),
    ],
    ids=["no dict", "no argument"],
)
def test_a_backward_function_that_returns_something_else(
    name: str, returned: Any, message: str, hint: str, rng: np.random.Generator
) -> None:
    op = ptxdsl.torch.register(square, name, **SQUARE, backward=returned)
    with pytest.raises(LaunchError) as caught:
        op(tensor(rng, 4).requires_grad_()).sum().backward()
    assert caught.value.message == f"backward of op `{name}` " + message.format(f"op `{name}`")
    assert caught.value.hint == hint
    assert caught.value.loc is not None and caught.value.loc.source.endswith(".sum().backward()")


def test_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import ptxdsl\n"
        "try:\n    ptxdsl.torch\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("which ptxdsl.torch is for: `pip install 'ptxdsl[torch]'`\n")


def test_ptxdsl_does_not_import_torch() -> None:
    code = "import sys, numpy, ptxdsl; ptxdsl.ptx_kernel; ptxdsl.kernels; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

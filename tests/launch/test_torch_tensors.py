"""Autograd knows of what kernels store to tensors: with torch where it is installed, and with a stand-in everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, LaunchError, Ptr, f32, ptx, ptx_kernel, use


class Tensor:
    """As much of a tensor as a launch asks for, over a numpy array."""

    layout, requires_grad, inference, negated = "torch.strided", False, False, False
    device = SimpleNamespace(type="cpu", index=None)
    dtype = "torch.float32"

    def __init__(self, array: Any, **attributes: Any) -> None:
        self.array, self.version = array, [0]
        self.shape = array.shape
        self.__dict__.update(attributes)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def element_size(self) -> int:
        return 4

    def stride(self) -> tuple[int, ...]:
        return tuple(step // 4 for step in self.array.strides)

    def is_inference(self) -> bool:
        return self.inference

    def is_neg(self) -> bool:
        return self.negated

    def get_device(self) -> int:
        return 0

    def is_contiguous(self) -> bool:
        return True

    def detach(self) -> Tensor:
        found = Tensor(self.array)
        found.version = self.version
        return found

    as_strided = lambda self, shape, strides: self  # noqa: E731

    def zero_(self) -> None:
        self.version[0] += 1


Tensor.__module__ = "torch"


class Mine(Tensor):
    """A class of the user's."""


@pytest.fixture(params=["1.13", "2.1"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module: Any = SimpleNamespace(grad=True, autograd=SimpleNamespace(graph=SimpleNamespace()))
    module.is_grad_enabled = lambda: module.grad
    if request.param == "2.1":
        module.autograd.graph.increment_version = lambda tensor: tensor.zero_()
    monkeypatch.setitem(sys.modules, "torch", module)
    with use("emulator"):
        yield module


def kernel(annotation: Any) -> Any:
    @ptx_kernel
    def k(x: annotation, y: annotation):
        if annotation is Ptr[f32]:
            y[ptx.tid.x] = x[ptx.tid.x]
        else:
            y[0, ptx.tid.x] = x[0, ptx.tid.x]

    return k


@pytest.mark.parametrize("kind", [Tensor, Mine])
@pytest.mark.parametrize("annotation", [Ptr[f32], Array[f32, 2]])
def test_each_launch_counts_the_version_of_what_it_stores_to(torch: Any, annotation: Any, kind: type[Tensor]) -> None:
    shape = (8,) if annotation is Ptr[f32] else (2, 4)
    x, y = kind(np.random.default_rng().random(shape).astype(np.float32)), kind(np.zeros(shape, np.float32))
    k = kernel(annotation)
    for _ in range(3):
        k[1, 4](x, y)
    assert (x.version, y.version) == ([0], [3])
    assert (y.array.ravel()[:4] == x.array.ravel()[:4]).all()


def test_foreign_ptx_counts_too(torch: Any) -> None:
    text = kernel(Ptr[f32]).ptx()
    x, y = Tensor(np.ones(4, np.float32)), Tensor(np.zeros(4, np.float32), requires_grad=True)
    ptxdsl.load(text)["k"][1, 4](x, y)
    assert (x.version, y.version) == ([0], [1])


def test_a_tensor_that_requires_a_gradient(torch: Any) -> None:
    x, y = Tensor(np.ones(4, np.float32), requires_grad=True), Tensor(np.zeros(4, np.float32), requires_grad=True)
    k = kernel(Ptr[f32])
    with pytest.raises(LaunchError) as caught:
        k[1, 4](x, y)
    assert caught.value.message == (
        "argument `y` of kernel `k` is a torch tensor of float32, shape (4,), requires a gradient; "
        "the kernel writes to it, of which no gradient knows"
    )
    assert caught.value.hint == "`with torch.no_grad():` around the launch, or pass `y.detach()`"
    assert y.version == [0]
    k[1, 4](x, y.detach())
    torch.grad = False
    k[1, 4](x, y)
    assert y.version == [2] and y.array.all()


def test_what_a_table_of_pointers_points_to(torch: Any) -> None:
    @ptx_kernel
    def k(sources: Ptr[Ptr[f32]], targets: Ptr[Ptr[f32]], y: Ptr[f32]):
        target = (targets + 1)[ptx.ctaid.x]
        (target + ptx.tid.x).store(0, sources[0][ptx.tid.x] + y[ptx.tid.x])

    def tensor(**attributes: Any) -> Tensor:
        return Tensor(np.ones(4, np.float32), **attributes)

    sources, targets, y = [tensor(requires_grad=True)], [tensor(), tensor(requires_grad=True)], tensor()
    for _ in range(2):
        k[1, 4](sources, targets, y)
    assert ([t.version for t in sources], [t.version for t in targets], y.version) == ([[0]], [[2], [2]], [0])
    assert (targets[1].array == 2).all()


def test_tensors_without_a_version_and_lazy_ones(torch: Any) -> None:
    x, y = Tensor(np.ones(4, np.float32)), Tensor(np.zeros(4, np.float32), inference=True)
    k = kernel(Ptr[f32])
    k[1, 4](x, y)
    assert y.version == [0] and y.array.all()
    with pytest.raises(LaunchError, match="which has memory that is not what it shows"):
        k[1, 4](Tensor(np.ones(4, np.float32), negated=True), y)


def test_torch_itself() -> None:
    torch = pytest.importorskip("torch")
    k, x, y = kernel(Ptr[f32]), torch.ones(4), torch.zeros(4)
    weight = torch.ones(4, requires_grad=True)
    with use("emulator"):
        k[1, 4](x, y)
        product = weight * y
        k[1, 4](x, y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()
        with pytest.raises(LaunchError, match="requires a gradient"):
            k[1, 4](x, weight)
        with torch.no_grad():
            k[1, 4](x, weight)
    assert (y._version, weight._version, x._version) == (2, 1, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of layouts that are new to it
def test_tensors_without_memory() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[0] = x[1]

    def said(tensor: Any) -> tuple[str, str | None]:
        with use("emulator"), pytest.raises(LaunchError) as caught:
            k[1, 1](tensor)
        return caught.value.message, caught.value.hint

    traced = "torch.compile, torch.export, vmap and fake tensors trace with such: launch outside of what is traced"
    with FakeTensorMode():
        fake = torch.zeros(4)
    functional = torch._to_functional_tensor(torch.zeros(4))
    assert said(torch.zeros(4, device="meta")) == (
        "argument `x` of kernel `k` is a Tensor, which is on the meta device, which has no memory",
        'make it with `device="cuda"` or `device="cpu"`',
    )
    for tensor in (fake, functional):
        message, hint = said(tensor)
        assert message == f"argument `x` of kernel `k` is a {type(tensor).__name__}, which has no memory of its own"
        assert hint == traced
    for tensor, layout, hint in [
        (torch.zeros(4).to_sparse(), "torch.sparse_coo", "`x = x.to_dense()`"),
        (torch.eye(4).to_sparse_csr(), "torch.sparse_csr", "`x = x.to_dense()`"),
        (torch.zeros(4).to_mkldnn(), "torch._mkldnn", "`x = x.to_dense()`"),
        (torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged), "torch.jagged",
         "`x = x.values()`, with its offsets"),
    ]:
        message, said_hint = said(tensor)
        kind = type(tensor).__name__
        assert (message, said_hint) == (f"argument `x` of kernel `k` is a {kind}, which has the layout {layout}", hint)
    batched: list[str] = []
    torch.vmap(lambda row: (batched.append(said(row)[0]), row)[1])(torch.zeros(3, 4))
    assert batched == ["argument `x` of kernel `k` is a Tensor, which has no memory of its own"]
    assert said(torch._neg_view(torch.zeros(4)))[1] == "`x = x.resolve_neg()`"
    for use_it in (ptxdsl.to_device, lambda x: ptxdsl.zeros(4, f32, backend="emulator").copy_from(x), ptxdsl.Texture):
        with pytest.raises(LaunchError) as caught:
            use_it(torch.zeros(4, device="meta"))
        assert caught.value.message == "a Tensor is on the meta device, which has no memory"
        assert caught.value.hint == 'make it with `device="cuda"` or `device="cpu"`'
    sub = torch.zeros(4).as_subclass(type("Own", (torch.Tensor,), {}))
    with use("emulator"), torch.no_grad():
        k[1, 1](sub)
        k[1, 1](torch.nn.Parameter(torch.zeros(4)))


def test_gradients_that_torch_wraps() -> None:
    torch = pytest.importorskip("torch")

    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[0] = 1.0

    def f(x: Any) -> Any:
        with use("emulator"), pytest.raises(LaunchError) as caught:
            k[1, 1](x)
        found.append(caught.value.message)
        return x.sum()

    found: list[str] = []
    torch.func.grad(f)(torch.zeros(4))
    assert len(found) == 1

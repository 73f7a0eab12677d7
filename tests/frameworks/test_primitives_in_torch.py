"""Reductions, scans, sorts and their kin, convolutions and experts on tensors, beside torch's own; their gradients."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ptxdsl[torch]'")

from ptxdsl import LaunchError  # noqa: E402
from ptxdsl.kernels import conv, histogram, moe, random, reduce, scan, select, sort, topk  # noqa: E402


def double(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_primitives_beside_torch() -> None:
    x = torch.randn(5, 301)
    assert torch.allclose(reduce.sum(x, 1), x.sum(1), atol=1e-4) and torch.equal(reduce.max(x, 0), x.amax(0))
    assert torch.equal(reduce.any(x > 2, 1), (x > 2).any(1)) and torch.equal(reduce.argmin(x, 1), x.argmin(1))
    assert torch.allclose(scan.inclusive(x), x.cumsum(1), atol=1e-4)
    for dtype in (torch.float32, torch.bfloat16, torch.int16):
        narrow = x.mul(9).to(dtype)
        assert torch.equal(sort.radix_sort(narrow), narrow.sort(1)[0])
        assert torch.equal(sort.argsort(narrow, descending=True), narrow.sort(dim=1, descending=True, stable=True)[1])
    assert all(torch.equal(*pair) for pair in zip(topk.topk(x, 7), x.topk(7)))
    assert torch.equal(select.compact(x, x > 0), x[x > 0])
    assert torch.equal(select.nonzero(x), x.reshape(-1).nonzero()[:, 0])
    assert torch.equal(histogram.bincount(torch.tensor([1, 3, 3])), torch.tensor([0, 1, 0, 2]))
    words = random.philox(out=torch.empty(4, dtype=torch.uint32))
    assert words.tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    weights, experts = moe.route(x, 3)
    assert torch.allclose(weights, x.topk(3)[0].softmax(1)) and torch.equal(experts.long(), x.topk(3)[1])


def test_gradients_of_reductions_and_scans() -> None:
    x = double(3, 4, 5)
    for axis, keepdims in ((None, False), ((0, 2), False), (-1, True)):
        for function in (reduce.sum, reduce.mean):
            assert torch.autograd.gradcheck(lambda x: function(x, axis, keepdims=keepdims), (x,))
    for function in (scan.inclusive, scan.exclusive):
        for axis in (0, -1):
            assert torch.autograd.gradcheck(lambda x: function(x, axis=axis), (x,))
    with pytest.raises(LaunchError, match=r"^a scan of op 'max' has no gradient here, only sums without `flags` have"):
        scan.inclusive(x, "max").sum().backward()


def test_gradients_of_convolutions() -> None:
    options: dict[str, Any] = {"stride": 2, "padding": 1, "groups": 2}
    x, w, bias = double(2, 4, 5, 5), double(6, 2, 3, 3), double(6)
    assert torch.allclose(conv.conv2d(x, w, bias, **options), torch.nn.functional.conv2d(x, w, bias, **options))
    assert torch.autograd.gradcheck(lambda *given: conv.conv2d(*given, **options), (x, w, bias))
    assert torch.autograd.gradcheck(lambda *given: conv.conv1d(*given, dilation=2), (double(2, 3, 9), double(2, 3, 2)))


def test_the_gradient_of_dropout_drops_the_same() -> None:
    x = double(50)
    out = random.dropout(x, 0.4, seed=7)
    out.sum().backward()
    assert torch.equal(x.grad != 0, out != 0) and 5 < int((out != 0).sum()) < 45

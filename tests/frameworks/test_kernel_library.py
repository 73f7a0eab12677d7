"""The kernel library's functions in torch's autograd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ptxdsl[torch]'")

from ptxdsl import LaunchError, f32, f64  # noqa: E402
from ptxdsl.kernels import attention, elementwise, kv_cache, linalg, loss, moe, norm, optim, reduce, rope  # noqa: E402
from ptxdsl.kernels.autograd import differentiable  # noqa: E402


def _backward(x: Any, y: Any, factor: float, grad_total: Any, grad_product: Any, needs: frozenset[str]) -> Any:
    found = {"x": (grad_total + grad_product * y) * factor, "y": (grad_total + grad_product * x) * factor}
    return {name: found[name] for name in needs}


@differentiable("x", "y", backward=_backward, results=("total", "product"))
def combined(x: Any, y: Any, factor: float = 2.0, *, out: Any = None) -> tuple[Any, Any]:
    """factor (x + y) and factor x y."""
    assert not torch.is_grad_enabled() or not (x.requires_grad or y.requires_grad)
    return factor * (x + y), factor * x * y


def double(*shape: int, requires_grad: bool = True) -> Any:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=requires_grad)


def test_gradients_of_several_results() -> None:
    x, y = double(3, 2), double(3, 2)
    assert torch.autograd.gradcheck(lambda x, y: combined(x, y, factor=3.0), (x, y))
    assert torch.autograd.gradcheck(combined, (x, double(3, 2, requires_grad=False)))
    total, _ = combined(x, y)
    assert torch.equal(torch.autograd.grad(total.sum(), x)[0], torch.full_like(x, 2.0))


def test_what_is_not_recorded() -> None:
    x, y = double(3), double(3)
    with torch.no_grad():
        assert not combined(x, y, out=x)[0].requires_grad
    assert not combined(x.detach(), y.detach())[0].requires_grad


def test_a_given_result_is_refused() -> None:
    with pytest.raises(LaunchError) as caught:
        combined(double(3), double(3), out=double(3))
    assert caught.value.message == "`out` is given, and torch records a gradient, which stores to a new tensor"
    assert caught.value.hint == "leave `out` out, or call it under `torch.no_grad()`"
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_a_changed_tensor_is_refused() -> None:
    x = double(3).clone()
    total = combined(x, double(3))[1].sum()
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_a_second_derivative_is_refused() -> None:
    x = double(3)
    (slope,) = torch.autograd.grad(combined(x, x)[1].sum(), x, create_graph=True)
    with pytest.raises(LaunchError) as caught:
        slope.sum().backward()
    assert caught.value.message == "the kernel library has no second derivatives"


def _of_saved(saved: Any, grad_out: Any) -> Mapping[str, Any]:
    return {"x": saved * grad_out}


@differentiable("x", backward=_of_saved, recorded=lambda x: (x * x, {"saved": 2 * x.detach()}))
def square(x: Any) -> Any:
    raise AssertionError("where torch records, the other function runs")


def test_what_the_forward_pass_saves() -> None:
    assert torch.autograd.gradcheck(square, (double(4),))


ELEMENTWISE = {
    "add": lambda x, y: elementwise.add(x, y[0]), "sub": lambda x, y: elementwise.sub(x[:, :1], y),
    "mul": lambda x, y: elementwise.mul(x, y[:1]), "div": lambda x, y: elementwise.div(x, y * y + 1),
    "residual_add": lambda x, y: elementwise.residual_add(x, y, 0.3), "scale": lambda x, _y: elementwise.scale(x, -2.5),
    "where": lambda x, y: elementwise.where(x.detach() > 0, x, y[:1]), "cast": lambda x, _y: elementwise.cast(x, f64),
    "clamp": lambda x, _y: elementwise.clamp(x, -0.5, 0.5), "relu": lambda x, _y: elementwise.relu(x),
    "leaky_relu": lambda x, _y: elementwise.leaky_relu(x, 0.1), "sigmoid": lambda x, _y: elementwise.sigmoid(x),
    "tanh": lambda x, _y: elementwise.tanh(x), "silu": lambda x, _y: elementwise.silu(x),
    "gelu": lambda x, _y: elementwise.gelu(x), "gelu_tanh": lambda x, _y: elementwise.gelu(x, "tanh"),
    "softplus": lambda x, _y: elementwise.softplus(x, 2.0, 1.0), "swiglu": elementwise.swiglu,
    "packed swiglu": lambda x, _y: elementwise.swiglu(x), "geglu": elementwise.geglu,
    "packed geglu": lambda x, _y: elementwise.geglu(x, approximate="tanh"),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_gradients(name: str) -> None:
    assert torch.autograd.gradcheck(ELEMENTWISE[name], (double(3, 4), double(3, 4)))


@pytest.mark.parametrize("name", ["silu", "gelu", "relu", "sigmoid", "tanh", "softplus"])
def test_the_same_as_torch(name: str) -> None:
    x = torch.randn(5, 33, dtype=torch.bfloat16)
    of_torch = getattr(torch.nn.functional, name)
    torch.testing.assert_close(getattr(elementwise, name)(x.T), of_torch(x.T))
    torch.testing.assert_close(getattr(elementwise, name)(x.float()), of_torch(x.float()))


MEAN, VAR = torch.arange(6.0), torch.full((6,), 0.5)
NORMS = {
    "rms_norm": lambda x, w, _b: norm.rms_norm(x, w), "layer_norm": norm.layer_norm,
    "fused_add_rms_norm": lambda x, w, _b: norm.fused_add_rms_norm(x, x[:, ::2].repeat_interleave(2, 1) + w, w),
    "softmax": lambda x, w, _b: norm.softmax(x * w, 0), "log_softmax": lambda x, w, _b: norm.log_softmax(x + w),
    "training": lambda x, w, b: norm.batch_norm(x, weight=w, bias=b, training=True),
    "inference": lambda x, w, b: norm.batch_norm(x, MEAN, VAR, w, b),
}


@pytest.mark.parametrize("name", NORMS)
def test_norm_gradients(name: str) -> None:
    x, weight, bias = double(3, 6), double(6), double(6)
    assert torch.autograd.gradcheck(NORMS[name], (x, weight, bias))
    weight.requires_grad = False
    assert torch.autograd.gradcheck(NORMS[name], (x, weight, bias.detach()))


def test_norms_are_those_of_torch() -> None:
    x, w, b = torch.randn(4, 6, 5), torch.randn(6), torch.randn(6)
    states = [[torch.zeros(6), torch.ones(6)] for _ in range(2)]
    for training in (True, False):
        of_torch = torch.nn.functional.batch_norm(x, *states[1], w, b, training)
        torch.testing.assert_close(norm.batch_norm(x, *states[0], w, b, training), of_torch)
    torch.testing.assert_close(states[0], states[1])
    x = torch.randn(3, 6)
    torch.testing.assert_close(norm.rms_norm(x, w, 1e-3), torch.nn.functional.rms_norm(x, (6,), w, 1e-3))
    torch.testing.assert_close(norm.layer_norm(x, w, b), torch.nn.functional.layer_norm(x, (6,), w, b))
    torch.testing.assert_close(norm.softmax(x.bfloat16(), 0), torch.softmax(x.bfloat16(), 0))


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"])
def test_gradients_of_products(activation: str | None) -> None:
    a, b, bias, residual = double(3, 4), double(4, 2), double(2), double(3, 2)
    given = {"activation": activation, "alpha": 0.5, "beta": 2.0}
    assert torch.autograd.gradcheck(
        lambda a, b, bias, residual: linalg.matmul(a, b, bias=bias, residual=residual, **given), (a, b, bias, residual)
    )


@pytest.mark.parametrize(
    ("a", "b", "swapped"),
    [
        ((2, 3, 4), (4, 2), ""), ((1, 3, 4), (2, 4, 2), ""), ((4,), (2, 4, 3), ""), ((3, 4), (4,), ""),
        ((4,), (4,), ""), ((4, 3), (4, 2), "a"), ((3, 4), (2, 4), "b"), ((2, 4, 3), (2, 4), "ab"),
    ],
)
def test_gradients_of_shapes(a: tuple[int, ...], b: tuple[int, ...], swapped: str) -> None:
    ways = {"transpose_a": "a" in swapped, "transpose_b": "b" in swapped}
    assert torch.autograd.gradcheck(lambda a, b: linalg.matmul(a, b, **ways), (double(*a), double(*b)))


def test_gradients_of_vectors_and_transposes() -> None:
    assert torch.autograd.gradcheck(lambda a, x: linalg.gemv(a, x, alpha=3.0), (double(3, 4), double(4)))
    assert torch.autograd.gradcheck(lambda a, x: linalg.gemv(a, x, transpose=True), (double(3, 4), double(3)))
    assert torch.autograd.gradcheck(linalg.transpose, (double(2, 3, 4),))


def test_products_of_torch() -> None:
    a, b = torch.randn(5, 70, dtype=torch.bfloat16), torch.randn(33, 70, dtype=torch.bfloat16)
    torch.testing.assert_close(linalg.matmul(a, b.T), a @ b.T)
    eighth = a.to(torch.float8_e4m3fn)
    torch.testing.assert_close(linalg.matmul(eighth, eighth.T), eighth.float() @ eighth.float().T)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(4, 5), (5,), (2, 5, 3)])
def test_gradients_of_cross_entropy(reduction: str, shape: tuple[int, ...]) -> None:
    logits, target = double(*shape), torch.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if target.ndim:
        target[-1] = -100
    given = {"reduction": reduction, "label_smoothing": 0.2, "weight": torch.rand(5, dtype=torch.float64) + 0.5}
    assert torch.autograd.gradcheck(lambda logits: loss.cross_entropy(logits, target, **given), (logits,))
    of_torch = torch.nn.functional.cross_entropy(logits, target, **given)
    torch.testing.assert_close(loss.cross_entropy(logits, target, **given), of_torch)


def test_optimisers_are_those_of_torch() -> None:
    mine, others = (torch.nn.Parameter(torch.linspace(-1, 1, 13)) for _ in range(2))
    mean, square, buffer = torch.zeros(3, 13)
    adamw = torch.optim.AdamW([others], lr=1e-2, weight_decay=0.1)
    for step in (1, 2, 3):
        others.grad = torch.randn(13)
        with torch.no_grad():
            optim.adamw(mine, others.grad, mean, square, step, lr=1e-2, weight_decay=0.1)
        adamw.step()
        torch.testing.assert_close(mine, others)
    sgd = torch.optim.SGD([others], lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)
    for _ in range(3):
        others.grad = torch.randn(13)
        with torch.no_grad():
            optim.sgd(mine, others.grad, buffer, lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)
        sgd.step()
        torch.testing.assert_close(mine, others)
    mine.grad = others.grad.clone()
    norm_of_torch = torch.nn.utils.clip_grad_norm_([others], 0.5)
    torch.testing.assert_close(optim.clip_grad_norm([mine.grad], 0.5)[0], norm_of_torch)
    torch.testing.assert_close(mine.grad, others.grad)


@pytest.mark.parametrize("function", [rope.rope, rope.rope_neox])
@pytest.mark.parametrize("heads_first", [False, True])
def test_gradients_of_rope(function: Any, heads_first: bool) -> None:
    q, k, positions = double(2, 3, 2, 6), double(2, 3, 2, 6), torch.tensor([7, 0, 2] if not heads_first else [7, 9])
    given = {"positions": positions, "rotary_dim": 4, "heads_first": heads_first}
    assert torch.autograd.gradcheck(lambda q: function(q, **given), (q,))
    assert torch.autograd.gradcheck(lambda q, k: function(q, k, **given), (q, k))
    assert torch.autograd.gradcheck(lambda k: function(q.detach(), k, **given), (k,))


REDUCED = {
    "max": lambda x: reduce.max(x, 1), "min": lambda x: reduce.min(x, (0, 2), keepdims=True), "prod": reduce.prod,
    "prod of columns": lambda x: reduce.prod(x, 0), "l1": lambda x: reduce.norm(x, 1, -1), "l2": reduce.norm,
    "largest": lambda x: reduce.norm(x, float("inf"), 1),
}


@pytest.mark.parametrize("name", REDUCED)
def test_gradients_of_reductions(name: str) -> None:
    assert torch.autograd.gradcheck(REDUCED[name], (double(2, 3, 4),))


def test_ties_share_a_gradient_as_those_of_torch() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]], requires_grad=True)
    grads = [torch.autograd.grad(f(x).sum(), x)[0] for f in (lambda x: reduce.max(x, 1), lambda x: torch.amax(x, 1))]
    torch.testing.assert_close(*grads)
    zeros = torch.tensor([0.0, 2.0, 5.0], requires_grad=True)
    for f, of_torch in ((reduce.prod, torch.prod), (reduce.norm, torch.linalg.vector_norm)):
        torch.testing.assert_close(torch.autograd.grad(f(zeros), zeros), torch.autograd.grad(of_torch(zeros), zeros))


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("transpose_w", [False, True])
def test_gradients_of_a_mixture_of_experts(renormalize: bool, transpose_w: bool) -> None:
    """A layer against the same of torch: in float32, in which the products are."""
    tokens, experts, k, depth, width = 12, 4, 2, 5, 7
    x, logits, w = torch.randn(tokens, depth), torch.randn(tokens, experts), torch.randn(experts, depth, width)
    w = w.mT.contiguous() if transpose_w else w
    grads, results = [], []
    for ours in (True, False):
        own = [t.clone().requires_grad_() for t in (x, logits, w)]
        if ours:
            weights, chosen = moe.route(own[1], k, renormalize=renormalize)
            rows, offsets, order = moe.permute(own[0], chosen, experts)
            y = moe.unpermute(moe.grouped_matmul(rows, own[2], offsets, transpose_w=transpose_w), order, weights)
        else:
            weights, chosen = torch.topk(torch.softmax(own[1], 1), k)
            weights = weights / weights.sum(1, keepdim=True) if renormalize else weights
            matrices = own[2].mT if transpose_w else own[2]
            y = torch.einsum("th,tkhn,tk->tn", own[0], matrices[chosen], weights)
        results.append(y)
        grads.append(torch.autograd.grad((y * torch.arange(width)).sum(), own))
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*grads)


def test_gradients_of_expanded_gradients() -> None:
    """What ``sum().backward()`` gives to a function is no memory of its own: each has to take it."""
    a, x = double(3, 4), double(4)
    for function, tensors in (
        (linalg.gemv, (a, x)), (linalg.transpose, (a,)), (norm.softmax, (a,)), (norm.layer_norm, (a,)),
        (elementwise.silu, (a,)), (reduce.max, (a,)), (linalg.matmul, (a, a.detach().mT.contiguous())),
    ):
        found = torch.autograd.grad(function(*tensors).sum(), tensors[0])[0]
        assert found.shape == tensors[0].shape and found.isfinite().all()


def test_caches_of_torch() -> None:
    k, caches = torch.randn(3, 2, 4).bfloat16(), torch.zeros(2, 4, 2, 5, 4).bfloat16()
    kv_cache.scatter(k, k + 1, caches[0], caches[1], torch.tensor([6, 1, 19]), heads_first=True)
    assert torch.equal(caches[0, 1, :, 1], k[0]) and torch.equal(caches[1, 3, :, 4], k[2] + 1)
    found, _ = kv_cache.gather(caches[0], caches[1], torch.tensor([[1, 0]]), torch.tensor([7]), heads_first=True)
    assert torch.equal(found[0, 1], k[0]) and torch.equal(found[0, 6], k[1])


def test_products_with_scales_of_blocks() -> None:
    """As ``torch._scaled_mm`` is called: b by columns, scales in pieces; of 4-bit elements two a byte."""
    codes = [torch.randint(120, 134, (rows, 3), dtype=torch.uint8) for rows in (40, 24)]
    factors = [torch.exp2(each.double() - 127).repeat_interleave(32, 1) for each in codes]
    a, b = (torch.randn(rows, 96).to(torch.float8_e4m3fn) for rows in (40, 24))
    want = (a.double() * factors[0]) @ (b.double() * factors[1]).T
    scales = [each.view(torch.float8_e8m0fnu) for each in codes]
    for given in ((scales[0], scales[1].t()), tuple(linalg.to_blocked(each).flatten() for each in scales)):
        found = linalg.scaled_matmul(a, b.t(), *given)
        assert found.dtype == torch.bfloat16
        assert (found.double() - want).abs().max() <= 2.0**-8 * want.abs().max()
    ones = torch.full((40, 32), 0x22, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    halves = torch.full((40, 4), 0.5).to(torch.float8_e4m3fn)
    assert (linalg.scaled_matmul(ones, ones.t(), halves, halves.t(), dtype=f32) == 16).all()


def test_attention() -> None:
    q, k, v = double(1, 2, 3, 16), double(1, 1, 4, 16), double(1, 1, 4, 16)
    assert torch.autograd.gradcheck(lambda *x: attention.flash_attention(*x, causal=True, scale=0.3), (q, k, v))
    assert torch.autograd.gradcheck(attention.flash_attention, (q.detach(), k, v.detach()))


def test_attention_of_packed_sequences() -> None:
    q, k, v = double(6, 2, 16), double(8, 1, 16), double(8, 1, 16)
    starts = torch.tensor([1, 3, 5], dtype=torch.int32), torch.tensor([0, 4, 7], dtype=torch.int32)

    def attend(*x: Any) -> Any:
        return attention.varlen_attention(*x, *starts, causal=True, scale=0.3)[1:5]

    assert torch.autograd.gradcheck(attend, (q, k, v))


def test_attention_of_packed_sequences_by_wgmma() -> None:
    """The backward pass takes what the forward one has recorded."""
    q, k, v = (torch.randn(shape).bfloat16().requires_grad_() for shape in ((60, 2, 64), (70, 1, 64), (70, 1, 64)))
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    gradient = torch.randn(60, 2, 64).bfloat16()
    starts = [torch.tensor(ends, dtype=torch.int32) for ends in ([0, 20, 60], [0, 25, 70])]
    for first, last, key_first, key_last in ((0, 20, 0, 25), (20, 60, 25, 70)):
        mine, theirs, values = (
            x[part].transpose(0, 1)[None] for x, part in zip(
                exact, (slice(first, last), slice(key_first, key_last), slice(key_first, key_last))
            )
        )
        wide = theirs.expand(1, 2, -1, -1), values.expand(1, 2, -1, -1)
        whole = torch.nn.functional.scaled_dot_product_attention(mine, *wide)
        whole.backward(gradient[first:last].double().transpose(0, 1)[None])
    out = attention.varlen_attention(q, k, v, *starts, tensor_cores="wgmma", max_seqlen_q=40, max_seqlen_k=45)
    for got, want in zip(torch.autograd.grad(out, (q, k, v), gradient), exact):
        assert want.grad is not None
        assert (got.double() - want.grad).abs().max() <= 1.2e-2 * want.grad.abs().max()


def test_attention_by_wgmma() -> None:
    """Its backward pass takes what the forward one has recorded, but where the same bits are wanted each time."""
    shapes = (1, 2, 40, 64), (1, 1, 50, 64), (1, 1, 50, 64)
    q, k, v = (torch.randn(shape).bfloat16().requires_grad_() for shape in shapes)
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    gradient, visible = torch.randn(1, 2, 40, 64).bfloat16(), torch.ones(40, 50, dtype=torch.bool).tril(10)
    mine, theirs, values = (x.expand(1, 2, -1, -1) for x in exact)
    attend = torch.nn.functional.scaled_dot_product_attention
    attend(mine, theirs, values, attn_mask=visible).backward(gradient.double())
    found = {}
    for same in (False, True):
        torch.use_deterministic_algorithms(same)
        try:
            out = attention.flash_attention(q, k, v, causal=True, tensor_cores="wgmma")
            found[same] = torch.autograd.grad(out, (q, k, v), gradient)
        finally:
            torch.use_deterministic_algorithms(False)
        for got, want in zip(found[same], exact):
            assert want.grad is not None
            assert (got.double() - want.grad).abs().max() <= 1.2e-2 * want.grad.abs().max()
    assert not all(torch.equal(a, b) for a, b in zip(found[False], found[True]))

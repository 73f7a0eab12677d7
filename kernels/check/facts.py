"""What each function of the library computes, and at which size the gallery forecasts it.

``python tests/bench/gallery.py`` makes docs/gallery.md of these and of the checks beside this module. Arrays are zeros
where values decide nothing of the time: no memory is touched before a kernel does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import bf16, cdiv, dtype_of, e4m3, f32
from .. import (
    attention, conv, elementwise, histogram, kv_cache, linalg, loss, moe, norm, optim, quant, random, reduce, rope,
    scan, select, sort, topk,
)
from ..blackwell import matmul as blackwell_matmul
from ..gguf import FORMATS
from ..hopper import matmul as hopper_matmul
from ..hopper import stream

__all__ = ["FACTS", "Facts"]

BF16 = dtype_of(bf16)
MILLION = 1 << 20


class Facts(NamedTuple):
    """The shapes of the ``arrays`` that a function takes and the ``formula`` of its result, in numpy's notation.

    ``run`` calls it at the ``size`` to forecast on ``gpu``; ``sample`` is that of :class:`ptxdsl.forecast`.
    """

    arrays: str
    formula: str
    size: str
    run: Callable[[], object]
    gpu: str = "h200"
    sample: int | None = None


def _zeros(dtype: Any, *shape: int) -> Any:
    return np.zeros(shape, dtype)


def _half(*shape: int) -> Any:
    return _zeros(BF16, *shape)


def _single(*shape: int) -> Any:
    return _zeros(np.float32, *shape)


def _keys(dtype: Any, count: int = MILLION) -> Any:
    """Random numbers from 0 to 199, where a kernel does what its data say."""
    return np.random.default_rng(0).integers(0, 200, count).astype(dtype)


def _attend(*, causal: bool = True, dtype: Any = BF16, tensor_cores: Any = None) -> Callable[[], object]:
    def run() -> object:
        q, (k, v) = _zeros(dtype, 1, 32, 1024, 128), _zeros(dtype, 2, 1, 8, 1024, 128)
        return attention.flash_attention(q, k, v, causal=causal, tensor_cores=tensor_cores)

    return run


def _gradients(dtype: Any) -> Callable[[], object]:
    def run() -> object:
        (q, g), (k, v) = _zeros(dtype, 2, 1, 8, 512, 128), _zeros(dtype, 2, 1, 8, 512, 128)
        return attention.flash_attention_backward(g, q, k, v, causal=True)

    return run


def _attend_fp8() -> object:
    q, (k, v) = _zeros(dtype_of(e4m3), 1, 32, 1024, 128), _zeros(dtype_of(e4m3), 2, 1, 8, 1024, 128)
    return attention.fp8_attention(q, k, v, causal=True)


def _gradients_by_wgmma() -> object:
    (q, g), (k, v) = _half(2, 1, 32, 1024, 128), _half(2, 1, 8, 1024, 128)
    return attention.flash_attention_backward(g, q, k, v, causal=True, tensor_cores="wgmma")


def _decode(name: str, batch: int, keys: int, **options: Any) -> Callable[[], object]:
    def run() -> object:
        k, v = _half(2, batch, 8, keys, 128)
        return getattr(attention, name)(_half(batch, 32, 128), k, v, keys, **options)

    return run


def _varlen(**options: Any) -> object:
    starts = np.arange(0, 2049, 512, dtype=np.int32)
    k, v = _half(2, 2048, 8, 128)
    return attention.varlen_attention(_half(2048, 32, 128), k, v, starts, starts, **options)


def _scaled() -> object:
    packed, scales = np.zeros((2048, 1024), np.uint8), np.zeros((16, 32, 512), dtype_of(e4m3))
    return linalg.scaled_matmul(packed, packed.T, scales, scales)


def _varlen_gradients(dtype: Any, **options: Any) -> Callable[[], object]:
    def run() -> object:
        starts = np.arange(0, 1025, 256, dtype=np.int32)
        q, k = np.zeros((1024, 8, 128), dtype), np.zeros((1024, 2, 128), dtype)
        return attention.varlen_attention_backward(q, q, k, k, starts, starts, causal=True, **options)

    return run


def _paged() -> object:
    table = np.arange(8 * 128, dtype=np.int32).reshape(8, 128)
    k_cache, v_cache = _half(2, 8 * 128, 16, 8, 128)
    return attention.paged_decode(_half(8, 32, 128), k_cache, v_cache, table, np.full(8, 2048, np.int32))


def _template() -> object:
    kernel = attention.template(f32, 64, 64, causal=True)
    return kernel[cdiv(2048, 64), 64](*_single(4, 2048, 64), 2048, 0.125)


def _mapped(name: str, arrays: int = 1) -> Callable[[], object]:
    return lambda: getattr(elementwise, name)(*(_half(4096, 4096) for _ in range(arrays)))


def _scatter() -> object:
    (k, v), (k_cache, v_cache) = _half(2, 4096, 8, 128), _half(2, 1024, 16, 8, 128)
    return kv_cache.scatter(k, v, k_cache, v_cache, np.arange(4096))


def _gather() -> object:
    table = np.arange(1024).reshape(8, 128)
    k_cache, v_cache = _half(2, 1024, 16, 8, 128)
    return kv_cache.gather(k_cache, v_cache, table, np.full(8, 2048), out=list(_half(2, 8, 2048, 8, 128)))


def _grouped(dtype: Any) -> Callable[[], object]:
    offsets = np.arange(0, 2049, 256)
    return lambda: moe.grouped_matmul(_zeros(dtype, 2048, 1024), _zeros(dtype, 8, 1024, 2048), offsets)


def _gated() -> object:
    logits, weights = _single(4096, 64), _single(4096, 8)
    return moe.route_backward(weights, logits, weights, np.zeros((4096, 8), np.int32))


def _grouped_gradients(dtype: Any) -> Callable[[], object]:
    offsets, needs = np.arange(0, 2049, 256), frozenset("w")
    x, w, grad = ((2048, 1024), (8, 1024, 2048), (2048, 2048))
    return lambda: moe.grouped_matmul_backward(
        _zeros(dtype, *grad), _zeros(dtype, *x), _zeros(dtype, *w), offsets, needs=needs
    )


def _weighted_loss() -> object:
    logits, target = _half(2048, 32_000), np.zeros(2048, np.int64)
    return loss.cross_entropy_with_grad(logits, target, weight=_half(32_000))


def _runs() -> object:
    x = np.sort(_keys(np.float32))
    return select.unique(x, return_inverse=True, return_counts=True, out=x.copy(), count=np.zeros(1, np.int64))


def _gguf(name: str) -> Callable[[], object]:
    made = FORMATS[name]
    weights = np.zeros((4096, 4096 // made.weights * made.nbytes), np.uint8)
    return lambda: quant.gemv(np.zeros((1, 4096), np.float16), weights, 4096, name)


def _q4k(**options: Any) -> Callable[[], object]:
    x, w = np.zeros((1, 4096), np.float16), np.zeros((4096, 4096 // 256 * 144), np.uint8)
    return lambda: quant.q4k_gemv(x, w, 4096, **options)


def _normed_q4k(**options: Any) -> Callable[[], object]:
    x, w = np.zeros((2, 1, 4096), np.float16), np.zeros((4096, 4096 // 256 * 144), np.uint8)
    return lambda: quant.rmsnorm_q4k_gemv(x[0], x[1, 0], w, 4096, **options)


def _compact() -> object:
    x = _keys(np.float32)
    return select.compact(x, x > 99, out=np.zeros_like(x), count=np.zeros(1, np.int64))


def _partition() -> object:
    x = _keys(np.int64)
    return select.partition(x, x > 99)


def _batch_norm() -> object:
    weight, bias = _half(2, 256)
    return norm.batch_norm(_half(32, 256, 28, 28), None, None, weight, bias, training=True)


def _adamw() -> object:
    param, mean, square = _single(3, 16 * MILLION)
    return optim.adamw(param, _half(16 * MILLION), mean, square, 1, copy=_half(16 * MILLION))


_QKV = "q [B, Hq, Sq, D], k, v [B, Hkv, Sk, D]"
_ATTENTION = "softmax(scale q @ kᵀ + mask) @ v"
_PACKED = "q [T, Hq, D], k, v [Tk, Hkv, D], cu_seqlens [B + 1]"
_GRADIENTS = "dv = Pᵀ @ g, dS = P (g @ vᵀ - rowsum(g out)), dq = scale dS @ k, dk = scale dSᵀ @ q"
_ONE_QUERY = "q [B, Hq, D], k, v [B, Hkv, S, D]"
_PREFILL = "32 / 8 heads, 1024 x 1024 x 128, causal"
_FLAT = "bf16, 4096 x 4096"
_PRODUCT = "a [..., M, K], b [..., K, N]"
_EPILOGUE = "activation(alpha a @ b + bias) + beta residual"

FACTS: dict[str, Facts] = {
    "attention.flash_attention": Facts(
        _QKV, _ATTENTION, f"f32, {_PREFILL}", _attend(dtype=np.float32)),
    "attention.flash_attention_wmma": Facts(
        _QKV, _ATTENTION, f"bf16, {_PREFILL}", _attend(tensor_cores=True)),
    "attention.flash_attention_backward": Facts(
        f"g as q, {_QKV}", _GRADIENTS, "f32, 8 heads, 512 x 512 x 128, causal", _gradients(np.float32)),
    "attention.flash_attention_backward_mma": Facts(
        f"g as q, {_QKV}", _GRADIENTS, "bf16, 8 heads, 512 x 512 x 128, causal", _gradients(BF16), sample=4),
    "attention.varlen_attention": Facts(
        _PACKED, f"{_ATTENTION} of each sequence",
        "bf16, 32 / 8 heads, 4 of 512 x 128", _varlen),
    "attention.varlen_attention_backward": Facts(
        f"g as q, {_PACKED}", _GRADIENTS, "f32, 8 / 2 heads, 4 of 256 x 128, causal", _varlen_gradients(np.float32)),
    "attention.varlen_attention_backward_mma": Facts(
        f"g as q, {_PACKED}", _GRADIENTS, "bf16, 8 / 2 heads, 4 of 256 x 128, causal", _varlen_gradients(BF16)),
    "attention.paged_decode": Facts(
        "q [B, Hq, D], k, v [pages, page, Hkv, D], block_table [B, n]", "softmax(scale q @ k[table]ᵀ) @ v[table]",
        "bf16, 32 / 8 heads, 8 x 2048 keys x 128", _paged),
    "attention.template": Facts("q, k, v [S, D]", _ATTENTION, "f32, 2048 x 64, causal", _template),
    "attention.decode_attention": Facts(
        _ONE_QUERY, "softmax(scale q @ kᵀ) @ v", "bf16, 32 / 8 heads, 32 x 2048 keys x 128",
        _decode("decode_attention", 32, 2048)),
    "attention.flash_decoding": Facts(
        _ONE_QUERY, "softmax(scale q @ kᵀ) @ v", "bf16, 32 / 8 heads, 1 x 32768 keys x 128",
        _decode("flash_decoding", 1, 32768)),
    "conv.conv2d": Facts(
        "x [N, C, H, W], w [O, C, R, S]", "out[n, o, y, x] = sum(x[n, :, y:y+R, x:x+S] w[o])",
        "f32, 8 x 64 x 56 x 56 with 64 x 3 x 3", lambda: conv.conv2d(_single(8, 64, 56, 56), _single(64, 64, 3, 3))),
    "conv.conv2d_16_bits": Facts(
        "x [N, C, H, W], w [O, C, R, S]", "out[n, o, y, x] = sum(x[n, :, y:y+R, x:x+S] w[o])",
        "bf16, 8 x 64 x 56 x 56 with 64 x 3 x 3", lambda: conv.conv2d(_half(8, 64, 56, 56), _half(64, 64, 3, 3))),
    "elementwise.add": Facts("x, y [...]", "x + y", _FLAT, _mapped("add", 2)),
    "elementwise.mul": Facts("x, y [...]", "x y", _FLAT, _mapped("mul", 2)),
    "elementwise.where": Facts(
        "c, x, y [...]", "x if c else y", _FLAT,
        lambda: elementwise.where(np.zeros((4096, 4096), bool), _half(4096, 4096), _half(4096, 4096))),
    "elementwise.cast": Facts(
        "x [...]", "x as another dtype", "f32 to bf16, 4096 x 4096",
        lambda: elementwise.cast(_single(4096, 4096), bf16)),
    "elementwise.relu": Facts("x [...]", "max(x, 0)", _FLAT, _mapped("relu")),
    "elementwise.sigmoid": Facts("x [...]", "1 / (1 + exp(-x))", _FLAT, _mapped("sigmoid")),
    "elementwise.tanh": Facts("x [...]", "tanh(x)", _FLAT, _mapped("tanh")),
    "elementwise.silu": Facts("x [...]", "x / (1 + exp(-x))", _FLAT, _mapped("silu")),
    "elementwise.gelu": Facts("x [...]", "x (1 + erf(x / √2)) / 2", _FLAT, _mapped("gelu")),
    "elementwise.swiglu": Facts("gate, up [...]", "silu(gate) up", _FLAT, _mapped("swiglu", 2)),
    "elementwise.geglu": Facts("gate, up [...]", "gelu(gate) up", _FLAT, _mapped("geglu", 2)),
    "histogram.histogram": Facts(
        "x [...]", "out[b] = count(edges[b] <= x < edges[b+1])", "f32, 2^20, 256 bins",
        lambda: histogram.histogram(_keys(np.float32), 256, range=(0, 256), out=np.zeros(256, np.int64))),
    "histogram.bincount": Facts(
        "x [...]", "out[b] = count(x == b)", "u8, 2^20",
        lambda: histogram.bincount(_keys(np.uint8), out=np.zeros(256, np.int64))),
    "hopper.matmul": Facts(
        "a [M, K], b [K, N]", "activation(scale a @ b + bias)", "bf16, 2048 x 2048 x 2048",
        lambda: hopper_matmul.matmul(_half(2048, 2048), _half(2048, 2048)), sample=1),
    "hopper.stream": Facts(
        "a [M, K], b [K, N]", "activation(scale a @ b + bias)", "bf16, 16 x 4096 x 7168",
        lambda: stream.matmul(_half(16, 7168), _half(7168, 4096))),
    "hopper.flash": Facts(
        _QKV, _ATTENTION, f"bf16, {_PREFILL}", _attend(tensor_cores="wgmma"), sample=4),
    "hopper.varlen": Facts(
        _PACKED, f"{_ATTENTION} of each sequence",
        "bf16, 32 / 8 heads, 4 of 512 x 128, causal", lambda: _varlen(causal=True, tensor_cores="wgmma"), sample=4),
    "hopper.decode": Facts(
        _ONE_QUERY, "softmax(scale q @ kᵀ) @ v", "bf16, 32 / 8 heads, 32 x 2048 keys x 128",
        _decode("decode_attention", 32, 2048, tensor_cores=True)),
    "hopper.flash_backward": Facts(
        f"g as q, {_QKV}", _GRADIENTS, "bf16, 32 / 8 heads, 1024 x 1024 x 128, causal, forward pass included",
        _gradients_by_wgmma, sample=4),
    "hopper.varlen_backward": Facts(
        f"g as q, {_PACKED}", _GRADIENTS, "bf16, 8 / 2 heads, 4 of 256 x 128, causal, forward pass included",
        _varlen_gradients(BF16, tensor_cores="wgmma")),
    "hopper.flash_fp8": Facts(
        f"{_QKV}, e4m3", "softmax(scale q_scale k_scale q @ kᵀ + mask) @ v v_scale", f"e4m3, {_PREFILL}",
        _attend_fp8, sample=4),
    "hopper.blackwell_scaled": Facts(
        "a [M, K / 2], b [K / 2, N], s [M, K / 16], t [K / 16, N]", "alpha (a s) @ (b t) + bias",
        "e2m1 and e4m3, 2048 x 2048 x 2048, on a B200", _scaled, gpu="b200", sample=1),
    "hopper.blackwell_matmul": Facts(
        "a [M, K], b [K, N]", "activation(scale a @ b + bias)", "bf16, 2048 x 2048 x 2048, on a B200",
        lambda: blackwell_matmul.matmul(_half(2048, 2048), _half(2048, 2048)), gpu="b200", sample=1),
    "kv_cache.scatter": Facts(
        "k, v [T, H, D], caches [pages, page, H, D], slots [T]", "cache[slots[t]] = k[t]",
        "bf16, 4096 tokens, 8 x 128", _scatter),
    "kv_cache.gather": Facts(
        "caches [pages, page, H, D], block_table [B, n], seq_lens [B]",
        "k[b, i] = cache[table[b, i // page], i % page]",
        "bf16, 8 x 2048 tokens, 8 x 128", _gather),
    "linalg.matmul": Facts(
        _PRODUCT, _EPILOGUE, "f32, 1024 x 1024 x 1024", lambda: linalg.matmul(_single(1024, 1024), _single(1024, 1024)),
        sample=1),
    "linalg.matmul_f16": Facts(
        _PRODUCT, _EPILOGUE, "bf16, 2048 x 2048 x 2048", lambda: linalg.matmul(_half(2048, 2048), _half(2048, 2048)),
        sample=1),
    "linalg.matmul_f64": Facts(
        _PRODUCT, _EPILOGUE, "f64, 1024 x 1024 x 1024",
        lambda: linalg.matmul(np.zeros((1024, 1024)), np.zeros((1024, 1024))), sample=1),
    "linalg.matmul_e4m3": Facts(
        _PRODUCT, _EPILOGUE, "e4m3, 2048 x 2048 x 2048",
        lambda: linalg.matmul(*_zeros(dtype_of(e4m3), 2, 2048, 2048), dtype=bf16), sample=1),
    "linalg.gemv": Facts(
        "a [M, K], x [K]", "alpha a @ x + beta y", "bf16, 8192 x 8192",
        lambda: linalg.gemv(_half(8192, 8192), _half(8192))),
    "linalg.transpose": Facts(
        "a [..., M, N]", "out[..., j, i] = a[..., i, j]", "f32, 4096 x 4096",
        lambda: linalg.transpose(_single(4096, 4096))),
    "loss.cross_entropy": Facts(
        "logits [N, C], target [N]", "mean(logsumexp(logits, 1) - logits[i, target[i]])", "bf16, 2048 x 32000",
        lambda: loss.cross_entropy_with_grad(_half(2048, 32_000), np.zeros(2048, np.int64))),
    "loss.cross_entropy_weighted": Facts(
        "logits [N, C], target [N], w [C]",
        "sum(w[target] (logsumexp(logits, 1) - logits[i, target[i]])) / sum(w[target])", "bf16, 2048 x 32000",
        _weighted_loss),
    "moe.route": Facts(
        "logits [T, E]", "the k greatest of softmax(logits, 1), over their sum", "f32, 4096 tokens to 8 of 64",
        lambda: moe.route(_single(4096, 64), 8)),
    "moe.route_backward": Facts(
        "g [T, k], logits [T, E], w, experts [T, k]", "dlogits[experts] = w (g - sum(g w)), else 0",
        "f32, 4096 tokens to 8 of 64", _gated),
    "moe.permute_backward": Facts(
        "g [T k, H], order [T k]", "dx[t] = sum(g[i] with order[i] // k = t)", "bf16, 2 x 512 x 1024",
        lambda: moe.permute_backward(_half(1024, 1024), np.arange(1024), 2), sample=0),
    "moe.grouped_matmul": Facts(
        "x [T, K], w [E, K, N], offsets [E + 1]", "out[t] = x[t] @ w[expert of t]",
        "bf16, 2048 x 1024 x 2048, 8 experts", _grouped(BF16), sample=1),
    "moe.grouped_matmul_f32": Facts(
        "x [T, K], w [E, K, N], offsets [E + 1]", "out[t] = x[t] @ w[expert of t]",
        "f32, 2048 x 1024 x 2048, 8 experts", _grouped(np.float32), sample=1),
    "moe.grouped_matmul_backward": Facts(
        "g [T, N], x [T, K], offsets [E + 1]", "dw[e] = x[rows of e]ᵀ @ g[rows of e]",
        "bf16, 2048 x 1024 x 2048, 8 experts", _grouped_gradients(BF16), sample=1),
    "moe.grouped_matmul_backward_f32": Facts(
        "g [T, N], x [T, K], offsets [E + 1]", "dw[e] = x[rows of e]ᵀ @ g[rows of e]",
        "f32, 2048 x 1024 x 2048, 8 experts", _grouped_gradients(np.float32), sample=1),
    "norm.rms_norm": Facts(
        "x [..., N], weight [N]", "x / √(mean(x²) + eps) weight", "bf16, 2048 x 4096",
        lambda: norm.rms_norm(_half(2048, 4096), _half(4096))),
    "norm.layer_norm": Facts(
        "x [..., N], weight, bias [N]", "(x - mean(x)) / √(var(x) + eps) weight + bias", "bf16, 2048 x 4096",
        lambda: norm.layer_norm(_half(2048, 4096), _half(4096), _half(4096))),
    "norm.fused_add_rms_norm": Facts(
        "x, residual [..., N], weight [N]", "s = x + residual, s / √(mean(s²) + eps) weight", "bf16, 2048 x 4096",
        lambda: norm.fused_add_rms_norm(_half(2048, 4096), _half(2048, 4096), _half(4096))),
    "norm.batch_norm": Facts(
        "x [N, C, ...], weight, bias [C]", "(x - mean(x)) / √(var(x) + eps) weight + bias, of a channel",
        "bf16, 32 x 256 x 28 x 28", _batch_norm),
    "norm.softmax": Facts(
        "x [..., N]", "exp(x - max(x)) / sum(exp(x - max(x)))", "bf16, 2048 x 4096",
        lambda: norm.softmax(_half(2048, 4096))),
    "norm.log_softmax": Facts(
        "x [..., N]", "x - max(x) - log(sum(exp(x - max(x))))", "bf16, 2048 x 4096",
        lambda: norm.log_softmax(_half(2048, 4096))),
    "optim.adamw": Facts(
        "param, grad, m, v [...]",
        "m = β₁ m + (1 - β₁) g, v = β₂ v + (1 - β₂) g², p = p (1 - lr λ) - lr m̂ / (√v̂ + eps)",
        "f32, bf16 gradients and copy, 2^24", _adamw),
    "optim.sgd": Facts(
        "param, grad, buffer [...]", "b = momentum b + g, p = p - lr b", "f32, 2^24",
        lambda: optim.sgd(_single(16 * MILLION), _single(16 * MILLION), _single(16 * MILLION), momentum=0.9)),
    "optim.clip_grad_norm": Facts(
        "grads, each [...]", "grad min(1, max_norm / √(sum(grad²)))", "f32, 2^24",
        lambda: optim.clip_grad_norm(_single(16 * MILLION), 1.0)),
    **{f"quant.gemv_{name}": Facts(
        f"x [M, K], w [N, K / {made.weights} * {made.nbytes}] in {name.upper()}", "x @ wᵀ", "f16, 1 x 4096 x 4096",
        _gguf(name)) for name, made in FORMATS.items()},
    "quant.q4k_gemv_int8": Facts(
        "x [M, K], w [N, K / 256 * 144] in Q4_K", "int8(x) @ wᵀ", "f16, 1 x 4096 x 4096", _q4k(activations="int8")),
    "quant.q4k_gemv": Facts(
        "x [M, K], w [N, K / 256 * 144] in Q4_K", "x @ wᵀ", "f16, 1 x 4096 x 4096", _q4k()),
    "quant.rmsnorm_q4k_gemv_int8": Facts(
        "x [M, K], gamma [K], w [N, K / 256 * 144] in Q4_K", "int8(x gamma) @ wᵀ / √(mean(x²) + eps)",
        "f16, 1 x 4096 x 4096", _normed_q4k(activations="int8")),
    "quant.rmsnorm_q4k_gemv": Facts(
        "x [M, K], gamma [K], w [N, K / 256 * 144] in Q4_K", "rms_norm(x, gamma) @ wᵀ", "f16, 1 x 4096 x 4096",
        _normed_q4k()),
    "random.philox": Facts(
        "shape", "words of Philox-4x32-10(seed, subsequence, offset + i)", "u32, 2^24",
        lambda: random.philox(16 * MILLION, 1)),
    "random.normal": Facts(
        "shape", "√(-2 log u₁) cos(2π u₂) and sin, of uniform u", "f32, 2^24",
        lambda: random.normal(16 * MILLION, 1)),
    "reduce.sum": Facts(
        "x [...], axis", "sum(x, axis)", "bf16, 4096 x 4096, axis 1", lambda: reduce.sum(_half(4096, 4096), axis=1)),
    "reduce.max": Facts(
        "x [...], axis", "max(x, axis)", "bf16, 4096 x 4096, axis 1", lambda: reduce.max(_half(4096, 4096), axis=1)),
    "reduce.argmax": Facts(
        "x [...], axis", "the first i with x[i] = max(x, axis)", "bf16, 4096 x 4096, axis 1",
        lambda: reduce.argmax(_half(4096, 4096), axis=1)),
    "reduce.max_backward": Facts(
        "g, out [...], x [...], axis", "dx = (x == out) g / count(x == out)", "bf16, 4096 x 4096, axis 1",
        lambda: reduce.max_backward(_half(4096), _half(4096, 4096), _half(4096), 1)),
    "reduce.prod_backward": Facts(
        "g [...], x [...], axis", "dx[i] = g prod(x[j] with j ≠ i)", "bf16, 4096 x 4096, axis 1",
        lambda: reduce.prod_backward(_half(4096), _half(4096, 4096), 1)),
    "reduce.norm_backward": Facts(
        "g, out [...], x [...], axis", "dx = g x / out", "bf16, 4096 x 4096, axis 1",
        lambda: reduce.norm_backward(_half(4096), _half(4096, 4096), _half(4096), 2, 1)),
    "rope.rope": Facts(
        "q [S, H, D]", "(a cos φ - b sin φ, a sin φ + b cos φ), (a, b) = q[2i], q[2i+1], φ = s θ^(-2i/D)",
        "bf16, 4096 x 32 x 128", lambda: rope.rope(_half(4096, 32, 128))),
    "rope.rope_neox": Facts(
        "q [S, H, D]", "(a cos φ - b sin φ, a sin φ + b cos φ), (a, b) = q[i], q[i+D/2], φ = s θ^(-2i/D)",
        "bf16, 4096 x 32 x 128", lambda: rope.rope_neox(_half(4096, 32, 128))),
    "scan.inclusive": Facts(
        "x [..., N]", "out[i] = x[0] + ... + x[i]", "f32, 2^20", lambda: scan.inclusive(_single(MILLION))),
    "scan.exclusive": Facts(
        "x [..., N]", "out[i] = x[0] + ... + x[i-1]", "f32, 2^20", lambda: scan.exclusive(_single(MILLION))),
    "select.compact": Facts("x, mask [N]", "x[mask]", "f32, 2^20, half of them", _compact),
    "select.unique": Facts(
        "x [N]", "the first of each run, inverse[i] = the run of x[i], lengths", "f32, 2^20", _runs),
    "select.partition": Facts(
        "x, mask [N]", "concatenate(x[mask], x[~mask])", "s64, 2^20, half of them", _partition),
    "sort.radix_sort": Facts(
        "keys [..., N]", "sort(keys), stable", "u32, 2^18", lambda: sort.radix_sort(_keys(np.uint32, MILLION // 4)),
        sample=0),
    "sort.argsort": Facts(
        "keys [..., N]", "argsort(keys), stable", "s32, 256 x 1024",
        lambda: sort.argsort(_keys(np.int32, MILLION // 4).reshape(256, 1024))),
    "topk.topk": Facts(
        "x [..., N]", "-sort(-x)[:k] and where they are", "f32, 50 of each of 256 x 4096",
        lambda: topk.topk(_keys(np.float32).reshape(256, 4096), 50)),
}
"""By ``domain.function``, as ``LIBRARY``."""

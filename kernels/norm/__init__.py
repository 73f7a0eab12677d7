"""Normalisations along an axis, forwards and backwards: RMSNorm, LayerNorm, BatchNorm, softmax."""

from .batch import batch_norm, batch_norm_backward
from .scaled import fused_add_rms_norm, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from .softmax_rows import log_softmax, log_softmax_backward, softmax, softmax_backward

__all__ = [
    "batch_norm", "batch_norm_backward", "fused_add_rms_norm", "layer_norm", "layer_norm_backward",
    "log_softmax", "log_softmax_backward", "rms_norm", "rms_norm_backward", "softmax", "softmax_backward",
]

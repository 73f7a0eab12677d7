"""Products of matrices and vectors, and transposes."""

from .products import matmul
from .scaled import scaled_matmul, to_blocked
from .transposition import transpose
from .vector import gemv

__all__ = ["gemv", "matmul", "scaled_matmul", "to_blocked", "transpose"]

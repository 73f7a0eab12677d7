"""Products of matrices and vectors, and transposes."""

from .products import matmul
from .transposition import transpose
from .vector import gemv

__all__ = ["gemv", "matmul", "transpose"]

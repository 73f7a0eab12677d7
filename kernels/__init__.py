"""The kernel library: attention and quantised matrix-vector products, written with the public API only.

In a checkout the folder is ``kernels/`` beside the package, installed it is ``ptxdsl.kernels``: another package on
PyPI is called ``kernels``.
"""

from __future__ import annotations

__all__ = ["attention", "quant"]

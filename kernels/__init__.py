"""The kernel library, written with the public API only: each module is a domain, and is loaded when it is asked for.

In a checkout the folder is ``kernels/`` beside the package, installed it is ``ptxdsl.kernels``: another package on
PyPI is called ``kernels``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = [
    "attention",
    "conv",
    "elementwise",
    "histogram",
    "kv_cache",
    "linalg",
    "loss",
    "moe",
    "norm",
    "optim",
    "quant",
    "random",
    "reduce",
    "rope",
    "scan",
    "select",
    "sort",
    "topk",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

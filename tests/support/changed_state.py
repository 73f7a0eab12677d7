"""Bodies of kernels that change state, as functions without a source file, and the check of their wrong line."""

from __future__ import annotations

from typing import Any

import pytest

from ptxdsl import LostUpdateError, Ptr, u32
from ptxdsl.language import trace

__all__ = ["check_lost"]

_SCOPE = """
import collections, contextlib, contextvars, dataclasses, enum, functools, io, itertools, queue, threading
import types, weakref
import numpy as np
from ptxdsl import Ptr, loop, otherwise, ptx, reg, u32, when

class Acc:
    def __init__(self): self.n = 0
    def __iadd__(self, other): self.n += 1; return self
    def __lshift__(self, other): self.n += 1; return self
    def __call__(self): self.n += 1; return self.n
    def __getitem__(self, key): self.n += 1; return self.n
    def __enter__(self): self.n += 1; return self
    def __exit__(self, *error): pass
    def __len__(self): return self.n
    def __iter__(self): return iter(range(self.n))
    def __getattr__(self, name): self.__dict__["n"] += 1; return 1

GG = 1
"""


def _made(body: str) -> Any:
    scope: dict[str, Any] = {"Ptr": Ptr, "u32": u32}
    exec(compile(_SCOPE, "<scope>", "exec"), scope)
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    exec(compile(f"def made(n: u32, x: Ptr[u32]):\n{lines}\n", "<body>", "exec"), scope)
    return scope["made"]


def check_lost(body: str) -> None:
    """The body must be a LostUpdateError at its line with `# wrong`."""
    marked = next(number for number, line in enumerate(body.splitlines(), 1) if "# wrong" in line)
    with pytest.raises(LostUpdateError) as caught:
        trace(_made(body))
    assert caught.value.loc is not None
    assert (caught.value.loc.file, caught.value.loc.line) == ("<body>", marked)

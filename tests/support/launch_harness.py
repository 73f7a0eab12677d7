"""Binders of arguments, and the errors of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl.errors import LaunchError
from ptxdsl.ir.signature import Signature
from ptxdsl.launch.arguments import Binder


def error_of(call: Callable[[], object]) -> LaunchError:
    """The LaunchError that a call raises; it is at the line of the call and is a ValueError."""
    with pytest.raises(LaunchError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert caught.value.loc is not None
    assert caught.value.loc.file == call.__code__.co_filename
    return caught.value


def binder(*annotations: Any, written: tuple[str, ...] = (), foreign: bool = False) -> Binder:
    """The binder of a kernel `k(a, b, ...)` with these annotations."""

    def k() -> None: ...

    names = "abcdefgh"[: len(annotations)]
    code = f"def k({', '.join(names)}): pass"
    scope: dict[str, Any] = {}
    exec(code, scope)
    scope["k"].__annotations__ = dict(zip(names, annotations))
    return Binder("k", Signature.of(scope["k"]).parameters, frozenset(written), foreign=foreign)


def readonly() -> np.ndarray:
    """An array that may not be written."""
    array = np.zeros(10, np.float32)
    array.flags.writeable = False
    return array

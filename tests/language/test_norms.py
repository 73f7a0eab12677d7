"""The kernels of the tracing benchmark: they compute what they say, and are as much work as pyptx's own."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from ptxdsl import Kernel

EACH = pytest.mark.parametrize("source", ["norms", "ports"])


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A module of tests/bench by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "bench"))
    return importlib.import_module


def launched(kernel: Kernel, block: int, *arrays: Any) -> np.ndarray:
    """What the kernel writes, a block a row of the first array."""
    result = np.full_like(arrays[0], np.nan)
    kernel.configure(len(result), block)(*arrays, result)
    return result


@EACH
@pytest.mark.parametrize("n", [512, 1536])
def test_rms_norm(source: str, n: int, module: Callable[[str], Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, n)).astype(np.float32)
    w = rng.standard_normal(n).astype(np.float32)
    wanted = x * (w / np.sqrt((x.astype(float) ** 2).mean(axis=1, keepdims=True) + 1e-6))
    found = launched(module(source).build_rms_norm(n), 128, x, w)
    assert np.abs(found - wanted).max() < 2e-6 * np.abs(wanted).max()


@EACH
@pytest.mark.parametrize(("n", "block"), [(96, 32), (1024, 512), (2048, 512)])
def test_softmax(source: str, n: int, block: int, module: Callable[[str], Any], rng: np.random.Generator) -> None:
    x = (3 * rng.standard_normal((3, n))).astype(np.float32)
    powers = np.exp(x - x.max(axis=1, keepdims=True).astype(float))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    found = launched(module(source).build_softmax(n), block, x)
    assert np.abs(found - wanted).max() < 4e-6 * wanted.max()


@pytest.mark.parametrize("n", [1024, 8192])
@pytest.mark.parametrize(("which", "blocks", "indices"), [(0, 2, 1), (1, 4, 2)])
def test_the_ports_are_pyptxs_instructions(
    which: int, blocks: int, indices: int, n: int, module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyptx")
    for name in ("jax", "jax.numpy"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    theirs = opcodes(module("peers").pyptx_examples()[which](n).ptx())
    ports = module("ports")
    ours = opcodes((ports.build_rms_norm, ports.build_softmax)[which](n).ptx())
    # A branch over nothing for each block, and a product with 1 and a sum with 0 for each index in shared memory.
    assert theirs - ours == Counter(bra=blocks, mul=indices, add=indices)
    assert not ours - theirs


def opcodes(text: str) -> Counter[str]:
    """How often each opcode stands in PTX text."""
    lines = (line.strip().removesuffix(";").split() for line in text.splitlines() if line.strip().endswith(";"))
    words = ((line[1] if line[0].startswith("@") else line[0]).split(".")[0] for line in lines)
    return Counter(word for word in words if word)

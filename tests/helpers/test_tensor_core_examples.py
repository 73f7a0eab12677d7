"""The examples of matrix products: any schedule, the sanitizer, and an assembler that has nothing to add to them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from ptxdsl.gpu.assembler import assemble_module

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = {"mma_matmul": "sm_80", "wgmma_matmul": "sm_90a", "tcgen05_matmul": "sm_100a"}


class _Configured:
    """A kernel whose launches have some options more."""

    def __init__(self, kernel: Any, options: dict[str, Any]) -> None:
        self.kernel, self.options = kernel, options

    def configure(self, *arguments: Any, **options: Any) -> Any:
        return self.kernel.configure(*arguments, **{**options, "backend": "emulator", **self.options})


@pytest.fixture(scope="module", params=NAMES)
def example(request: pytest.FixtureRequest) -> Any:
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check(example: Any, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int, int], **options: Any) -> None:
    monkeypatch.setattr(example, "matmul", _Configured(example.matmul, options))
    row = example.main(*size)
    assert row.ok, row


def test_any_schedule(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(8):
        with monkeypatch.context() as patch:
            _check(example, patch, (130, 70, 200) if seed < 2 else (70, 60, 70), seed=seed)


def test_under_the_sanitizer(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(example, monkeypatch, (70, 60, 200), sanitize="all", seed=3)


@pytest.mark.ptxas
def test_the_assembler_adds_nothing(example: Any) -> None:
    """No wait, fence or serialisation of its own (C75xx), and no spills."""
    log = assemble_module(example.matmul.ptx(), NAMES[example.__name__], options=("-v",)).log
    assert "C75" not in log
    assert "0 bytes spill stores" in log

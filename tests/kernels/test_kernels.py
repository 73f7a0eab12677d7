"""Every kernel of the repository assembles for every target that it claims, without spills; the commands work."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ptxdsl import Kernel
from ptxdsl import __main__ as command
from ptxdsl.kernels.check import LIBRARY
from ptxdsl.tuning.autotuner import Autotuned

TARGETS = ["sm_75", "sm_80", "sm_90a", "sm_100a"]
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.py"))


class Made(NamedTuple):
    """A kernel with its compile-time constants."""

    kernel: Kernel
    constants: Mapping[str, Any] = {}


def example_kernels() -> dict[str, Made]:
    """Those of the examples; tuned ones in each of their configurations."""
    found = {}
    for path in EXAMPLES:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if isinstance(value, Kernel):
                found[f"{path.stem}.{name}"] = Made(value)
            elif isinstance(value, Autotuned):
                for config in value.configs:
                    found[f"{path.stem}.{name}.{config}"] = Made(value.kernel, config.constants)
    return found


KERNELS = {kernel.entry: Made(kernel) for entry in LIBRARY.values() for kernel in entry.kernels()} | example_kernels()


def test_every_example_has_a_kernel() -> None:
    assert {name.partition(".")[0] for name in KERNELS} >= {path.stem for path in EXAMPLES}


LOWEST = {
    **{name: "sm_80" for name in KERNELS if "bf16" in name},
    "mma_matmul.matmul": "sm_80", "wgmma_matmul.matmul": "sm_90a", "tcgen05_matmul.matmul": "sm_100f",
}
"""The lowest targets of those that do not run on all; one with a letter is the only one of its family."""


def _claims(name: str, arch: str) -> bool:
    lowest = LOWEST.get(name, "sm_75")
    if lowest[-1] in "af":
        return arch[:-1] == lowest[:-1]
    return int(arch[3:].rstrip("a")) >= int(lowest[3:])


CLAIMS = [(name, arch) for name in KERNELS for arch in TARGETS if _claims(name, arch)]
MATRIX = [name for name in LOWEST if "bf16" not in name]
"""Tiles of sums live in registers."""


@pytest.mark.ptxas
@pytest.mark.parametrize(("name", "arch"), CLAIMS)
def test_assembles_without_spills(name: str, arch: str) -> None:
    kernel, constants = KERNELS[name]
    taken = kernel.attributes(arch=arch, **constants)
    assert (taken.spill_store_bytes, taken.spill_load_bytes) == (0, 0)
    assert 0 < taken.num_regs <= (168 if name in MATRIX else 128) and taken.shared_size_bytes <= 48 * 1024


@pytest.mark.parametrize("name", KERNELS)
def test_the_target_is_the_lowest_there_is(name: str) -> None:
    kernel, constants = KERNELS[name]
    assert kernel.ir(**constants).target == LOWEST.get(name, "sm_75")


@pytest.mark.parametrize("name", LIBRARY)
def test_checks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["kernels", name]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["kernel", "ran", "on", "first", "ms", "then", "ms", "error", "allowed"]
    assert row.endswith("ok")


@pytest.mark.ptxas
def test_resources(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["kernels", "decode_attention", "--resources", "sm_90a"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["kernel", "on", "sm_90a", "registers", "shared", "spilled", "instructions"]
    assert len(rows) == 4
    for row in rows:
        name, registers, shared, spilled, instructions = row.split()
        assert name.startswith("decode_attention_")
        assert 16 <= int(registers) <= 128 and int(shared) > 0 and int(spilled) == 0 and int(instructions) > 100

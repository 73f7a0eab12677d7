"""Every kernel of the repository assembles for every target that it claims, without spills; the commands work."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sampled import sampled

from ptxdsl import Kernel
from ptxdsl import __main__ as command
from ptxdsl.kernels.check import LIBRARY
from ptxdsl.tuning.autotuner import Autotuned

TARGETS = ["sm_75", "sm_80", "sm_90a", "sm_100a"]
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.py"))


class Made(NamedTuple):
    """A kernel with its compile-time constants, its lowest target, and the most registers of a thread."""

    kernel: Kernel
    constants: Mapping[str, Any] = {}
    lowest: str = "sm_75"
    registers: int = 128


LIMITS = {"mma_matmul": ("sm_80", 168), "wgmma_matmul": ("sm_90a", 168), "tcgen05_matmul": ("sm_100f", 168)}
"""Of the examples: their lowest target, and the registers of a thread, where tiles of sums live in them."""


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
                found[f"{path.stem}.{name}"] = Made(value, {}, *LIMITS.get(path.stem, ()))
            elif isinstance(value, Autotuned):
                for config in value.configs:
                    found[f"{path.stem}.{name}.{config}"] = Made(value.kernel, config.constants)
    return found


def library_kernels() -> dict[str, Made]:
    """Those of the library; bf16 needs sm_80, and clusters name their target."""
    return {
        kernel.entry: Made(kernel, {}, kernel.arch or _lowest(kernel.entry, entry.lowest), entry.registers)
        for entry in LIBRARY.values() for kernel in entry.kernels()
    }


def _lowest(name: str, lowest: str) -> str:
    return "sm_80" if "bf16" in name and lowest == "sm_75" else lowest


KERNELS = library_kernels() | example_kernels()


def test_every_example_has_a_kernel() -> None:
    assert {name.partition(".")[0] for name in KERNELS} >= {path.stem for path in EXAMPLES}


def _claims(lowest: str, arch: str) -> bool:
    if lowest[-1] in "af":
        return arch[:-1] == lowest[:-1]
    return int(arch[3:].rstrip("a")) >= int(lowest[3:])


CLAIMS = [
    pair for name, made in KERNELS.items()
    for pair in sampled(((name, arch) for arch in TARGETS if _claims(made.lowest, arch)), 1)
]
"""Each kernel on each of its targets: on one of them in a usual run."""


@pytest.mark.ptxas
@pytest.mark.parametrize(("name", "arch"), CLAIMS)
def test_assembles_without_spills(name: str, arch: str) -> None:
    kernel, constants, _, registers = KERNELS[name]
    taken = kernel.attributes(arch=arch, **constants)
    assert (taken.spill_store_bytes, taken.spill_load_bytes) == (0, 0)
    assert 0 < taken.num_regs <= registers and taken.shared_size_bytes <= 48 * 1024


@pytest.mark.parametrize("name", KERNELS)
def test_the_target_is_the_lowest_there_is(name: str) -> None:
    kernel, constants, lowest, _ = KERNELS[name]
    assert kernel.ir(**constants).target == lowest


@pytest.mark.parametrize("name", LIBRARY)
def test_checks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["kernels", name]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["kernel", "ran", "on", "first", "ms", "then", "ms", "error", "allowed"]
    assert row.endswith("ok")


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["kernels", "quant", "attention.template"]) == 0
    quant = sum(name.startswith("quant.") for name in LIBRARY)
    assert len(capsys.readouterr().out.splitlines()) == 1 + quant + 1 > 4
    for arguments in (["kernels", "softmin"], ["kernels", "softmin", "--resources", "sm_90a"]):
        assert command.main(arguments) == 2
        assert capsys.readouterr().err == f"there is no kernel softmin; there are {', '.join(LIBRARY)}\n"


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

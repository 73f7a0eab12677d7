"""The public names: all there, sorted, lazy, the same for a type checker, and none by accident."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl
from ptxdsl import errors

# What DESIGN promises, and the issues' tests use.
FRAMEWORKS = ("jax", "torch")
"""These need not be installed; tests/frameworks asks for what is made of them."""
PROMISED = """
    Array Ptr TensorMap b8 b16 b32 b64 bf16 bf16x2 f16 f16x2 f32 f64 pred s8 s16 s32 s64 tf32 u8 u16 u32 u64
    ptx ptx_kernel ptx_func reg shared dynamic_shared local const when otherwise loop break_if continue_if select label
    maximum minimum printf check load assemble use to_device empty PtxError PerformanceWarning
""".split()


@pytest.mark.parametrize("name", ptxdsl.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(ptxdsl, name) is not None


def test_promised_names_are_public() -> None:
    assert sorted(set(PROMISED) - set(ptxdsl.__all__)) == []


def test_every_error_is_public() -> None:
    assert sorted({name for name in errors.__all__ if name[0].isupper()} - set(ptxdsl.__all__)) == []


def test_names_are_unique() -> None:
    assert len(set(ptxdsl.__all__)) == len(ptxdsl.__all__)


def test_names_come_from_where_a_type_checker_looks() -> None:
    tree = ast.parse(Path(ptxdsl.__file__).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    for node in checked.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            if alias.name in FRAMEWORKS:
                continue
            if alias.name == "KernelOperand":  # what every scalar type is to a type checker
                assert isinstance(getattr(ptxdsl, alias.asname or ""), ptxdsl.ScalarType)
                continue
            value = getattr(ptxdsl, alias.name)
            if node.module is None:
                assert value is sys.modules[f"ptxdsl.{alias.name}"]
            else:
                assert value is getattr(sys.modules[f"ptxdsl.{node.module}"], alias.name)


def test_dir_has_the_submodules() -> None:
    here = {name for name in FRAMEWORKS if importlib.util.find_spec(name)}
    assert dir(ptxdsl) == sorted({*ptxdsl.__all__, *ptxdsl._SUBMODULES} - {*FRAMEWORKS} | here)
    assert {"bench", "block", "kernels", "math", "warp"} < {*dir(ptxdsl)}


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"^module 'ptxdsl' has no attribute 'saxpy'"):
        ptxdsl.saxpy  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["block", "kernels", "math", "warp"])
def test_submodules_need_no_import_of_their_own(name: str) -> None:
    code = f"import ptxdsl; print(ptxdsl.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"ptxdsl.{name}\n"


def test_star_import() -> None:
    names: dict[str, object] = {}
    exec("from ptxdsl import *", names)
    assert set(ptxdsl.__all__) <= set(names)
    assert "math" not in names

"""Launches as NVTX ranges, as a tool sees them: one that is made here, loaded by the real package as profilers are."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel
from ptxdsl.errors import ConfigError
from ptxdsl.kernel import nvtx_ranges

# The interface by which NVTX hands its functions to a tool: tables of pointers to the pointers that it calls.
TOOL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
typedef void **table;
typedef struct { size_t size; int (*functions)(int module, table **out, unsigned *count); } callbacks;
static void say(const char *what, const char *text) {
    FILE *file = fopen(getenv("RANGES"), "a");
    fprintf(file, "%s %s\n", what, text);
    fclose(file);
}
static void *create(const char *name) { say("domain", name); return strdup(name); }
static void *text(void *domain, const char *text) { return strdup(text); }
static int push(void *domain, const char *attributes) {
    say("push", *(const char **)(attributes + 40));
    return 0;
}
static int pop(void *domain) { say("pop", domain); return 0; }
int InitializeInjectionNvtx2(const void *(*exported)(uint32_t)) {
    const callbacks *found = exported(1);
    table *functions;
    unsigned count;
    if (!found->functions(5, &functions, &count)) return 0;
    *functions[4] = push;
    *functions[5] = pop;
    *functions[10] = text;
    *functions[12] = create;
    return 1;
}
"""
PROGRAM = """
import numpy as np
import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel

@ptx_kernel
def fill(x: Ptr[f32]):
    x[ptx.tid.x] = 1.0

@ptx_kernel
def fault(x: Ptr[f32]):
    x[ptx.tid.x + 99] = 1.0

x = np.zeros(32, np.float32)
with ptxdsl.use("emulator"):
    fill[1, 32](x)
    with ptxdsl.use(nvtx=True):
        for _ in range(3):
            fill[1, 32](x)
        fill[(2, 3), (4, 1, 2)](x)
        try:
            fault[1, 32](x)
        except ptxdsl.MemoryFault:
            pass
    fill[1, 32](x)
"""


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    pytest.importorskip("nvtx")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a tool for NVTX")
    (tmp_path / "tool.c").write_text(TOOL)
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "tool.c", "-o", "tool.so"], cwd=tmp_path, check=True)
    return tmp_path / "tool.so"


def ranges(tool: Path, program: str, **variables: str) -> list[str]:
    """What the tool is told of a program."""
    told = tool.parent / "ranges"
    told.write_text("")
    root = str(Path(ptxdsl.__file__).parent.parent)
    environment = {**os.environ, "NVTX_INJECTION64_PATH": str(tool), "RANGES": str(told), "PYTHONPATH": root}
    subprocess.run([sys.executable, "-W", "error", "-c", program], env={**environment, **variables}, check=True)
    return told.read_text().splitlines()


def test_what_a_tool_sees(tool: Path) -> None:
    assert ranges(tool, PROGRAM) == [
        "domain ptxdsl",
        *["push fill[1, 32]", "pop ptxdsl"] * 3,
        "push fill[(2, 3), (4, 1, 2)]", "pop ptxdsl",
        "push fault[1, 32]", "pop ptxdsl",
    ]


def test_by_the_variable(tool: Path) -> None:
    program = PROGRAM.replace("use(nvtx=True)", 'use("emulator")')
    assert [line for line in ranges(tool, program, PTXDSL_NVTX="1") if line.startswith("push")] == [
        *["push fill[1, 32]"] * 4, "push fill[(2, 3), (4, 1, 2)]", "push fault[1, 32]", "push fill[1, 32]",
    ]
    assert ranges(tool, program, PTXDSL_NVTX="0") == []


def test_without_the_package(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "nvtx":
            raise ImportError(name)
        return real(name, *rest)

    @ptx_kernel
    def fill(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    nvtx_ranges._domain.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with ptxdsl.use(nvtx=True), pytest.raises(ConfigError) as error:
        fill[1, 32](np.zeros(32, np.float32))
    assert error.value.message == "launches are to be NVTX ranges, and the package nvtx is not installed"
    assert error.value.hint == "pip install 'ptxdsl[nvtx]'"
    fill[1, 32](np.zeros(32, np.float32))

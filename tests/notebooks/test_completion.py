"""Names are offered, and nothing raises when it is only looked at: by `dir`, Tab, `inspect`, `help` and `copy`."""

from __future__ import annotations

import copy
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable
from rlcompleter import Completer
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, Event, Ptr, Stream, TraceError, f32, graph, load, local, ptx, ptx_kernel, reg, shared, u32, when, zeros,
)

pytestmark = pytest.mark.emulator
LOOKED_FOR = (
    "_repr_html_", "_repr_mimebundle_", "_ipython_display_", "_ipython_canary_method_should_not_exist_", "__wrapped__",
    "__array__", "__len__", "__name__", "__signature__", "__dataclass_fields__", "__rich_repr__", "__torch_function__",
)


def look_at(thing: Any) -> None:
    """What a shell, a notebook and an editor do with an object before anybody has called anything."""
    for name in LOOKED_FOR:
        getattr(thing, name, None)
    for name in dir(thing):
        getattr(thing, name, None)
    assert isinstance(repr(thing), str) and isinstance(str(thing), str)
    inspect.getmembers(thing)
    inspect.unwrap(thing)
    inspect.getdoc(thing)
    if callable(thing) and not isinstance(thing, type):
        inspect.signature(thing)
    pydoc.render_doc(thing)
    Completer({"thing": thing}).attr_matches("thing.")
    if not inspect.ismodule(thing):
        copy.copy(thing)


inside: list[Callable[[dict[str, Any]], None]] = []


@ptx_kernel
def scaled(n: u32, x: Ptr[f32], a: Array[f32, 2], *, factor: int = 2) -> None:
    """Multiplies."""
    for look in inside:
        look(locals())
    i = ptx.tid.x
    with when(i < n):
        x[i] = a[0, i] * factor


def things() -> dict[str, Any]:
    x, a = np.ones(32, np.float32), np.ones((2, 32), np.float32)
    with ptxdsl.use("emulator"), ptxdsl.profile() as p:
        scaled[1, 32](32, x, a)
    array = zeros((4, 4), f32, backend="emulator")
    return {
        "kernel": scaled, "launch": scaled[1, 32], "profile": p, "line": p.lines[0], "counters": p.totals,
        "array": array, "part": array[::2], "entry": load(scaled.ptx())["scaled"], "type": u32, "pointer": Ptr[f32],
        "ptx": ptx, "ld": ptx.ld, "global": ptx.ld.global_, "call": ptx.call, "components": ptx.tid,
        "compiled": scaled.compiled({}), "module": scaled.ir(), "warp": ptxdsl.warp, "kernels": ptxdsl.kernels,
    }


def test_outside_of_a_trace() -> None:
    for thing in things().values():
        look_at(thing)


def test_inside_of_a_trace() -> None:
    def look(names: dict[str, Any]) -> None:
        i = ptx.tid.x
        values = [*names.values(), i, i + 1, i < 3, ~(i < 3), shared(f32, 4), local(f32, 4), names["x"] + i]
        for thing in (*values, ptx.tid, ptx.ld.global_, scaled, scaled[1, 32], reg(u32, 0)):
            for name in LOOKED_FOR:
                getattr(thing, name, None)
            inspect.getmembers(thing)
            pydoc.render_doc(thing)
            repr(thing)

    before = scaled.ptx(factor=3)
    inside.append(look)
    try:
        assert "shared" in scaled.ptx(factor=4)
    finally:
        inside.clear()
    assert scaled.ptx(factor=3) == before


def test_tab_offers_everything() -> None:
    def offered(text: str) -> set[str]:
        return {match.rstrip("()") for match in Completer({"ptxdsl": ptxdsl, "ptx": ptx}).attr_matches(text)}

    assert {"ptxdsl.block", "ptxdsl.bench"} <= offered("ptxdsl.b")
    assert {"ptxdsl.warp", "ptxdsl.when", "ptxdsl.wgmma"} <= offered("ptxdsl.w")
    assert {"ptxdsl.kernels"} <= offered("ptxdsl.k")
    assert {"ptxdsl.kernels.attention", "ptxdsl.kernels.norm"} <= offered("ptxdsl.kernels.")
    assert {"ptx.laneid", "ptx.ld", "ptx.lg2"} <= offered("ptx.l")
    assert {"ptx.ld.global_", "ptx.ld.shared__cluster"} <= offered("ptx.ld.")
    assert {"ptx.ld.global_.f32", "ptx.ld.global_.v4"} <= offered("ptx.ld.global_.")
    assert {"ptx.tid.x", "ptx.tid.y", "ptx.tid.z"} == offered("ptx.tid.")


def test_a_special_register_outside_of_a_kernel() -> None:
    with pytest.raises(TraceError, match=r"^no kernel is being traced here\n"):
        ptx.laneid
    assert not hasattr(ptx, "laneid") and "laneid" in dir(ptx)


def test_reprs() -> None:
    found = things()
    assert repr(found["kernel"]) == "<ptx_kernel scaled(n: u32, x: Ptr[f32], a: Array[f32, 2])>"
    assert repr(found["launch"]) == "<launch scaled[(1, 1, 1), (32, 1, 1)]>"
    launch = scaled.configure(2, (8, 4), shared=64, sanitize="race", seed=3)
    assert repr(launch) == "<launch scaled[(2, 1, 1), (8, 4, 1)], shared=64, sanitize=frozenset({'race'}), seed=3>"
    assert repr(Event(timing=True)) == "Event(timing=True)"
    assert repr(Stream(backend="emulator")).startswith("Stream(device=0, handle=0x")
    with ptxdsl.use("emulator"), graph() as recorded:
        scaled[1, 1](1, zeros(1, f32), zeros((1, 1), f32))
    assert repr(recorded) == f"<graph of 1 launch on {recorded.stream!r}>"
    assert repr(found["compiled"]) == "<scaled, traced for sm_75>"


def test_help() -> None:
    def text(thing: Any) -> str:
        return pydoc.render_doc(thing, renderer=pydoc.plaintext)

    assert "Multiplies." in text(scaled) and "scaled(n: u32, x: Ptr[f32], a: Array[f32, 2])" in text(scaled)
    assert "ld.global{" in text(ptx.ld.global_) or "ld{" in text(ptx.ld.global_)
    assert "fma.rn.f32 d:f32, a:f32, b:f32, c:f32" in text(ptx.fma.rn.f32)
    assert "%tid" in text(ptx.tid)
    assert "Called, it appends the instruction" in type(ptx.add).__doc__


def test_ipython() -> None:
    pytest.importorskip("IPython", reason="IPython is not installed: it is in the extra `docs`")
    code = (
        "from IPython.core.interactiveshell import InteractiveShell; import ptxdsl; from ptxdsl import ptx; "
        "shell = InteractiveShell(); shell.push({'ptx': ptx, 'ptxdsl': ptxdsl}); "
        "print(*shell.Completer.all_completions('ptxdsl.war'), *shell.Completer.all_completions('ptx.ld.globa'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ptxdsl.warp" in done.stdout and "ptx.ld.global_" in done.stdout

"""``cp.async`` under the sanitizer: followed by compiled code, so that a pipeline costs what its accesses cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from pipelined_matmul import STAGES, TILE, pipelined_matmul

import ptxdsl
from ptxdsl import RaceError, UninitializedError, use
from ptxdsl.emulator.sanitizer.sanitizer import Sanitizer
from ptxdsl.errors import EmulationError

RNG = np.random.default_rng()
SHARED = STAGES * 2 * 4096


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One element for each time that compiled code returns to Python."""
    found: list[int] = []
    original = Sanitizer.callback

    def counted(self: Sanitizer, state: Any) -> Any:
        found.append(1)
        return original(self, state)

    monkeypatch.setattr(Sanitizer, "callback", counted)
    return found


def product(sanitize: str, **text: str) -> None:
    m, n, k = TILE, 2 * TILE, 160
    a, b = (RNG.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.empty((m, n), np.float32)
    with use("emulator"):
        matmul = ptxdsl.load(pipelined_matmul(**text))["matmul"]
        matmul.configure((n // TILE, m // TILE), 128, shared=SHARED, sanitize=sanitize)(a, b, c, n, k)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("sanitize", ["init", "race", "all"])
def test_a_pipelined_matmul_needs_no_python(sanitize: str, callbacks: list[int]) -> None:
    product(sanitize)
    assert not callbacks


@pytest.mark.parametrize(("text", "error"), [
    ({"wait": "cp.async.wait_group 2;"}, UninitializedError), ({"wait": ""}, UninitializedError),
    ({"barrier": ""}, (UninitializedError, RaceError)), ({"barrier": "bar.warp.sync -1;"}, RaceError),
])
def test_a_pipeline_without_its_synchronisation(text: dict[str, str], error: Any) -> None:
    with pytest.raises(error) as caught:
        product("all", **text)
    assert "tiles[" in str(caught.value)


STEP = "cp.async.ca.shared.global [%r10{0:+d}], [%rd0{0:+d}], 4;"
COMMIT = "cp.async.commit_group;"
BODY = """
.shared .align 16 .b8 tile[1024];
mov.u32 %r2, %tid.x; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mov.u32 %r11, tile;
mad.wide.u32 %rd0, %r2, 4, %rd0; mad.wide.u32 %rd1, %r2, 4, %rd1; mad.lo.u32 %r10, %r2, 4, %r11;
setp.lt.u32 %p0, %r2, 5;
{0}
ld.shared.u32 %r12, [%r10]; // !
st.global.u32 [%rd1], %r12; ret;
"""
RIGHT = {
    "all": (STEP, "cp.async.wait_all;"),
    "group": (STEP, COMMIT, "cp.async.wait_group 0;"),
    "a later group": (STEP, COMMIT, STEP.replace("{0", "{1"), COMMIT, "cp.async.wait_group 1;"),
    "empty groups count": (STEP, COMMIT, COMMIT, COMMIT, "cp.async.wait_group 2;"),
    "in some lanes": ("@%p0 " + STEP, "@!%p0 st.shared.u32 [%r10], 7;", "@%p0 cp.async.wait_all;"),
    "twice": (STEP, "cp.async.wait_all;", STEP, COMMIT, "cp.async.wait_all;"),
    "a wait for more than there are": (STEP, COMMIT, "cp.async.wait_group 0;", "cp.async.wait_group 3;"),
}
WRONG = {
    "no wait": (STEP, COMMIT),
    "no commit": (STEP, "cp.async.wait_group 0;"),
    "too few": (STEP, COMMIT, "cp.async.wait_group 1;"),
    "the later group": (STEP.replace("{0", "{1"), COMMIT, STEP, COMMIT, "cp.async.wait_group 1;"),
    "not in all lanes": (STEP, "@%p0 cp.async.wait_all;"),
    "again": (STEP, "cp.async.wait_all;", STEP),
    "a store before": ("st.shared.u32 [%r10], 1;", STEP, COMMIT),
}


def run(name: str, steps: tuple[str, ...]) -> np.ndarray[Any, Any]:
    x, out = RNG.integers(0, 1000, 128).astype(np.uint32), np.zeros(64, np.uint32)
    body = BODY.format("\n".join(step.format(0, 256) for step in steps))
    with use("emulator"):
        ptxdsl.load(kernel("u64 x, u64 out", body))["k"].configure(2, 64, sanitize="init")(x, out)
    return np.asarray(np.where(np.arange(64) < 5, x[:64], 7) if name == "in some lanes" else x[:64]) - out


@pytest.mark.parametrize("name", RIGHT)
def test_complete(name: str) -> None:
    assert not run(name, RIGHT[name]).any()


@pytest.mark.parametrize("name", WRONG)
def test_incomplete(name: str) -> None:
    with pytest.raises(EmulationError, match=r"load from tile\[\d+\], whose copy by thread .* is not known to be"):
        run(name, WRONG[name])

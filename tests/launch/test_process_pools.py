"""Kernels in pools of processes that Python starts in each of its ways, after launches in the parent."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
import numpy as np
import pickled_kernels
import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when

@ptx_kernel
def own(n: u32, x: Ptr[f32], y: Ptr[f32], *, power: int = 2) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        value = x[i]
        for _ in range(power - 1):
            value = value * x[i]
        y[i] = value

def powers(kernel, launch, power, x):
    y, z = np.empty_like(x), np.empty_like(x)
    kernel[-(-x.size // 64), 64](x.size, x, y, power=power)
    launch(x.size, x, z, power=power)
    assert kernel is own and (y == z).all()
    return y

def failing(number):
    pickled_kernels.failing(number)

def identity(value):
    return value

def main(method):
    rng = np.random.default_rng(int(sys.argv[2]))
    arrays = [rng.standard_normal(n).astype(np.float32) for n in (1, 63, 64, 65, 9000)]
    launch = own[200, 64]
    expected = [powers(own, launch, 3, x) for x in arrays]  # the parent has launched, and compiles beside
    work = partial(powers, own, launch, 3)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool, context.Pool(2) as other:
        for results in (pool.map(work, arrays), other.map(work, arrays)):
            for result, x, before in zip(results, arrays, expected):
                np.testing.assert_array_equal(result, x * x * x)
                np.testing.assert_array_equal(result, before)
        for number in range(3):
            for call in (lambda: pool.submit(failing, number).result(), lambda: other.apply(failing, (number,))):
                try:
                    call()
                except ptxdsl.PtxError as error:
                    here = pickled_kernels.caught(number)
                    assert type(error) is type(here) and str(error) == str(here), error
                else:
                    raise AssertionError("no error came back")
        array = ptxdsl.to_device(arrays[4], backend="emulator")
        np.testing.assert_array_equal(pool.submit(identity, array).result().numpy(), arrays[4])
        assert other.apply(identity, (own,)) is own

if __name__ == "__main__":
    main(sys.argv[1])
    print("ok")
"""


FORK = pytest.mark.emulator(reason="about forks, which cannot use a GPU that their parent uses")
METHODS = [pytest.param(each, marks=FORK if each == "fork" else ()) for each in multiprocessing.get_all_start_methods()]


@pytest.mark.processes
@pytest.mark.parametrize("method", METHODS)
def test_pools(method: str, tmp_path: Path) -> None:
    script = tmp_path / "pools.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, method, os.environ["TEST_SEED"]], env=environment, capture_output=True, text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr

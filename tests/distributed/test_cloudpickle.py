"""cloudpickle takes kernels along that other processes do not find, and they become the same PTX there."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pickled_kernels
import pytest

from ptxdsl import Array, Kernel, Ptr, Texture, f32, ptx, ptx_kernel

cloudpickle = pytest.importorskip("cloudpickle", reason="needs pip install 'ptxdsl[distributed]'")

OFFSET = 4.0


def copied(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


def with_options() -> Any:
    table = np.arange(4.0)

    def helper(value: Any) -> Any:
        return value * float(table[2]) + OFFSET

    @ptx_kernel(name="entry", arch="sm_90a", lineinfo=False, reqntid=(32, 2), maxnreg=64)
    def kernel(image: Texture, x: Array[f32, None, 8], p: Ptr[Ptr[f32]], *, n: int, m: Any = (1, 2)) -> None:
        """Its documentation."""
        for k in range(n):
            x[k, m[0]] = helper(x[k, m[1]])

    return kernel


@pytest.mark.parametrize(("kernel", "constants"), [
    (with_options(), {"n": 3}), (with_options(), {"n": 1, "m": (0, 7)}),
    (pickled_kernels.scaled_by(2.5), {}), (pickled_kernels.scaled_by(-1.0), {"times": 2}),
    (pickled_kernels.fact_by_value()[1], {}),
], ids=str)
def test_a_kernel_without_a_name_becomes_the_same_ptx(kernel: Any, constants: dict[str, Any]) -> None:
    for made in (copied(kernel), copied(copied(kernel))):
        assert made is not kernel and made.ptx(**constants) == kernel.ptx(**constants)
        assert (made.entry, made.arch, made.lineinfo) == (kernel.entry, kernel.arch, kernel.lineinfo)
        assert (made.__doc__, made.__name__, made.__module__) == (kernel.__doc__, kernel.__name__, kernel.__module__)
        assert (made.__qualname__, made.loc, repr(made)) == (kernel.__qualname__, kernel.loc, repr(kernel))
        with pytest.raises(pickle.PicklingError, match="cannot be pickled"):
            pickle.dumps(made)


def test_a_function_that_calls_itself_is_one_with_its_kernel() -> None:
    inner, outer = copied(pickled_kernels.fact_by_value())
    assert outer.function.__closure__[0].cell_contents is inner
    x = np.zeros(6, np.uint32)
    outer.configure(1, 6, backend="emulator")(x)
    assert x.tolist() == [1, 1, 2, 6, 24, 120]


@pytest.mark.parametrize("kernel", [
    pickled_kernels.saxpy, pickled_kernels.powers, pickled_kernels.Kernels.fill, pickled_kernels.other_name,
    pickled_kernels.factorial,
], ids=lambda kernel: kernel.__name__)
def test_a_kernel_of_a_module_is_the_same_unless_the_module_is_pickled_by_value(kernel: Any) -> None:
    assert copied(kernel) is kernel
    cloudpickle.register_pickle_by_value(pickled_kernels)
    try:
        made = copied(kernel)
    finally:
        cloudpickle.unregister_pickle_by_value(pickled_kernels)
    assert made is not kernel and type(made) is type(kernel)
    if isinstance(kernel, Kernel):
        constants = {"exponent": 3} if kernel is pickled_kernels.powers else {}
        assert made.ptx(**constants) == kernel.ptx(**constants)


def test_what_a_kernel_reads_goes_along_as_it_is_then() -> None:
    factor = [2.0]

    @ptx_kernel
    def scaled(x: Ptr[f32]) -> None:
        x[0] = x[0] * factor[0]

    x = np.ones(1, np.float32)
    before = cloudpickle.dumps(scaled)
    factor[0] = 5.0
    for data in (before, cloudpickle.dumps(scaled), before):
        pickle.loads(data).configure(1, 1, backend="emulator")(x)
    assert x[0] == 20.0


def test_a_launch_goes_along_with_its_kernel(rng: np.random.Generator) -> None:
    x = rng.standard_normal(40, np.float32)
    launch = pickled_kernels.scaled_by(3.0).configure(1, 32, backend="emulator", sanitize="race")
    expected, result = x.copy(), x.copy()
    launch(40, expected, times=2)  # which leaves more in the kernel than goes along
    made = copied(launch)
    assert made.config == launch.config
    made(40, result, times=2)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(result, x * np.float32(3) * np.float32(3))


MAIN = """
import sys, subprocess
import cloudpickle
import numpy as np
from ptxdsl import Ptr, ptx, ptx_func, ptx_kernel, reg, u32, when

ADDED = 7

@ptx_func
def fibonacci(n: u32) -> u32:
    result = reg(u32, n)
    with when(n > 1):
        result.set(fibonacci(n - 1) + fibonacci(n - 2))
    return result.copy()

def helper(value):
    return value + ADDED

@ptx_kernel
def own(x: Ptr[u32]) -> None:
    x[ptx.tid.x] = helper(fibonacci(ptx.tid.x))

def work():
    x = np.zeros(9, np.uint32)
    own[1, 9](x)
    return own.ptx(), x.tolist()

if __name__ == "__main__":
    here = work()
    there = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(repr(pickle.load(sys.stdin.buffer)()))"],
        input=cloudpickle.dumps(work), capture_output=True,
    )
    assert there.stdout, there.stderr.decode()
    assert eval(there.stdout) == here and here[1] == [7, 8, 8, 9, 10, 12, 15, 20, 28], (there.stdout, here)
    print("ok")
"""


@pytest.mark.parametrize("as_file", [True, False])
def test_a_kernel_in_main_goes_to_another_process(as_file: bool, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(MAIN)
    arguments = [str(script)] if as_file else ["-c", MAIN]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_a_kernel_that_comes_again_is_not_traced_again(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """A task of Dask or joblib brings its kernel each time; whatever it reads is compared."""
    traces: list[Kernel] = []
    trace = Kernel._trace
    monkeypatch.setattr(Kernel, "_trace", lambda self, *given: (traces.append(self), trace(self, *given))[1])
    factors = [2.0, 3.0]

    def helper(value: Any) -> Any:
        return value * factors[0]

    @ptx_kernel(maxntid=32)
    def scaled(x: Ptr[f32], *, times: int = 1) -> None:
        value = x[ptx.tid.x]
        for _ in range(times):
            value = helper(value)
        x[ptx.tid.x] = value

    def launched(kernel: Kernel, expected: float, **constants: int) -> int:
        x = rng.standard_normal(9, np.float32)
        result = x.copy()
        before = len(traces)
        for _ in range(2):
            kernel.configure(1, 9, backend="emulator")(result, **constants)
        np.testing.assert_array_equal(result, x * np.float32(expected) * np.float32(expected))
        return len(traces) - before

    data = cloudpickle.dumps(scaled)
    first = pickle.loads(data)
    assert [launched(first, 2.0), launched(pickle.loads(data), 2.0), launched(pickle.loads(data), 2.0)] == [1, 0, 0]
    assert [launched(pickle.loads(data), 4.0, times=2), launched(pickle.loads(data), 4.0, times=2)] == [1, 0]
    factors[0] = 5.0
    other = pickle.loads(cloudpickle.dumps(scaled))
    assert [launched(other, 5.0), launched(pickle.loads(data), 2.0), launched(first, 2.0)] == [1, 0, 0]
    cells = dict(zip(other.function.__code__.co_freevars, other.function.__closure__))
    inner = dict(zip(*(lambda f: (f.__code__.co_freevars, f.__closure__))(cells["helper"].cell_contents)))
    inner["factors"].cell_contents[0] = 7.0  # of the one that came alone
    assert [launched(other, 7.0), launched(pickle.loads(data), 2.0), launched(first, 2.0)] == [1, 0, 0]
    first.retrace()
    assert launched(pickle.loads(data), 2.0) == 1


def test_kernels_that_come_along_differ_in_their_options() -> None:
    def made(**options: Any) -> Kernel:
        @ptx_kernel(**options)
        def kernel(x: Ptr[f32]) -> None:
            x[0] = 1.0

        return kernel

    for options in ({}, {"name": "other"}, {"arch": "sm_90"}, {"lineinfo": False}, {"maxntid": 64}, {"maxntid": 32}):
        assert copied(made(**options)).ptx() == made(**options).ptx()


def test_threads_that_pickle_at_once() -> None:
    errors: list[BaseException] = []

    def work(kernel: Kernel, start: threading.Barrier) -> None:
        start.wait()
        try:
            assert pickle.loads(pickle.dumps(kernel)) is kernel
            cloudpickle.dumps(kernel)
        except BaseException as error:  # noqa: BLE001 - the test tells
            errors.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            vars(pickled_kernels.saxpy).pop("_stand_ins", None)
            start = threading.Barrier(4)
            threads = [threading.Thread(target=work, args=(pickled_kernels.saxpy, start)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not errors

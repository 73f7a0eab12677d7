"""Faults of kernels on a GPU: which launch they are laid to, and what is left working."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from driver_standin import Fault, Launched, Result, Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32
from ptxdsl.config import override
from ptxdsl.errors import DriverError, MemoryFault
from ptxdsl.gpu import device, tools
from ptxdsl.gpu.error_hints import EXPLANATIONS

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
ILLEGAL = f"CUDA_ERROR_ILLEGAL_ADDRESS (700): {EXPLANATIONS['ILLEGAL_ADDRESS']}"


def fault(_: Launched) -> None:
    raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)


def test_a_fault_is_laid_to_the_launch_in_flight(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IfQQ", fault
    saxpy[1, 32](32, 1.0, x, x)
    with pytest.raises(DriverError) as caught:
        x.numpy()
    error = caught.value
    assert error.message == (
        f"kernel `saxpy`[(1, 1, 1), (32, 1, 1)](n, a, x: float32[32], y: float32[32]) faulted: {ILLEGAL}; "
        "cuCtxSynchronize has told it"
    )
    assert error.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert error.hint == (
        '`with ptxdsl.use("emulator"):` names the thread and the line; PTXDSL_DEBUG=1 does so by itself'
    )
    assert error.loc is not None
    assert (error.loc.file, error.loc.source) == (__file__, "saxpy[1, 32](32, 1.0, x, x)")


def test_the_launch_that_meets_a_fault_is_not_blamed(cu: Standin) -> None:
    @ptx_kernel
    def innocent(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IfQQ", fault
    saxpy[1, 32](32, 1.0, x, x)
    saxpy[2, 32](7, 1.0, x, x)
    with pytest.raises(Fault):
        cu.finish_stream(0)
    cu.sticky, cu.layout = Result.CUDA_ERROR_ILLEGAL_ADDRESS, "Q"
    with pytest.raises(DriverError) as caught:
        innocent[1, 32](x)
    lines = caught.value.message.splitlines()
    assert lines[0] == "one of the 2 launches in flight faulted, the latest first:"
    assert [line.partition("]")[0] for line in lines[1:3]] == [
        "  kernel `saxpy`[(2, 1, 1), (32, 1, 1)", "  kernel `saxpy`[(1, 1, 1), (32, 1, 1)"
    ]
    assert all(f" at {__file__}:" in line for line in lines[1:3])
    with pytest.raises(DriverError) as caught:
        ptxdsl.zeros(4, f32)
    assert "GPU 0 was lost before, by this: one of the 2 launches" in caught.value.message
    assert caught.value.hint == "start the process again"


def test_launches_that_are_done_are_not_suspected(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    saxpy[2, 32](1, 1.0, x, x)
    x.numpy()
    cu.kernel = fault
    saxpy[1, 32](2, 1.0, x, x)
    with pytest.raises(DriverError, match=r"^kernel `saxpy`\[\(1, 1, 1\), \(32, 1, 1\)\]\(.*\) faulted"):
        x.numpy()


def test_launches_on_a_stream_that_is_done_are_not_suspected(cu: Standin) -> None:
    saxpy, x, streams = make_saxpy(), ptxdsl.zeros(32, f32), [ptxdsl.Stream(), ptxdsl.Stream()]
    cu.layout = "IfQQ"
    for blocks, stream in enumerate(streams, 1):
        saxpy[blocks, 32, stream](1, 1.0, x, x)
    streams[0].synchronize()
    cu.kernel = fault
    with pytest.raises(DriverError, match=r"^kernel `saxpy`\[\(2, 1, 1\), \(32, 1, 1\)\]\(.*\) faulted"):
        x.numpy()


def test_debug_does_not_blame_a_launch_for_one_before(cu: Standin) -> None:
    @ptx_kernel
    def innocent(n: u32) -> None:
        pass

    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IfQQ", fault
    saxpy[1, 32](1, 1.0, x, x)
    cu.layout = "I"
    with override(debug=True), pytest.raises(DriverError, match=r"^kernel `saxpy`\[.*\) faulted"):
        innocent[1, 1](1)


def test_arrays_die_silently_after_a_fault(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IfQQ", fault
    saxpy[1, 32](32, 1.0, x, x)
    with pytest.raises(DriverError):
        x.numpy()
    address = x.address
    before = len(cu.calls)
    del x
    gc.collect()
    assert cu.calls[before:] == []
    assert address in cu.memory


def test_a_launch_of_another_library(cu: Standin) -> None:
    x = ptxdsl.zeros(32, f32)
    cu.submit(0, lambda: fault(None))  # type: ignore[arg-type]
    with pytest.raises(DriverError, match="^a launch that ptxdsl did not make faulted: CUDA_ERROR_ILLEGAL_ADDRESS"):
        x.numpy()


def make_beyond() -> Any:
    @ptx_kernel
    def beyond(n: u32, x: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        x[i + n] = 1.0

    return beyond


def test_debug_repeats_a_launch_on_the_emulator(cu: Standin) -> None:
    x = ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IQ", fault
    with override(debug=True), pytest.raises(MemoryFault) as caught:
        make_beyond()[1, 32](7, x)
    assert caught.value.thread == (25, 0, 0)
    assert caught.value.loc is not None
    assert caught.value.loc.source == "x[i + n] = 1.0"
    assert isinstance(caught.value.__cause__, DriverError)
    blamed = "kernel `beyond`[(1, 1, 1), (32, 1, 1)](n, x: float32[32]) faulted"
    assert caught.value.__cause__.message.startswith(blamed)


def test_debug_says_where_the_emulator_finds_nothing(cu: Standin) -> None:
    x = ptxdsl.zeros(32, f32)
    cu.layout, cu.kernel = "IQ", fault
    with override(debug=True), pytest.raises(DriverError) as caught:
        make_beyond()[1, 32](0, x)
    assert caught.value.hint == (
        "the same launch on the emulator finds nothing: races depend on the GPU's schedule, `seed=` tries others"
    )


def test_debug_says_what_it_cannot_copy(cu: Standin) -> None:
    @ptx_kernel
    def fill(tables: Ptr[Ptr[f32]]) -> None:
        tables[0][0] = 1.0

    cu.layout, cu.kernel = "Q", fault
    with override(debug=True), pytest.raises(DriverError) as caught:
        fill[1, 1]([ptxdsl.zeros(1, f32)])
    assert caught.value.hint == "the launch was not made again on the emulator: tables cannot be copied"


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_debug_of_a_launch_that_is_right(cu: Standin, rng: np.random.Generator) -> None:
    saxpy, x = make_saxpy(), ptxdsl.to_device(rng.random(32, np.float32))
    cu.layout = "IfQQ"
    with override(debug=True):
        for _ in range(3):
            saxpy[1, 32](32, 2.0, x, x)
            assert "cuCtxSynchronize" in cu.calls
            cu.calls.clear()


def test_results_that_the_bindings_do_not_know(cu: Standin) -> None:
    cu.fail["cuMemAllocFromPoolAsync"] = 31337
    with pytest.raises(DriverError) as caught:
        ptxdsl.zeros(4, f32)
    assert caught.value.message == "cuMemAllocFromPoolAsync: an error that these bindings do not know (31337)"


def test_a_forked_child(cu: Standin) -> None:
    x, stream = ptxdsl.to_device(np.ones(3, np.float32)), ptxdsl.Stream()
    kept = [stream.record()]
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 2)
        sys.stderr, sys.unraisablehook = os.fdopen(write, "w", closefd=False), sys.__unraisablehook__
        try:
            x.numpy()
        except DriverError as error:
            os.write(write, str(error).encode())
        kept.clear()
        del x, stream
        gc.collect()
        sys.stderr.flush()
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        text = said.read()
    assert "this process was forked from one that uses the GPU, which CUDA does not allow" in text
    assert 'hint: start processes anew: `multiprocessing.set_start_method("spawn")`, before the first of them' in text
    assert "Exception ignored" not in text
    assert x.numpy().tolist() == [1.0] * 3


PROGRAM = """
import sys
sys.path[:0] = {paths!r}
import numpy as np
from driver_standin import Fault, Result, install
from image_standin import ImageStandin
import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel

@ptx_kernel
def bad(x: Ptr[f32]):
    x[ptx.tid.x] = 1.0

def fault(_):
    raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)

with install(ImageStandin()) as cu:
    kept = [ptxdsl.zeros(4, f32) for _ in range(3)]
    texture = ptxdsl.Texture(kept[0], "linear")
    if {faults}:
        cu.layout, cu.kernel = "Q", fault
        bad[1, 4](kept[0])
        try:
            kept[0].numpy()
        except ptxdsl.DriverError:
            pass
    _ = None if {faults} else texture.handle
"""


@pytest.mark.parametrize("faults", [False, True])
def test_nothing_is_printed_at_exit(cu: Standin, faults: bool) -> None:
    support = os.path.join(os.path.dirname(__file__), os.pardir, "support")
    text = PROGRAM.format(paths=[support], faults=faults)
    environment = {**os.environ, "PTXDSL_BACKEND": "gpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_library_that_is_missing_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    def missing(name: str) -> None:
        looked.append(name)
        raise OSError(name)

    for name in [name for name in sys.modules if name.split(".")[0] == "cuda"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("ctypes.CDLL", missing)
    device.forget()
    for _ in range(3):
        assert device.unavailable() is not None
    assert len(looked) == 1
    device.forget()


PRINTS = """
import ctypes, sys, warnings
sys.path[:0] = {paths!r}
warnings.simplefilter("ignore")
import numpy as np
from driver_standin import install
from image_standin import ImageStandin
import ptxdsl
from ptxdsl import Ptr, f32, printf, ptx, ptx_kernel

@ptx_kernel
def says(x: Ptr[f32]):
    printf("kernel\\n")

with install(ImageStandin()) as cu:
    x, stream = ptxdsl.zeros(4, f32), ptxdsl.Stream()
    cu.layout, cu.kernel = "Q", lambda _: ctypes.CDLL(None).printf(b"kernel\\n")
    for wait in (x.numpy, ptxdsl.synchronize, stream.synchronize):
        says[1, 1, stream](x)
        print("before")
        wait()
        print("after")
    print("before")
    says[1, 1](np.zeros(4, np.float32))
    print("after")
"""


def test_kernels_print_in_order(cu: Standin) -> None:
    """The driver prints by C's standard output when it is waited for, Python by a buffer of its own."""
    support = os.path.join(os.path.dirname(__file__), os.pardir, "support")
    environment = {**os.environ, "PTXDSL_BACKEND": "gpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("PYTHONUNBUFFERED", None)  # which C's output would heed too
    text = PRINTS.format(paths=[support])
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["before", "kernel", "after"] * 4


def test_the_error_that_is_told_is_the_first(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)

    def load(out: int, image: int) -> None:
        raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)

    cu.__dict__["cuModuleLoadData"] = load
    with pytest.raises(DriverError, match="; cuModuleLoadData has told it"):
        saxpy[1, 32](1, 1.0, x, x)

"""The memory of GPUs: when copies are complete, from where memory is taken and when it is given back."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import driver_standin
import ml_dtypes
import numpy as np
import pytest
from driver_standin import CONTEXT, Fault, Launched, Result, Standin
from gpu_harness import make_saxpy, run_saxpy
from image_standin import ImageStandin

import ptxdsl
from ptxdsl import Ptr, bf16, f32, ptx, ptx_kernel, u32
from ptxdsl.errors import ConfigError, DriverError, LaunchError
from ptxdsl.gpu import device, tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def make_look() -> Any:
    @ptx_kernel
    def look(x: Ptr[f32], out: Ptr[f32]) -> None:
        out[ptx.tid.x] = x[ptx.tid.x]

    return look


def seen(cu: Standin, n: int) -> Callable[[Launched], None]:
    """What the GPU would do."""
    cu.layout = "QQ"

    def run(launched: Launched) -> None:
        x, out = cu.numbers(launched)
        cu.array(out, n)[:] = cu.array(x, n)

    return run


@pytest.mark.parametrize("pools", [True, False])
def test_what_the_host_wrote_is_there_on_every_stream(pools: bool, cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.has_pools, cu.kernel, values = pools, seen(cu, 100), rng.random(100, np.float32)
    stream, look = ptxdsl.Stream(), make_look()
    made: list[Callable[[], Any]] = [
        lambda: ptxdsl.to_device(values), lambda: ptxdsl.zeros(100, f32),
        lambda: ptxdsl.to_device(values[::-1]), lambda: ptxdsl.to_device(ptxdsl.to_device(values)[::-1]),
        lambda: ptxdsl.to_device(values).copy(), lambda: filled(100, values), lambda: filled(100, 2.5),
    ]
    for make in made:
        x, out = make(), ptxdsl.empty(100, f32)
        look[1, 100, stream](x, out)
        stream.synchronize()
        assert np.array_equal(cu.array(out.address, 100), x.numpy()), make


def filled(n: int, values: Any) -> Any:
    x = ptxdsl.empty(n, f32)
    x[:] = values
    return x


def test_the_first_launch_on_such_a_stream_waits_for_copies_within_the_gpu(cu: ImageStandin) -> None:
    cu.kernel, look = seen(cu, 64), make_look()
    x = ptxdsl.empty(64, f32)
    stream, out = ptxdsl.Stream(), ptxdsl.empty(64, f32)
    x[...] = 0  # these are in the order of the default stream, until a stream is used that is not
    x[1::2] = ptxdsl.to_device(np.ones(32, np.float32))
    look[1, 64, stream](x, out)
    stream.synchronize()
    assert cu.array(out.address, 64).tolist() == [0.0, 1.0] * 32
    x[:32] = x[32:]
    x[...] = 3
    look[1, 64, stream](x, out)
    stream.synchronize()
    assert cu.array(out.address, 64).tolist() == [3.0] * 64


def test_uploads_wait_for_no_kernel_and_zeros_copy_nothing(cu: ImageStandin) -> None:
    later: list[int] = []
    cu.submit(0, lambda: later.append(1))
    arrays = [ptxdsl.to_device(np.arange(5)), ptxdsl.empty(5, f32), ptxdsl.zeros(5, f32), ptxdsl.zeros(0, f32)]
    assert not later
    assert cu.calls.count("cuMemcpyHtoDAsync") == 1
    assert cu.calls.count("cuMemsetD8Async") == 1
    assert arrays[0].numpy().tolist() == [0, 1, 2, 3, 4]
    assert later
    arrays[0].copy_from(np.arange(5) * 2)
    assert arrays[0].numpy().tolist() == [0, 2, 4, 6, 8]


def test_what_is_written_again_waits_for_its_readers(cu: ImageStandin) -> None:
    """On whichever stream they are."""
    cu.kernel, look = seen(cu, 10), make_look()
    x, out = ptxdsl.to_device(np.ones(10, np.float32)), [ptxdsl.zeros(10, f32) for _ in range(3)]
    side = ptxdsl.Stream()
    look[1, 10](x, out[0])
    x[...] = 2
    look[1, 10, side](x, out[1])
    x.copy_from(np.full(10, 3, np.float32))
    look[1, 10, 0x30](x, out[2])
    x[:] = 4
    assert [each.numpy()[0] for each in out] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["default", "blocking", "thread", "own", "foreign"])
def test_memory_is_given_back_behind_the_launches_that_use_it(
    kind: str, cu: ImageStandin, rng: np.random.Generator
) -> None:
    """The stand-in fails a kernel that runs when its memory is no more."""
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    foreign = ctypes.c_uint64()
    cu.cuStreamCreateWithPriority(ctypes.addressof(foreign), 1, 0)
    for round_ in range(4):
        stream = {"default": 0, "blocking": 0x40, "thread": 2, "own": ptxdsl.Stream, "foreign": foreign.value}[kind]
        stream = stream() if callable(stream) else stream
        x, y = (ptxdsl.to_device(rng.random(32, np.float32)) for _ in range(2))
        saxpy[1, 32, stream](32, 2.0, x, y)
        before = len(cu.calls)
        del x, y
        if round_ % 2:
            del stream
        z = ptxdsl.empty(32, f32)
        waits = [call for call in cu.calls[before:] if call in ("cuMemFree", "cuCtxSynchronize")]
        assert bool(waits) == (kind == "foreign" and round_ > 0)  # the driver's way, from its first launch on
        cu.finish_all()
        del z
    assert len(cu.launches) == 4


def test_it_is_given_back_when_a_capture_is_over(cu: ImageStandin) -> None:
    own, others = ptxdsl.Stream(), [ptxdsl.zeros(8, f32) for _ in range(3)]
    with ptxdsl.graph(stream=own):
        others.pop()
        assert len(cu.memory) == 3
    others.pop()
    cu.finish_all()
    assert len(cu.memory) == 1


def test_a_graph_that_is_replayed_on_a_stream_of_another_library(cu: ImageStandin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = (ptxdsl.to_device(rng.random(32, np.float32)) for _ in range(2))
    expected = np.float32(2) * x.numpy() + y.numpy()
    with ptxdsl.graph() as g:
        saxpy[1, 32](32, 2.0, x, y)
    foreign = ctypes.c_uint64()
    cu.cuStreamCreateWithPriority(ctypes.addressof(foreign), 1, 0)
    g.replay(ptxdsl.Stream.of(foreign.value))
    seen = cu.array(y.address, 32)
    del g, x, y
    cu.finish_all()
    assert np.array_equal(seen, expected)


def test_without_pools_memory_is_taken_as_before(cu: ImageStandin) -> None:
    cu.has_pools = False
    x = ptxdsl.to_device(np.arange(7))
    assert x.numpy().tolist() == list(range(7))
    assert cu.calls.count("cuMemAlloc") == 1
    del x
    assert cu.calls.count("cuMemFree") == 1
    assert "cuMemPoolCreate" not in cu.calls


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
@pytest.mark.parametrize("blocking", [True, False])
def test_new_arrays_and_dying_ones_in_a_capture(mode: str, blocking: bool, cu: ImageStandin) -> None:
    own = ptxdsl.Stream()
    stream = 0x50 if blocking else own.handle
    old = [ptxdsl.zeros(8, f32) for _ in range(3)]
    with cu.capture(stream, mode) as capture:
        old.pop()
        x, y, z = ptxdsl.to_device(np.arange(9)), ptxdsl.zeros(4, f32), ptxdsl.managed(3, f32)
        old.pop()
        kept = ptxdsl.pinned(3, f32)
        del kept, z
        assert not capture.invalid
        assert not capture.work
    assert x.numpy().tolist() == list(range(9))
    assert y.numpy().tolist() == [0] * 4


def test_arrays_are_not_read_and_written_in_a_capture(cu: ImageStandin) -> None:
    x, y = ptxdsl.zeros(8, f32), ptxdsl.zeros(8, f32)
    with cu.capture(0x51) as capture:
        for use in uses(x, y):
            with pytest.raises(LaunchError) as caught:
                use()
            assert caught.value.message == (
                "the host reads or writes an array on the GPU while a stream is captured into a graph"
            )
            assert caught.value.hint == "do it before the capture, or after it"
            assert caught.value.loc is not None
            assert caught.value.loc.file == __file__
        assert not capture.invalid
    for use in uses(x, y):
        use()


def uses(x: Any, y: Any) -> list[Callable[[], object]]:
    return [x.numpy, lambda: x.copy_from(np.ones(8, np.float32)), lambda: x.__setitem__(0, 5.0),
            lambda: x.copy_from(y), lambda: y.__setitem__(slice(2, 4), 0), lambda: x[::2].numpy()]


# Errors


@pytest.mark.parametrize("name", ["cuMemFreeAsync", "cuStreamIsCapturing", "cuMemFree", "cuMemFreeHost"])
def test_nothing_is_said_where_the_context_is_lost(name: str, cu: ImageStandin) -> None:
    arrays = [ptxdsl.zeros(8, f32), ptxdsl.managed(8, f32), ptxdsl.pinned(8, f32)]
    cu.fail[name] = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    del arrays  # a traceback would fail the test
    cu.sticky = Result.CUDA_ERROR_ILLEGAL_ADDRESS


def test_arrays_that_live_when_the_interpreter_ends(cu: ImageStandin) -> None:
    """On a driver that fails what is called then."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(driver_standin.__file__).parent)!r})
import numpy as np, ptxdsl
from driver_standin import install
from image_standin import ImageStandin
cu = ImageStandin()
installed = install(cu)
installed.__enter__()
ptxdsl.use("gpu")
arrays = [ptxdsl.zeros(3, "f4"), ptxdsl.managed(3, "f4"), ptxdsl.pinned(3, "f4"), ptxdsl.to_device(np.ones(4))[::2]]
arrays.append(arrays)
stream = ptxdsl.Stream()
capsule = arrays[0].__dlpack__()
cu.fail.update(dict.fromkeys(["cuMemFreeAsync", "cuMemFree", "cuMemFreeHost", "cuStreamDestroy"], 4))
print("done")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("kind", ["default", "own", "foreign"])
def test_memory_that_runs_out_comes_from_what_is_not_used_any_more(kind: str, cu: ImageStandin) -> None:
    """A GPU for one array: the memory of the last one is given back when the launches that use it are done."""
    look, cu.kernel, take = make_look(), seen(cu, 10), cu.new_memory
    foreign = ctypes.c_uint64()
    cu.cuStreamCreateWithPriority(ctypes.addressof(foreign), 1, 0)
    stream = {"default": 0, "own": ptxdsl.Stream(), "foreign": foreign.value}[kind]

    def new_memory(nbytes: int, where: Any) -> int:
        if where is cu.memory and len(where) == 2:
            raise Fault(Result.CUDA_ERROR_OUT_OF_MEMORY)
        return take(nbytes, where)

    cu.new_memory = new_memory  # type: ignore[method-assign]
    out = ptxdsl.empty(10, f32)
    for value in range(4):
        x = ptxdsl.to_device(np.full(10, value, np.float32))
        look[1, 10, stream](x, out)
        del x
    assert out.numpy().tolist() == [3] * 10
    assert "cuMemPoolTrimTo" in cu.calls
    kept = ptxdsl.empty(10, f32)
    with pytest.raises(DriverError, match=r"^cuMemAlloc\w*: CUDA_ERROR_OUT_OF_MEMORY"):
        ptxdsl.empty(10, f32)
    with cu.capture(0x52), pytest.raises(DriverError, match=r"^cuMemAlloc\w*: CUDA_ERROR_OUT_OF_MEMORY"):
        ptxdsl.empty(10, f32)
    assert kept.size == 10


def test_no_memory(cu: ImageStandin) -> None:
    cu.fail["cuMemAllocFromPoolAsync"] = Result.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(DriverError, match="^cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY"):
        ptxdsl.empty(8, f32)


# Pinned and managed memory


def test_pinned_arrays(cu: ImageStandin, rng: np.random.Generator) -> None:
    x = ptxdsl.pinned((3, 5), bf16)
    assert (type(x), x.shape, x.dtype, x.flags.writeable) == (np.ndarray, (3, 5), ml_dtypes.bfloat16, True)
    assert cu.is_pinned(x.ctypes.data)
    x[:] = rng.random((3, 5)).astype(ml_dtypes.bfloat16)
    y = ptxdsl.to_device(x)
    x2 = x[1:, ::2].T
    kept = np.array(x)
    del x
    assert len(cu.pinned) == 1
    assert y.numpy().tobytes() == kept.tobytes()
    assert np.array_equal(x2, kept[1:, ::2].T)
    del x2
    assert not cu.pinned
    assert ptxdsl.pinned((0, 3), f32).shape == (0, 3)
    assert ptxdsl.pinned(3, f32, backend="emulator").ctypes.data % 256 == 0


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_pinned_arrays_in_launches(cu: ImageStandin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    for n in (100, 20_000):
        x, y = ptxdsl.pinned(n, f32), ptxdsl.pinned(n, f32)
        x[:], y[:] = rng.random(n), rng.random(n)
        expected = np.float32(2) * x + y
        saxpy[-(-n // 256), 256](n, 2.0, x, y)
        assert np.array_equal(y, expected)


def test_managed_arrays(cu: ImageStandin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = ptxdsl.managed(100, f32), ptxdsl.managed((100,), np.float32)
    here, there = np.asarray(x), np.asarray(y)
    assert here.ctypes.data == x.address
    here[:], there[:] = rng.random(100), rng.random(100)
    expected = np.float32(2) * here + there
    saxpy[1, 128](100, 2.0, x, y)
    assert np.array_equal(np.asarray(y), expected)  # which has waited
    assert not [call for call in cu.calls if call.startswith("cuMemcpy")]
    y[10:20] = 7
    assert np.array_equal(y[5:25:5].numpy(), there[5:25:5])
    y.copy_from(x)
    assert np.array_equal(there, here)
    copy = y[::-1].copy()
    del x, y
    assert "cuMemFree" not in cu.calls
    assert np.array_equal(copy.numpy(), there[::-1])
    del here, there
    assert cu.calls.count("cuMemFree") == 2


# Several GPUs


def test_arrays_on_several_gpus(cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count = 3
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    values = rng.random(60, np.float32)
    for ordinal in range(3):
        x, y = ptxdsl.to_device(values, device=ordinal), ptxdsl.zeros(60, f32, device=ordinal)
        assert (x.device, y.device, cu.places[x.address]) == (ordinal, ordinal, ordinal)
        saxpy[1, 64](60, 2.0, x, y)
        with ptxdsl.device(ordinal):
            z = ptxdsl.empty(60, f32)
        assert z.device == ordinal
        z[:] = y
        assert np.array_equal(z.numpy(), values * np.float32(2))
        assert getattr(cu.local, "context", 0) in (0, CONTEXT)
    with pytest.raises(LaunchError) as caught:
        ptxdsl.empty(3, f32, device=3)
    assert caught.value.message == "there is no GPU 3; this machine has GPUs 0 to 2"
    for wrong in (-1, True, "cuda:1"):
        with pytest.raises(LaunchError) as caught:
            ptxdsl.empty(3, f32, device=wrong)  # type: ignore[arg-type]
        assert caught.value.message == f"device is the ordinal of a GPU, not {wrong!r}"
        assert caught.value.hint == "`device=0`"
        with pytest.raises(ConfigError):
            ptxdsl.device(wrong)  # type: ignore[arg-type]


def test_a_launch_without_arrays_is_on_the_current_gpu(cu: ImageStandin) -> None:
    @ptx_kernel
    def k(n: u32) -> None:
        pass

    cu.count, cu.layout = 2, "I"
    where = []
    cu.kernel = lambda _: where.append(0)
    with ptxdsl.device(1):
        k[1, 1](1)
    assert {gpu.device for gpu in device.known()} == {1}


@pytest.mark.parametrize("pools", [True, False])
def test_copies_between_gpus(pools: bool, cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count, cu.has_pools = 2, pools
    values = rng.random((6, 7), np.float32)
    x = ptxdsl.to_device(values)
    assert x.to(device=0) is x
    y = x.to(device=1)
    assert y.device == 1
    assert np.array_equal(y.numpy(), values)
    assert cu.peers == {(1, 0)}
    assert len(cu.pool_access) == pools
    z = ptxdsl.zeros((7, 6), f32, device=1)
    z[:, ::2] = x[::2, :].T
    assert np.array_equal(z.numpy()[:, ::2], values[::2].T)
    assert not z.numpy()[:, 1::2].any()
    back = ptxdsl.to_device(z, device=0)
    assert np.array_equal(back.numpy(), z.numpy())
    assert cu.peers == {(1, 0), (0, 1)}
    assert cu.calls.count("cuCtxEnablePeerAccess") == 2
    assert getattr(cu.local, "context", 0) in (0, CONTEXT)


def test_a_copy_to_another_gpu_waits_for_what_writes_it(cu: ImageStandin) -> None:
    cu.count, cu.kernel, look = 2, seen(cu, 10), make_look()
    x, out = ptxdsl.to_device(np.ones(10, np.float32)), ptxdsl.zeros(10, f32)
    look[1, 10, ptxdsl.Stream()](x, out)
    assert out.to(1).numpy().tolist() == [1] * 10


def test_peers_that_another_library_has_let_in(cu: ImageStandin) -> None:
    cu.count, cu.peers = 2, {(1, 0)}
    assert ptxdsl.to_device(np.arange(3)).to(1).numpy().tolist() == [0, 1, 2]


class Bare:
    """An array of another library that does not say where it is."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_arrays_that_do_not_say_where_they_are(cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count = 2
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    values = rng.random(30, np.float32)
    x, y = (Bare(ptxdsl.to_device(values, device=1)) for _ in range(2))
    saxpy[1, 32](30, 2.0, x, y)
    assert np.array_equal(y.array.numpy(), np.float32(2) * values + values)
    assert {gpu.device for gpu in device.known()} == {1}


def test_the_caller_keeps_its_context(cu: ImageStandin) -> None:
    cu.count = 2
    cu.cuCtxSetCurrent(CONTEXT + 1)
    x = ptxdsl.to_device(np.arange(6), device=0)
    for use in (x.numpy, x.copy, lambda: x.to(1), lambda: x.__setitem__(0, 0), lambda: x.__setitem__(0, x[1])):
        use()
        assert cu.local.context == CONTEXT + 1
    del x
    assert cu.local.context == CONTEXT + 1

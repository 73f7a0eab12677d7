"""DLPack of arrays on a GPU: whose stream waits for whom, and who releases the memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from driver_standin import Launched, Standin
from image_standin import ImageStandin

import ptxdsl
from ptxdsl import Ptr, bf16, f32, from_dlpack, ptx, ptx_kernel
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools
from ptxdsl.launch import dlpack
from ptxdsl.launch.arrays import view

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def make_fill() -> Any:
    @ptx_kernel
    def fill(x: Ptr[f32], value: f32) -> None:
        x[ptx.tid.x] = value

    return fill


def run_fill(cu: Standin, n: int) -> Callable[[Launched], None]:
    """What the GPU would do."""
    cu.layout = "Qf"

    def run(launched: Launched) -> None:
        address, value = cu.numbers(launched)
        cu.array(address, n)[:] = value

    return run


class Consumer:
    """As another library takes a capsule: it works on its stream at once."""

    def __init__(self, cu: Standin, array: Any, stream: int | None, handle: int) -> None:
        self.capsule = array.__dlpack__(max_version=(1, 1), **({} if stream is None else {"stream": stream}))
        tensor, managed = dlpack._opened(self.capsule)
        assert managed is not None
        self.flags, self.device = managed.flags, (tensor.device_type, tensor.device_id)
        address, n, seen = tensor.data, array.size, np.empty(array.size, np.float32)
        self.seen = seen
        cu.submit(handle, lambda: np.copyto(seen, cu.array(address, n)))


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("where", ["default", "blocking"])
@pytest.mark.parametrize("stream", [None, 1, 2, "blocking", "own"])
def test_the_consumers_stream_waits(stream: Any, where: str, side: bool, cu: ImageStandin) -> None:
    fill, cu.kernel, own = make_fill(), run_fill(cu, 10), ptxdsl.Stream()
    handle = {None: 0, "blocking": 0x60, "own": own.handle}.get(stream, stream)
    x, other = ptxdsl.zeros(10, f32), ptxdsl.zeros(10, f32)
    if side:
        fill[1, 10, ptxdsl.Stream()](other, 1.0)
    fill[1, 10, 0 if where == "default" else 0x61](x, 5.0)
    given = stream if stream in (None, 1, 2) else handle
    consumer = Consumer(cu, x, given, handle)
    cu.finish_stream(handle)
    assert consumer.seen.tolist() == [5] * 10
    assert (consumer.flags, consumer.device) == (0, (2, 0))


def test_work_on_a_stream_that_waits_for_no_other(cu: ImageStandin) -> None:
    fill, cu.kernel, own = make_fill(), run_fill(cu, 10), [ptxdsl.Stream() for _ in range(2)]
    x = ptxdsl.zeros(10, f32)
    fill[1, 10, own[0]](x, 5.0)
    consumer = Consumer(cu, x, own[1].handle, own[1].handle)
    own[1].synchronize()
    assert consumer.seen.tolist() == [5] * 10


def test_no_handshake_where_none_is_wanted(cu: ImageStandin) -> None:
    x = ptxdsl.zeros(10, f32)
    before = len(cu.calls)
    x.__dlpack__(stream=-1)
    assert not [call for call in cu.calls[before:] if "Event" in call or "Synchronize" in call]
    for stream in (0, -2):
        with pytest.raises(BufferError, match=f"^stream={stream} is no stream by DLPack; 1 and 2 are the default ones"):
            x.__dlpack__(stream=stream)


@pytest.mark.parametrize("blocking", [True, False])
def test_a_stream_that_is_captured(blocking: bool, cu: ImageStandin) -> None:
    """Of what is submitted already, the graph can know nothing."""
    own, x = ptxdsl.Stream(), ptxdsl.zeros(10, f32)
    with cu.capture(0x62 if blocking else own.handle) as capture:
        capsule = x.__dlpack__(stream=0x62 if blocking else own.handle)
        assert not capture.invalid
    assert capsule is not None


def test_on_other_devices(cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count = 2
    values = rng.random(10).astype(ml_dtypes.bfloat16)
    x = ptxdsl.to_device(values, device=1)
    assert x.__dlpack_device__() == (2, 1)
    capsule = x.__dlpack__(max_version=(1, 1), dl_device=(1, 0))
    tensor, managed = dlpack._opened(capsule)
    assert managed is not None
    assert (tensor.device_type, tensor.code, tensor.bits, managed.flags) == (1, 4, 16, 2)
    y = from_dlpack(SimpleNamespace(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0)))
    assert y.backend == "emulator"
    assert y.numpy().tobytes() == values.tobytes()
    capsule = x.__dlpack__(max_version=(1, 1), dl_device=(2, 0))
    tensor, managed = dlpack._opened(capsule)
    assert managed is not None
    assert (tensor.device_type, tensor.device_id, managed.flags) == (2, 0, 2)
    for wanted in ((1, 0), (2, 0)):
        with pytest.raises(BufferError, match="as a copy only"):
            x.__dlpack__(dl_device=wanted, copy=False)
    with pytest.raises(BufferError, match=r"^an array on device \(2, 1\) cannot be given on \(10, 0\)"):
        x.__dlpack__(dl_device=(10, 0))


def test_arrays_come_back(cu: ImageStandin, rng: np.random.Generator) -> None:
    values = rng.random((4, 6)).astype(ml_dtypes.float8_e4m3fn)
    x = ptxdsl.to_device(values)
    where, y = weakref.ref(x), from_dlpack(x)[:, ::2]
    del x
    gc.collect()
    assert where() is not None
    assert y.numpy().tobytes() == values[:, ::2].tobytes()
    assert (y.backend, y.device, y.dtype) == ("gpu", 0, values.dtype)
    del y
    assert where() is None


def test_arrays_of_others_on_several_gpus(cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count = 2
    values = rng.random(5, np.float32)
    x = ptxdsl.to_device(values, device=1)
    y = from_dlpack(x)
    assert (y.device, y.address) == (1, x.address)
    z = from_dlpack(x, device=0)
    assert (z.device, z.numpy().tolist()) == (0, values.tolist())
    with pytest.raises(BufferError, match="^an array on GPU 1 is on GPU 0 as a copy only"):
        from_dlpack(x, device=0, copy=False)
    assert from_dlpack(x, copy=True).address != x.address


def test_the_cuda_array_interface(cu: ImageStandin) -> None:
    x = ptxdsl.zeros((4, 6), f32)
    assert x.__cuda_array_interface__ == {
        "shape": (4, 6), "typestr": "<f4", "data": (x.address, False), "version": 3, "strides": None, "stream": 1,
    }
    part = x[1:, ::2]
    assert part.__cuda_array_interface__["strides"] == (24, 8)
    assert part.__cuda_array_interface__["data"] == (x.address + 24, False)
    assert not hasattr(ptxdsl.zeros(3, bf16), "__cuda_array_interface__")  # it has no code for it


class JaxArray:
    """One type for arrays on the host and on a GPU, with an interface that names no stream, as JAX has it."""

    def __init__(self, array: Any) -> None:
        self.array, self.asked = array, []

    @property
    def __cuda_array_interface__(self) -> Any:
        if isinstance(self.array, np.ndarray):
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers")
        return {**self.array.__cuda_array_interface__, "version": 2}

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options.get("stream"))
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("first", ["host", "gpu"])
def test_a_type_with_arrays_on_both_sides(first: str, cu: ImageStandin) -> None:
    kind: Any = type("Array", (JaxArray,), {"__module__": "jaxlib._jax"})
    host, there = kind(np.arange(3)), kind(ptxdsl.zeros(3, f32))
    for _ in range(2):
        for each in (host, there) if first == "host" else (there, host):
            seen = view(each)
            assert seen is not None
            assert (seen.device, seen.readonly) == (None if each is host else 0, True)
            assert seen.stream == (None if each is host else 1)
    assert (host.asked, there.asked) == ([None] * 2, [1] * 2)


def test_arrays_of_others_are_copied_from(cu: ImageStandin, rng: np.random.Generator) -> None:
    cu.count = 2
    values = rng.random((3, 4), np.float32)
    x = ptxdsl.to_device(values)
    other: Any = JaxArray(x[:, ::-1])
    assert np.array_equal(ptxdsl.to_device(other).numpy(), values[:, ::-1])
    y = ptxdsl.zeros((3, 4), f32)
    y.copy_from(other)
    assert np.array_equal(y.numpy(), values[:, ::-1])
    y[1] = JaxArray(x[0])
    assert np.array_equal(y.numpy()[1], values[0])
    for place, on in [({"device": 1}, "GPU 1"), ({"backend": "emulator"}, "the emulator")]:
        z = ptxdsl.zeros((3, 4), f32, **place)  # type: ignore[arg-type]
        with pytest.raises(LaunchError) as caught:
            z.copy_from(other)
        wanted = f"JaxArray of float32, shape (3, 4) on GPU 0 cannot be copied to an array on {on}"
        assert caught.value.message.endswith(wanted)
        assert caught.value.hint == "`ptxdsl.to_device(values)` before, or `.copy_from(values.numpy())`"

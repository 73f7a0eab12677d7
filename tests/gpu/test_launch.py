"""Launches on the GPU: streams, several GPUs, tables of pointers."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from driver_standin import Launched, Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")

FIRST_STREAM = 0x51


class Foreign:
    """An array of a library that has streams."""

    def __init__(self, memory: Any, stream: int | None) -> None:
        self.memory = memory
        self.__cuda_array_interface__ = {**memory.__cuda_array_interface__, "stream": stream}


def test_streams_of_arrays_are_waited_for(cu: Standin) -> None:
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x = ptxdsl.zeros(32, f32)
    saxpy[1, 32](1, 1.0, Foreign(x, 7), Foreign(x, 8))
    assert sorted(cu.waits) == [(7, 0), (8, 0)]
    cu.waits.clear()
    saxpy[1, 32, FIRST_STREAM](1, 1.0, Foreign(x, FIRST_STREAM), Foreign(x, None))
    assert cu.waits == []
    saxpy[1, 32](1, 1.0, Foreign(x, 1), Foreign(x, None))
    assert cu.waits == []
    assert [launched.stream for launched in cu.launches] == [0, FIRST_STREAM, 0]


def test_the_current_stream_of_torch(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ptxdsl.zeros(32, f32)
    address = x.address
    current = types.SimpleNamespace(cuda_stream=0x77)
    streams = types.SimpleNamespace(current_stream=lambda _: current)
    torch = types.SimpleNamespace(_C=types.SimpleNamespace(), cuda=streams)
    monkeypatch.setitem(sys.modules, "torch", torch)
    kind = type("Tensor", (), {
        "__module__": "torch", "data_ptr": lambda _: address, "stride": lambda _: (1,), "element_size": lambda _: 4,
        "is_contiguous": lambda _: True, "get_device": lambda _: 0,
    })
    tensor: Any = kind()
    tensor.requires_grad, tensor.is_neg, tensor.is_inference = False, bool, lambda: True
    tensor.layout, tensor.dtype, tensor.shape = "torch.strided", "torch.float32", (32,)
    tensor.device = types.SimpleNamespace(type="cuda", index=0)
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    saxpy[1, 32](1, 1.0, tensor, tensor)
    current.cuda_stream = 0x78
    saxpy[1, 32](2, 1.0, tensor, tensor)
    saxpy[1, 32, 5](3, 1.0, tensor, tensor)
    assert [launched.stream for launched in cu.launches] == [0x77, 0x78, 5]
    assert [cu.numbers(launched)[0] for launched in cu.launches] == [1, 2, 3]


def test_arrays_on_two_gpus(cu: Standin) -> None:
    saxpy, cu.count = make_saxpy(), 2
    x = ptxdsl.zeros(32, f32)
    other = Foreign(x, None)
    other.device = 1  # type: ignore[attr-defined]
    with pytest.raises(LaunchError) as caught:
        saxpy[1, 32](1, 1.0, x, other)
    assert caught.value.message == (
        "argument `x` of kernel `saxpy` is on GPU 0, `y` on GPU 1; all of a launch have to be on one"
    )


@ptx_kernel
def fill(tables: Ptr[Ptr[f32]], value: f32) -> None:
    tables[ptx.ctaid.x][ptx.tid.x] = value


def test_a_table_holds_the_addresses_on_the_gpu(cu: Standin) -> None:
    def run(launched: Launched) -> None:
        table, value = cu.numbers(launched)
        for address in cu.array(table, 2, np.uint64):
            cu.array(int(address), 32)[:] = value

    cu.layout, cu.kernel = "Qf", run
    arrays = [ptxdsl.zeros(32, f32) for _ in range(2)]
    fill[2, 32](arrays, 2.5)
    assert all((array.numpy() == 2.5).all() for array in arrays)


def test_a_tensor_map_takes_no_array_of_the_host(cu: Standin) -> None:
    @ptx_kernel
    def k(m: ptxdsl.TensorMap) -> None:
        ptx.bar.sync(0)

    with pytest.raises(LaunchError) as caught:
        k[1, 32](ptxdsl.tensor_map(np.zeros((4, 32), np.float32), (1, 32)))
    assert caught.value.message == "argument `m` of kernel `k` is a tensor map of an array in host memory"
    assert caught.value.hint == "make it of `ptxdsl.to_device(array)`"
    assert not cu.launches


def test_a_table_takes_no_arrays_of_the_host(cu: Standin) -> None:
    with pytest.raises(LaunchError) as caught:
        fill[2, 32]([ptxdsl.zeros(32, f32), np.zeros(32, np.float32)], 2.5)
    assert caught.value.message == (
        "argument `tables[1]` of kernel `fill` is in host memory; the arrays of a table have to be on the GPU"
    )
    assert caught.value.hint == "`tables = [ptxdsl.to_device(array) for array in tables]`"
    assert not cu.launches


def test_a_capture_waits_for_no_stream_outside_it(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with cu.capture(7) as capture:
        saxpy[1, 32, 7](1, 1.0, Foreign(x, 8), Foreign(x, 1))
        assert not capture.invalid
    assert cu.waits == []

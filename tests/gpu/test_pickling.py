"""Device arrays and modules of a GPU are pickled by what they hold, and kernels without what they have loaded."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pickled_kernels
import pytest
from driver_standin import Standin

import ptxdsl
from ptxdsl import f32, to_device, use
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")

MODULE = """
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .b8 table[16];
.visible .entry k(.param .u64 x) { ret; }
"""


def test_a_device_array_comes_to_lie_where_launches_run(cu: Standin, rng: np.random.Generator) -> None:
    values = rng.standard_normal((3, 4), np.float32)
    array = to_device(values)
    data = pickle.dumps(array)
    for made in (pickle.loads(data), copy.deepcopy(array), copy.copy(array)):
        assert made.backend == "gpu" and made.address != array.address
        np.testing.assert_array_equal(made.numpy(), values)
    with use("emulator"):  # a process without a GPU
        made = pickle.loads(data)
    assert made.backend == "emulator"
    np.testing.assert_array_equal(made.numpy(), values)


def test_one_on_the_other_backend_stays_there(cu: Standin, rng: np.random.Generator) -> None:
    values = rng.standard_normal(5, np.float32)
    data = pickle.dumps(to_device(values, backend="emulator"))
    assert pickle.loads(data).backend == "emulator"
    with use("emulator"):
        there = pickle.dumps(to_device(values, backend="gpu"))
        assert pickle.loads(data).backend == pickle.loads(pickle.dumps(pickle.loads(data))).backend == "emulator"
        made = pickle.loads(there)
    assert made.backend == "gpu"
    np.testing.assert_array_equal(made.numpy(), values)


def test_a_gpu_that_is_not_there(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    with use("emulator"):
        there = pickle.dumps(ptxdsl.zeros(3, f32, backend="gpu"))
        monkeypatch.setattr("ptxdsl.gpu.device.unavailable", lambda: "the NVIDIA driver has no GPU")
        with pytest.raises(LaunchError, match="^the backend is gpu, and there is none: the NVIDIA driver has no GPU"):
            pickle.loads(there)


def test_a_kernel_leaves_behind_what_it_has_loaded(cu: Standin) -> None:
    cu.layout = "IfQQ"
    kernel, x = pickled_kernels.saxpy, ptxdsl.zeros(32, f32)
    before = pickle.dumps(kernel)
    launch = kernel[1, 32]
    launch(32, 1.0, x, x)
    launch(32, 1.0, x, x)
    assert pickle.dumps(kernel) == before
    pickle.loads(pickle.dumps(launch))(32, 1.0, x, x)
    assert len(cu.launches) == 3
    kernel.retrace()


def test_variables_are_read_from_the_gpu(cu: Standin, rng: np.random.Generator) -> None:
    numbers: Any = rng.integers(0, 1 << 32, 4, np.uint32)
    module = ptxdsl.load(MODULE)
    module.variables["table"] = numbers
    data = pickle.dumps(module)
    with use("emulator"):
        made = pickle.loads(data)
        assert made.variables["table"].view(np.uint32).numpy().tolist() == numbers.tolist()

"""Kernels in the processes of a Dask cluster, chunk by chunk, against numpy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pickled_kernels
import pytest

import ptxdsl.dask
from ptxdsl import Array, DeviceArray, Ptr, f32, ptx, ptx_kernel, u32, when
from ptxdsl.machine_code.host import cores
from ptxdsl.kernels import attention, quant

WHY = "needs pip install 'ptxdsl[distributed]'"
da = pytest.importorskip("dask.array", reason=WHY)
distributed = pytest.importorskip("distributed", reason=WHY)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # workers find what the tests import
    with (
        ptxdsl.dask.cluster(2, dashboard_address=":0", memory_limit="1GiB") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


@ptx_kernel
def squares(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i] * x[i]


def squares_of(x: Any) -> Any:
    y = np.empty(x.shape, np.float32)
    squares[-(-x.size // 128), 128](x.size, np.ascontiguousarray(x), y)
    return y


@pytest.mark.parametrize("chunks", [(300, 64), (97, 33), (1000, 64), (1, 64)])
def test_a_function_that_launches_is_mapped(client: Any, chunks: tuple[int, int], rng: np.random.Generator) -> None:
    x = rng.standard_normal((1000 if chunks[0] > 1 else 7, 64), np.float32)
    mapped = da.from_array(x, chunks=chunks).map_blocks(squares_of)
    assert mapped.dtype == np.float32
    np.testing.assert_array_equal(mapped.compute(), x * x)
    two = da.map_blocks(pickled_kernels.saxpy_of, 2.0, da.from_array(x, chunks=chunks), da.from_array(x, chunks=chunks))
    np.testing.assert_array_equal(two.compute(), np.float32(2) * x + x)


def test_chunks_without_elements(client: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal(100, np.float32)
    chosen = da.from_array(x, chunks=10)
    chosen = chosen[chosen > 1.5]  # whose chunks have sizes that nobody knows before
    result = da.map_blocks(pickled_kernels.saxpy_of, 1.0, chosen, chosen, dtype=np.float32).compute()
    np.testing.assert_array_equal(result, 2 * x[x > 1.5])
    with pytest.raises(ptxdsl.LaunchError) as caught:
        client.submit(squares_of, np.empty(0, np.float32)).result()
    assert caught.value.hint == "an empty array needs no launch: `if x.size:`"


def test_arrays_as_they_come_in_messages(client: Any, rng: np.random.Generator) -> None:
    """They lie at any address, and some cannot be written."""

    @ptx_kernel
    def doubled(x: Array[f32, 2], p: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.tid.x
        y[i] = x[i, 1] + p[i]

    def work(x: Any, p: Any) -> tuple[Any, bool]:
        y = np.empty(len(x), np.float32)
        doubled[1, len(x)](x, p, y)
        return y, x.flags.aligned and p.flags.aligned

    aligned = set()
    for padding in range(8):
        x, p = rng.standard_normal((2, 30), np.float32)
        given = client.scatter({"x" * (padding + 1): (x.reshape(10, 3), p)})
        for each in given.values():
            result, was = client.submit(lambda pair: work(*pair), each).result()
            np.testing.assert_array_equal(result, x.reshape(10, 3)[:, 1] + p[:10])
            aligned.add(was)
    assert False in aligned  # else this test shows nothing


def test_functions_of_the_library_are_mapped(client: Any, rng: np.random.Generator) -> None:
    q = rng.standard_normal((3, 4, 20, 32), np.float32)
    k, v = rng.standard_normal((2, 3, 2, 33, 32), np.float32)
    chunked = [da.from_array(array, chunks=(1, *array.shape[1:])) for array in (q, k, v)]
    mapped = da.map_blocks(attention.flash_attention, *chunked, causal=True, dtype=np.float32, chunks=chunked[0].chunks)
    np.testing.assert_array_equal(mapped.compute(), attention.flash_attention(q, k, v, causal=True))
    x, w = rng.standard_normal((1, 256), np.float32), quant.quantize_q4k(rng.standard_normal((90, 256)))
    parts = [client.submit(quant.q4k_gemv, x, part, len(part)) for part in np.array_split(w, 4)]
    np.testing.assert_array_equal(np.concatenate(client.gather(parts), axis=1), quant.q4k_gemv(x, w, 90))


def test_kernels_launches_and_device_arrays_are_arguments_and_results(client: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal(30, np.float32)
    kernel = pickled_kernels.scaled_by(0.5)

    def launched(launch: Any, array: Any) -> Any:
        launch(30, array)
        return array

    result = client.submit(launched, kernel[1, 32], ptxdsl.to_device(x)).result()
    assert isinstance(result, DeviceArray)
    np.testing.assert_array_equal(result.numpy(), x * np.float32(0.5))
    assert client.submit(lambda: pickled_kernels.saxpy).result() is pickled_kernels.saxpy
    assert client.submit(lambda made: made.ptx(times=3), kernel).result() == kernel.ptx(times=3)


def test_errors_come_back_as_they_are_here(client: Any) -> None:
    for number in range(3):
        with pytest.raises(ptxdsl.PtxError) as caught:
            client.submit(pickled_kernels.failing, number).result()
        here = pickled_kernels.caught(number)
        assert type(caught.value) is type(here) and str(caught.value) == str(here)


def test_each_worker_has_a_core(client: Any) -> None:
    assert set(client.run(cores).values()) == {1}
    assert set(client.nthreads().values()) == {1}


def test_each_worker_sees_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of its number; more workers than GPUs share them. What a user asks for beside that stays."""
    monkeypatch.setattr(ptxdsl.dask, "_gpus", lambda: ["2", "GPU-5a"])
    with (
        ptxdsl.dask.cluster(3, dashboard_address=":0", env={"OTHER": "set"}) as cluster,
        distributed.Client(cluster) as client,
    ):
        seen = client.run(lambda: (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["OTHER"]))
        assert sorted(seen.values()) == [("2", "set"), ("2", "set"), ("GPU-5a", "set")]


@pytest.mark.parametrize(("visible", "found"), [
    (None, ["0", "1", "2"]), ("", ["0", "1", "2"]), ("1", ["1"]), ("2, GPU-7", ["2", "GPU-7"]),
])
def test_gpus_as_cuda_names_them(visible: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SimpleNamespace(cuDeviceGetCount=lambda: (0, len(found)))
    monkeypatch.setattr(ptxdsl.dask, "import_module", {"cuda.bindings.driver": driver}.__getitem__)
    monkeypatch.setattr(ptxdsl.dask, "choose", lambda: "gpu")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert ptxdsl.dask._gpus() == found
    monkeypatch.setattr(ptxdsl.dask, "choose", lambda: "emulator")
    assert ptxdsl.dask._gpus() == []


def test_an_array_larger_than_the_memory_of_a_worker() -> None:
    script = ROOT / "examples" / "distributed" / "dask_softmax.py"
    assert len(script.read_text("utf-8").splitlines()) < 80
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", script], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100% Completed" in done.stdout and done.stdout.rstrip().endswith("ok")
    told = re.search(r"softmax of ([\d.]+) MiB by \d+ processes of ([\d.]+) MiB", done.stdout)
    assert told is not None
    array, peak = map(float, told.groups())
    assert peak < 384 < array

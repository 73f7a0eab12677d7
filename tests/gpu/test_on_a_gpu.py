"""What only a GPU can tell: ``pytest --backend gpu tests/gpu/test_on_a_gpu.py``."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from time import perf_counter
from typing import Any

import blackwell_matmul
import hopper_matmul
import ml_dtypes
import numpy as np
import pytest
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import (
    Array, Event, Ptr, Stream, Texture, cluster, dynamic_shared, f32, grid, loop, printf, ptx, ptx_kernel, u32,
)
from ptxdsl.errors import LaunchError
from ptxdsl.gpu.device import Driver

pytestmark = pytest.mark.gpu
GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.ptx"))
Rng = np.random.Generator


def test_what_the_device_tells_of_itself(gpu: Driver) -> None:
    assert gpu.name == gpu.name.strip() != ""
    assert "\0" not in gpu.name
    assert 75 <= gpu.capability < 200
    assert 48 << 10 <= gpu.shared <= 512 << 10
    assert gpu.processors > 0


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_ptx_is_loaded(gpu: Driver, path: Path) -> None:
    """By NVIDIA's assembler, and by the driver's own."""
    text, log = re.sub(r"(?m)^\s*\.(loc|file) .*\n", "", path.read_text()), bytes(4096)  # lines before the kernel's
    option = gpu.cu.CUjit_option
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    entries = re.findall(r"\.entry\s+(\w+)", text)
    assert entries
    with gpu.uncaptured():
        made = gpu.call("cuModuleLoadDataEx", text.encode() + b"\0", 2, options, [log, len(log)])
        assembled = gpu.call("cuModuleLoadData", ptxdsl.assemble(text, f"sm_{gpu.capability}"))
        for module in (made, assembled):
            for name in entries:
                assert int(gpu.call("cuModuleGetFunction", module, name.encode()))
            gpu.call("cuModuleUnload", module)


def test_much_shared_memory_then_less_then_much(gpu: Driver) -> None:
    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        tile = dynamic_shared(u32)
        tile[ptx.tid.x] = ptx.tid.x * 3
        ptx.bar.sync(0)
        x[ptx.tid.x] = tile[31 - ptx.tid.x]

    x = ptxdsl.zeros(32, u32)
    sizes = [gpu.shared, 60_000, gpu.shared, 1024, gpu.shared]
    for nbytes in sizes:
        x.copy_from(np.zeros(32, np.uint32))
        k.configure(1, 32, shared=nbytes)(x)
        assert x.numpy().tolist() == [3 * i for i in range(31, -1, -1)]


@pytest.mark.parametrize("size", [2, 8, 16])
def test_blocks_of_a_cluster_see_each_others_memory(gpu: Driver, size: int) -> None:
    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        mine = ptxdsl.shared(u32, 1)
        mine[0] = ptx.ctaid.x * 7
        cluster.sync()
        x[ptx.ctaid.x] = cluster.at(mine, (cluster.rank() + 1) % cluster.size())[0]
        cluster.sync()

    x = ptxdsl.zeros(2 * size, u32)
    try:
        k.configure(2 * size, 1, cluster=size)(x)
    except LaunchError as error:
        if size == 16 and "cluster" in error.message:
            pytest.skip(error.message)
        raise
    assert x.numpy().tolist() == [7 * (first + (i + 1) % size) for first in (0, size) for i in range(size)]


def test_all_blocks_of_a_cooperative_grid_wait_for_each_other(gpu: Driver) -> None:
    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        i = grid.rank() * ptx.ntid.x + ptx.tid.x
        with loop(3):
            other = x[grid.size() * ptx.ntid.x - 1 - i]
            grid.sync()
            x[i] = other + 1
            grid.sync()

    x = ptxdsl.to_device(np.arange(gpu.processors * 64, dtype=np.uint32))
    launch = k.configure(gpu.processors, 64, cooperative=True)
    for _ in range(2):
        launch(x)
    np.testing.assert_array_equal(x.numpy(), np.arange(x.size) + 6)


def _product(rng: Rng, launch: Any, m: int, n: int, k: int) -> None:
    a, b = (rng.integers(-4, 5, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k)))
    c = ptxdsl.zeros((m, n), f32)
    launch(ptxdsl.to_device(a), ptxdsl.to_device(b), c, backend="gpu")
    np.testing.assert_array_equal(c.numpy(), a.astype(np.float32) @ b.astype(np.float32).T)


def test_tensor_copies_and_products_of_warpgroups(gpu: Driver, rng: Rng) -> None:
    _product(rng, hopper_matmul.launch, 200, 264, 576)


def test_tensor_memory(gpu: Driver, rng: Rng) -> None:
    _product(rng, blackwell_matmul.launch, 200, 264, 576)


def test_a_copy_is_done_before_a_launch_on_another_stream(gpu: Driver) -> None:
    saxpy, n, side = make_saxpy(), 1 << 20, Stream()
    x, y = ptxdsl.zeros(n, f32), ptxdsl.zeros(n, f32)
    for i in range(1, 20):
        y.copy_from(np.zeros(n, np.float32))
        x.copy_from(np.full(n, i, np.float32))
        saxpy[n // 256, 256, side](n, 1.0, x, y)
        side.synchronize()
        assert (y.numpy() == i).all()


def test_a_graph_is_replayed(gpu: Driver, rng: Rng) -> None:
    """Also where the first launch of all is inside, and arrays are given back there."""
    saxpy, values = make_saxpy(), rng.random(1000, np.float32)
    x, y, gone = ptxdsl.to_device(values), ptxdsl.zeros(1000, f32), ptxdsl.zeros(1 << 16, f32)
    with ptxdsl.graph() as g:
        saxpy[4, 256](1000, 1.0, x, y)
        del gone
        saxpy[4, 256](1000, 2.0, x, y)
    for _ in range(3):
        g.replay()
    ptxdsl.synchronize()
    np.testing.assert_allclose(y.numpy(), 9 * values, rtol=1e-6)


def test_events_tell_the_time(gpu: Driver) -> None:
    saxpy, n = make_saxpy(), 1 << 16
    x, y, stream = ptxdsl.zeros(n, f32), ptxdsl.zeros(n, f32), Stream()
    start, end = Event(timing=True), Event(timing=True)
    start.record(stream)
    saxpy[n // 256, 256, stream](n, 1.0, x, y)
    end.record(stream)
    assert 0 <= end.since(start) < math.inf
    assert end.done


def test_printf(gpu: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    @ptx_kernel
    def k(n: u32) -> None:
        printf("thread %u of %u\n", ptx.tid.x, n)

    k[1, 4](4)
    ptxdsl.synchronize()
    assert sorted(capfd.readouterr().out.splitlines()) == [f"thread {i} of 4" for i in range(4)]


def test_linear_filtering(real_gpu: Driver, rng: Rng) -> None:
    """Where the weights are exact, the numbers are the emulator's to the bit."""
    @ptx_kernel
    def resize(image: Texture, out: Array[f32, 2], scale: f32) -> None:
        x, y = ptx.tid.x, ptx.tid.y
        out[y, x] = ptx["tex.2d.v4.f32.f32"]((image, [(i.to(f32) + 0.5) * scale for i in (x, y)]))[0]

    picture = rng.integers(0, 64, (8, 8)).astype(np.float32)
    got, want = np.empty((16, 16), np.float32), np.empty((16, 16), np.float32)
    resize[1, (16, 16)](Texture(picture, filter="linear"), got, 0.5)
    resize.configure(1, (16, 16), backend="emulator")(Texture(picture, filter="linear"), want, 0.5)
    np.testing.assert_array_equal(got, want)


def _in_a_process_of_its_own(program: str) -> str:
    """What a program says, whose context is lost."""
    head = "import numpy as np, ptxdsl\nfrom ptxdsl import Ptr, check, f32, ptx, ptx_kernel, u32\nptxdsl.use('gpu')\n"
    script = head + textwrap.dedent(program)
    command = [sys.executable, "-c", f"import linecache; source = {script!r}\n" + _RUN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


_RUN = """
linecache.cache['fault.py'] = len(source), None, source.splitlines(True), 'fault.py'
exec(compile(source, 'fault.py', 'exec'), {'__name__': '__main__'})
"""


def test_a_fault_names_its_kernel(real_gpu: Driver) -> None:
    said = _in_a_process_of_its_own("""
        @ptx_kernel
        def wild(x: Ptr[u32]):
            x[ptx.tid.x + (1 << 30)] = 1
        x = ptxdsl.zeros(4, u32)
        wild[1, 32](x)
        x.numpy()
    """)
    assert "DriverError" in said
    assert "wild" in said


def test_a_check_that_fails(real_gpu: Driver) -> None:
    said = _in_a_process_of_its_own("""
        @ptx_kernel
        def checked(n: u32):
            check(n > ptx.tid.x, "too many threads")
        checked[1, 4](2)
        ptxdsl.synchronize()
    """)
    assert "too many threads" in said
    assert "checked" in said


@pytest.mark.parametrize("library", ["torch", "cupy", "numba.cuda", "jax.numpy"])
def test_arrays_of_other_libraries(real_gpu: Driver, rng: Rng, library: str) -> None:
    module = pytest.importorskip(library)
    values = rng.random(100, np.float32)
    make = {
        "torch": lambda a: module.from_numpy(a).cuda(), "cupy": lambda a: module.asarray(a),
        "numba.cuda": lambda a: module.to_device(a), "jax.numpy": lambda a: module.asarray(a),
    }[library]
    y = ptxdsl.zeros(100, f32)
    make_saxpy()[1, 128](100, 2.0, make(values), y)
    np.testing.assert_allclose(y.numpy(), 2 * values, rtol=1e-6)


def test_what_a_launch_costs(real_gpu: Driver, record_property: Any) -> None:
    """Nothing is wanted of it: the numbers go into the report (``--junit-xml``), and are shown with ``-rP``."""
    saxpy, x, y = make_saxpy(), ptxdsl.zeros(64, f32), ptxdsl.zeros(64, f32)
    launch, costs = saxpy.configure(1, 64), []
    for _ in range(20):
        start = perf_counter()
        for _ in range(200):
            launch(64, 1.0, x, y)
        costs.append((perf_counter() - start) / 200 * 1e6)
        ptxdsl.synchronize()
    record_property("microseconds a launch", round(float(np.median(costs)), 2))
    print(f"{np.median(costs):.2f} us a launch")

"""The short way of launches on the GPU: the same launch, while nothing that it depends on has changed."""

from __future__ import annotations

import gc
import inspect
import platform
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from driver_standin import CONTEXT, Result, Standin
from gpu_harness import make_saxpy
from short_ways import CudaArray, compared, made_ready, refuses, taken

import ptxdsl
from ptxdsl import Array, Ptr, f32, ptx, ptx_kernel, u32, use
from ptxdsl.config import observer, override
from ptxdsl.errors import DriverError, LaunchError
from ptxdsl.gpu import launch_code, tools
from ptxdsl.gpu.device import driver
from ptxdsl.kernel.dispatcher import Launch

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def filling(cu: Standin) -> tuple[Any, Any]:
    """A launch that machine code makes, and its array."""
    @ptx_kernel
    def fill(x: Ptr[u32], n: u32, *, value: int = 1) -> None:
        x[ptx.tid.x] = n + value

    cu.layout = "QI"
    x, launch = ptxdsl.empty(32, u32), fill[1, 32]
    made_ready(launch, x, 1)
    return launch, x


def test_it_launches_the_same(cu: Standin, rng: np.random.Generator) -> None:
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x, y = (ptxdsl.to_device(rng.random(64, np.float32)) for _ in range(2))
    for _ in range(20):
        n, a = int(rng.integers(2**32)), float(np.float32(rng.normal()))
        saxpy[2, 32](n, a, x, y)
        assert cu.numbers(cu.launches[-1]) == (n, a, x.address, y.address)
    launch = saxpy[2, 32]
    assert taken(launch) == 18
    wrong = ptxdsl.to_device(np.zeros(64, np.int32))
    cases: list[tuple[Any, ...]] = [(-1, 1.0, x, y), (2**32, 1.0, x, y), (1, 1e39, x, y), (1, 1.0, wrong, y), (1, 1.0)]
    for args in cases:
        refuses(cu, launch, *args)
    assert compared(cu, launch, 7, float("inf"), y, x)
    with use("emulator"), pytest.raises(LaunchError, match="is on GPU 0; the emulator works in host memory"):
        launch(7, 1.0, x, y)


def test_it_ends_where_the_driver_says_no(cu: Standin) -> None:
    launch, x = filling(cu)
    cu.fail["cuLaunchKernelEx"] = Result.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DriverError) as caught:
        launch(x, 1)
    assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
    assert caught.value.message.startswith("cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1)")
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    cu.fail["cuLaunchKernelEx"] = 4242  # which the bindings do not know
    with pytest.raises(DriverError, match="an error that these bindings do not know"):
        launch(x, 1)
    cu.fail.clear()
    before = taken(launch)
    launch(x, 1)
    assert taken(launch) == before + 1


def test_a_fault_is_laid_to_launches_of_machine_code_too(cu: Standin) -> None:
    launch, x = filling(cu)
    driver().synchronize()
    launch(x, 2)
    cu.fail["cuCtxSynchronize"] = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(DriverError) as caught:
        x.numpy()
    place = caught.value.loc
    assert place is not None
    assert (Path(place.file).name, place.source) == ("short_ways.py", "launch(*args, **named)")
    assert caught.value.message == (
        f"kernel `fill`[(1, 1, 1), (32, 1, 1)](x, n), like the one at {place.file}:{place.line} of "
        "(x: uint32[32], n), faulted: CUDA_ERROR_ILLEGAL_ADDRESS (700): a thread read or wrote where nothing is; the "
        "context is lost and the process must be restarted; cuCtxSynchronize has told it"
    )
    cu.sticky = Result.CUDA_ERROR_ILLEGAL_ADDRESS


def test_launches_in_flight_are_told_in_their_order(cu: Standin) -> None:
    launch, x = filling(cu)
    gpu = driver()
    gpu.synchronize()
    with gpu.current():
        stream = int(gpu.call("cuStreamCreate", 1))
    other = launch.kernel[3, 32, stream]
    made_ready(other, x, 1)
    gpu.synchronize()
    for each in (launch, other, other):
        each(x, 1)
    launch.long_way(x, 1)
    grids = [each.geometry.grid[0] for each in gpu.in_flight._all()]
    assert grids == [1, 3, 3, 1]
    gpu.in_flight.clear(stream)
    assert [each.geometry.grid[0] for each in gpu.in_flight._all()] == [1, 1]
    for _ in range(3000):
        launch(x, 1)
    assert len(gpu.in_flight._all()) == 1024 + 1
    gpu.in_flight.clear()
    assert gpu.in_flight._all() == []


# What it depends on


def test_constants(cu: Standin) -> None:
    launch, x = filling(cu)
    for value in (1, 2, 1, 2, 1, 2):
        launch(x, 1, value=value)
    assert len(cu.images) == 3  # one without a word, too
    for value in (1, 2):
        assert compared(cu, launch, x, 5, value=value)
        assert compared(cu, launch, x=x, n=5, value=value) or compared(cu, launch, x=x, n=5, value=value)
    before = taken(launch)
    launch(x, 1, value=3)
    assert taken(launch) == before
    assert len(cu.images) == 4


def test_true_is_not_one(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: Any) -> None:
        x[ptx.tid.x] = 5 if value is True else int(str(value).startswith("-"))

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    for value in (1, 1, 1, True, True, True, 1, 0.0, 0.0, 0.0, -0.0):
        fill[1, 32](x, value=value)
    assert len(cu.images) == 4
    assert len(set(cu.images)) == 3  # 1 and 0.0 make the same code
    assert taken(fill[1, 32]) == 3
    assert {launched.function.module for launched in cu.launches[:3]} == {cu.launches[6].function.module}


def test_parameters_by_name(cu: Standin) -> None:
    launch, x = filling(cu)
    y = ptxdsl.empty(32, u32)
    made_ready(launch, x, n=7)
    made_ready(launch, n=7, x=x)
    assert compared(cu, launch, n=9, x=y)
    assert cu.numbers(cu.launches[-1]) == (y.address, 9)
    assert compared(cu, launch, y, n=8)
    refuses(cu, launch, y, m=8, match="m")
    refuses(cu, launch, y, x=y, match="twice")
    name = "".join(chr(letter) for letter in (110,))  # another string of that value
    compared(cu, launch, y, **{name: 8})
    assert cu.numbers(cu.launches[-1]) == (y.address, 8)


def test_what_was_traced(cu: Standin) -> None:
    factor, offset = [1], 1

    def helper(i: Any, by: int = 1) -> Any:
        return i + by

    @ptx_kernel
    def fill(x: Ptr[u32]) -> None:
        x[helper(ptx.tid.x)] = factor[0] + offset

    def changes() -> Any:
        nonlocal offset, helper
        factor[0] = 5
        yield
        offset = 2
        yield
        helper.__defaults__ = (2,)
        yield
        helper.__code__ = (lambda i, by=1: i + by + 9).__code__
        yield
        helper = lambda i: i + 77  # noqa: E731
        yield
        fill.retrace()
        yield

    cu.layout = "Q"
    x, launch = ptxdsl.empty(32, u32), fill[1, 32]
    made_ready(launch, x)
    for count, _ in enumerate(changes(), 2):
        before = taken(launch)
        launch(x)
        assert taken(launch) == before
        assert len(cu.images) == count
        made_ready(launch, x)
        assert len(cu.images) == count


def test_a_kernel_that_reads_globals(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {"ptx": ptx, "Ptr": Ptr, "u32": u32, "ptx_kernel": ptx_kernel}
    source = Path(__file__).parent / "a_kernel.py"
    code = "@ptx_kernel\ndef fill(x: Ptr[u32]):\n    x[ptx.tid.x] = SCALE\n"
    names["SCALE"] = 2
    import linecache

    monkeypatch.setitem(linecache.cache, str(source), (len(code), None, code.splitlines(True), str(source)))
    exec(compile(code, str(source), "exec"), names)
    cu.layout = "Q"
    x, launch = ptxdsl.empty(32, u32), names["fill"][1, 32]
    made_ready(launch, x)
    for value in (3, 4):
        names["SCALE"] = value
        before = taken(launch)
        launch(x)
        assert taken(launch) == before
        made_ready(launch, x)
    assert len(cu.images) == 3
    del names["SCALE"]
    with pytest.raises(NameError):
        launch(x)


@pytest.mark.parametrize(("variable", "value"), [
    ("PTXDSL_BACKEND", "gpu"), ("PTXDSL_ARCH", "sm_90"), ("PTXDSL_LINEINFO", "0"), ("PTXDSL_LOG", "info"),
    ("PTXDSL_DEBUG", "1"), ("PTXDSL_LOG", "debug"),
])
def test_variables(cu: Standin, monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    launch, x = filling(cu)
    before = taken(launch)
    monkeypatch.setenv(variable, value)
    launch(x, 1)
    assert taken(launch) == before
    monkeypatch.delenv(variable)
    launch(x, 1)
    assert taken(launch) == before + 1


def test_a_launch_that_is_to_be_reported_has_no_plan(cu: Standin, capsys: pytest.CaptureFixture[str]) -> None:
    launch, x = filling(cu)
    before = taken(launch)
    with override(log="debug"):
        for _ in range(9):
            launch(x, 1)
    assert taken(launch) == before
    assert capsys.readouterr().err.count("launch fill") == 9


def test_settings(cu: Standin) -> None:
    launch, x = filling(cu)
    before = taken(launch)
    for _ in range(3):
        with override(arch="sm_90"):
            launch(x, 1)
        launch(x, 1)
    assert taken(launch) == before + 4  # with the settings there is a plan from the second launch on
    with override(debug=True):
        for _ in range(5):
            launch(x, 1)
    assert taken(launch) == before + 4


def test_an_observer(cu: Standin) -> None:
    launch, x = filling(cu)
    seen: list[object] = []
    before = taken(launch)
    token = observer.set(SimpleNamespace(launching=lambda *args: seen.append(args)))
    try:
        for _ in range(4):
            launch(x, 1)
    finally:
        observer.reset(token)
    assert (taken(launch), len(seen)) == (before, 4)


def test_a_launch_within_a_trace(cu: Standin) -> None:
    launch, x = filling(cu)

    @ptx_kernel
    def outer(y: Ptr[u32]) -> None:
        launch(x, 1)
        y[0] = 1

    count = len(cu.launches)
    with pytest.raises(LaunchError, match="is launched while another is traced"):
        outer.ptx()
    assert len(cu.launches) == count
    assert compared(cu, launch, x, 1)


# Streams, graphs, contexts


def test_streams(cu: Standin) -> None:
    launch, x = filling(cu)
    stream = ptxdsl.Stream()

    class Other:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.handle

    for given in (stream, Other(), stream.handle):
        made_ready(launch.kernel[1, 32, given], x, 1)
        assert cu.launches[-1].stream == stream.handle
        assert compared(cu, launch.kernel[1, 32, given], x, 1)
        made_ready(launch.kernel[1, 32, given, 0], x, 1)
    for _ in range(3):
        with stream:
            launch(x, 1)
            assert cu.launches[-1].stream == stream.handle
        launch(x, 1)
        assert cu.launches[-1].stream == 0
    with stream:
        before = taken(launch)
        launch(x, 1)
        assert taken(launch) == before + 1
    for wrong in ("stream", 1.5, True):
        with pytest.raises(LaunchError, match="stream is a CUDA stream or its handle"):
            launch.kernel[1, 32, wrong]


def test_a_launch_keeps_the_object_of_its_stream(cu: Standin) -> None:
    launch, x = filling(cu)

    class Other:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 0

    stream = Other()
    made, gone = launch.kernel[1, 32, stream], weakref.ref(stream)
    del stream
    made(x, 1)
    assert gone() is not None
    del made
    assert gone() is None


def test_a_capture_takes_the_long_way_and_keeps_the_module(cu: Standin) -> None:
    launch, x = filling(cu)
    gpu, handle = driver(), ptxdsl.Stream().handle
    stream = ptxdsl.Stream()
    on_stream = launch.kernel[1, 32, stream]
    made_ready(on_stream, x, 1)
    before = taken(on_stream)
    with gpu.current():
        gpu.call("cuStreamBeginCapture", stream.handle, gpu.cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        on_stream(x, 1)
        assert taken(on_stream) == before
        on_stream(x, 1)  # the module stays from now on
        assert taken(on_stream) == before + 1
        graph = gpu.call("cuStreamEndCapture", stream.handle)
        gpu.call("cuGraphDestroy", graph)
    assert handle != stream.handle


def test_a_graph_of_our_own(cu: Standin) -> None:
    """It keeps what its launches were given, so these take the long way, however the stream is said."""
    launch, x = filling(cu)
    stream = ptxdsl.Stream()
    on_stream = launch.kernel[1, 32, stream]
    made_ready(on_stream, x, 1)
    made = taken(launch), taken(on_stream)
    with ptxdsl.graph(stream=stream) as recorded:
        launch(x, 1)
        on_stream(x, 1)
    assert (taken(launch), taken(on_stream)) == made
    recorded.replay()
    ptxdsl.synchronize()
    del recorded


def test_the_context_of_another_gpu_is_left_as_it_was(cu: Standin) -> None:
    cu.count = 2
    launch, x = filling(cu)
    cu.local.context = CONTEXT + 1
    assert compared(cu, launch, x, 1)
    assert cu.local.context == CONTEXT + 1
    cu.local.context = 0
    before = taken(launch)
    launch(x, 1)  # the long way, which makes it current
    launch(x, 1)
    assert taken(launch) == before + 1
    assert cu.local.context == CONTEXT


def test_textures_that_the_module_declares_may_be_bound_at_any_time(cu: Standin) -> None:
    text = """
.version 8.0
.target sm_80
.address_size 64
.global .texref image;
.visible .entry k(.param .u64 p) { ret; }
"""
    launch, x = ptxdsl.load(text)["k"][1, 32], ptxdsl.empty(32, u32)
    cu.layout = "Q"
    for _ in range(9):
        launch(x)
    assert taken(launch) == 0


# Threads, lifetimes


def test_many_threads_at_once(cu: Standin) -> None:
    launch, x = filling(cu)
    saxpy, y, z = make_saxpy(), ptxdsl.empty(32, f32), ptxdsl.empty(32, f32)
    cu.layout = None
    before, problems = taken(launch), []

    def run(number: int) -> None:
        try:
            for n in range(600):
                launch(x, n)
                saxpy[1, 32](n, float(number), y, z)
                if n % 100 == 50:
                    launch.kernel.retrace()
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert taken(launch) > before
    assert len(cu.launches) == 3 + 8 * 2 * 600


@pytest.mark.parametrize("refused", [False, True])
def test_no_reference_is_lost_or_kept(cu: Standin, refused: bool) -> None:
    @ptx_kernel
    def k(x: Array[f32, 2], y: Ptr[f32], n: u32, a: f32, *, way: str = "one") -> None:
        ptx.membar.gl()

    class Mine(CudaArray):
        pass

    class Value(float):
        pass

    cu.layout = "QIIIQIf"
    x = ptxdsl.empty((4, 4), f32)
    y, n, a = Mine(x.address, (4,)), 1 << 20, 2.5
    launch = k[1, 32]
    made_ready(launch, x, y, n, a, way="two")
    interface = y.__cuda_array_interface__
    watched = [
        x, y, n, a, interface, interface["data"], interface["shape"], x.dtype, x.shape, x.address, None, True, launch,
        launch.prepared, launch.prepared.plans, launch.kernel, f32, Mine, driver(), interface["typestr"],
    ]
    # Wrong in the last argument, so that all before it were looked at.
    last: Any = 1e39 if refused else a

    def many() -> list[int]:
        for _ in range(300):
            try:
                launch(x, y, n, last, way="two")
            except LaunchError:
                assert refused
        cu.launches.clear()
        cu.calls.clear()
        driver().synchronize()
        gc.collect()
        return [sys.getrefcount(each) for each in watched]

    many()
    before = many()
    assert many() == before
    del before


def test_a_kernel_that_nobody_uses_is_freed_at_once(cu: Standin) -> None:
    launch, x = filling(cu)
    kernel = weakref.ref(launch.kernel)
    gc.disable()
    try:
        del launch
        assert kernel() is None
    finally:
        gc.enable()
    del x


def test_what_ends_the_program_is_not_passed_over(cu: Standin) -> None:
    cu.layout, memory = "Q", ptxdsl.empty(32, f32)

    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        ptx.membar.gl()

    class Interrupting:
        raises: type[BaseException] | None = None
        address = memory.address

        @property
        def __cuda_array_interface__(self) -> Any:
            if self.raises is not None:
                error, self.raises = self.raises, None
                raise error
            return CudaArray(self.address, (4,)).__cuda_array_interface__

    launch, x = k[1, 32], Interrupting()
    made_ready(launch, x)
    count = len(cu.launches)
    x.raises = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        launch(x)
    assert len(cu.launches) == count
    x.raises = ZeroDivisionError
    launch(x)  # the long way sees no error any more
    assert len(cu.launches) == count + 1


def test_arguments_that_launch_themselves(cu: Standin) -> None:
    """An argument's own code may launch, trace again and end all plans while one of them is tried."""
    inner, memory = filling(cu)
    cu.layout = "Q"

    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        ptx.membar.gl()

    class Busy:
        """A class is known to ptxdsl as long as the process lives, so it holds nothing itself."""

        calls, act = 0, staticmethod(lambda: None)
        address = memory.address

        @property
        def __cuda_array_interface__(self) -> Any:
            self.calls += 1
            self.act()
            return CudaArray(self.address, (4,)).__cuda_array_interface__

    def act() -> None:
        cu.layout = None
        inner(memory, 1)
        k.retrace()
        launch.prepared.plans = b""
        gc.collect()

    launch, x = k[1, 32], Busy()
    x.act = act  # type: ignore[assignment]
    for _ in range(20):
        launch(x)
    assert x.calls >= 20


# Where there is no machine code


def test_another_python_launches_the_long_way(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_code, "supported", lambda: False)

    @ptx_kernel
    def fill(x: Ptr[u32], n: u32) -> None:
        x[ptx.tid.x] = n

    cu.layout, x = "QI", ptxdsl.empty(32, u32)
    launch = fill[1, 32]
    for n in range(20):
        launch(x, n)
    assert taken(launch) == 0
    assert [cu.numbers(launched)[1] for launched in cu.launches] == list(range(20))


def test_a_launch_says_what_it_is(cu: Standin) -> None:
    launch, _ = filling(cu)
    assert Launch.__call__ is not Launch.long_way
    assert Launch.__call__.__doc__ == Launch.long_way.__doc__
    assert str(inspect.signature(launch)) == "(*args, **named)"


def test_the_code_is_the_same_from_disk_and_by_the_linker_of_llvm(tmp_path: Path) -> None:
    """In processes of their own: made anew, read from disk without LLVM, and linked by LLVM."""
    program = """
import sys
from ptxdsl.gpu.launch_code import address, library
if sys.argv[1] == "llvm":
    library.link = lambda *_: None
assert address("launch") and address("lay_out")
print("llvmlite" in sys.modules)
"""
    outcomes = []
    for way in ("link", "link", "llvm"):
        run = subprocess.run(
            [sys.executable, "-c", program, way], capture_output=True, text=True, check=True,
            env={"PTXDSL_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(ptxdsl.__file__).parents[1])},
        )
        outcomes.append(run.stdout.strip())
    assert outcomes[0] == "True"
    own_linker = sys.platform == "linux" and platform.machine() == "x86_64"
    assert outcomes[1] == ("False" if own_linker else "True")
    assert outcomes[2] == "True"

"""Kernels: the decorator, specialisation, launches on the emulator, inspection, and PTX of others."""

from __future__ import annotations

import doctest
import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Array, Ptr, dynamic_shared, f32, ptx, ptx_kernel, s32, shared, u8, u32, u64, use, when
from ptxdsl.config import override
from ptxdsl.gpu import device, tools
from ptxdsl.errors import ConfigError, LaunchError, ParseError, PtxError, TargetError, TraceError
from ptxdsl.kernel import Kernel, load

needs_ptxas = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
needs_nvdisasm = pytest.mark.skipif(not tools.find_tool("nvdisasm"), reason="no nvdisasm")


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_BACKEND", "emulator")


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """y = a * x + y, one thread an element.

    >>> x, y = np.ones(5, np.float32), np.full(5, 2, np.float32)
    >>> saxpy[1, 32](5, 3.0, x, y)
    >>> y
    array([5., 5., 5., 5., 5.], dtype=float32)
    """
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def fill(n: u32, out: Ptr[u32], *, value: int, step: int = 0) -> None:
    """out[i] = value + step * i."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        out[i] = i * step + value


def error_of(call: Callable[[], object], kind: type[PtxError] = LaunchError) -> PtxError:
    """The error that a call raises, located in this file."""
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    return caught.value


# ---------------------------------------------------------------------------------------------------------------------
# The decorator


def test_a_grid_and_a_block_as_lists() -> None:
    @ptx_kernel
    def k(x: Ptr[u32]):
        x[ptx.ctaid.y * 4 + ptx.tid.x] = 1

    x = np.zeros(8, np.uint32)
    for _ in range(2):
        k[[1, 2], [4]](x)
    assert x.all()



def test_a_kernel_looks_like_its_function() -> None:
    assert isinstance(saxpy, Kernel)
    assert (saxpy.__name__, saxpy.__module__, saxpy.__qualname__) == ("saxpy", __name__, "saxpy")
    assert saxpy.__doc__ is not None
    assert saxpy.__doc__.startswith("y = a * x + y")
    assert list(inspect.signature(saxpy).parameters) == ["n", "a", "x", "y"]
    assert repr(saxpy) == "<ptx_kernel saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32])>"


def test_doctests_of_kernels_are_found_and_run() -> None:
    module = sys.modules[__name__]
    tests = [t for t in doctest.DocTestFinder().find(module, __name__) if t.name == f"{__name__}.saxpy"]
    assert [len(test.examples) for test in tests] == [3]
    assert doctest.DocTestRunner().run(tests[0]) == (0, 3)


def test_options() -> None:
    @ptx_kernel(name="other", arch="sm_90a", maxntid=(64, 2), minnctapersm=2)
    def k(n: u32) -> None:
        pass

    text = k.ptx()
    assert ".target sm_90a" in text
    assert ".visible .entry other(" in text
    assert ".maxntid 64, 2" in text.replace("64,2", "64, 2")
    assert ".minnctapersm 2" in text
    assert error_of(lambda: k[1, (64, 3)](1)).message == (
        "block (64, 3, 1) has 192 threads; kernel `other` is made for at most 128 (maxntid)"
    )
    k[1, 128](1)


def test_required_geometry() -> None:
    @ptx_kernel(reqntid=32, reqnctapercluster=(2, 1, 1))
    def k(n: u32) -> None:
        pass

    assert ".target sm_90\n" in k.ptx()
    error = error_of(lambda: k[2, 64](1))
    assert error.message == "block is (64, 1, 1); kernel `k` is made for (32, 1, 1) only (reqntid)"
    assert error.hint == "`block=(32, 1, 1)`"
    error = error_of(lambda: k.configure(4, 32, cluster=4)(1))
    assert error.message == "cluster is (4, 1, 1); kernel `k` is made for (2, 1, 1) only (reqnctapercluster)"
    assert error.hint == "`.configure(grid, block, cluster=(2, 1, 1))`"
    error = error_of(lambda: k[3, 32](1))
    assert error.message == "cluster.x is 2, which does not divide grid.x = 3 (grid counts blocks)"
    k[2, 32](1)


def test_directives_about_clusters() -> None:
    @ptx_kernel(explicitcluster=True, maxclusterrank=4)
    def k(n: u32) -> None:
        pass

    error = error_of(lambda: k[2, 64](1))
    assert error.message == "kernel `k` is launched without a cluster, which it asks for (explicitcluster)"
    assert error.hint == "`.configure(grid, block, cluster=...)`"
    error = error_of(lambda: k.configure(8, 32, cluster=8)(1))
    assert error.message == "cluster (8, 1, 1) has 8 blocks; kernel `k` is made for at most 4 (maxclusterrank)"
    k.configure(8, 32, cluster=4)(1)
    error = error_of(lambda: k.configure(32, 32, cluster=32)(1))
    assert error.message == "cluster.x is 32; it can be 1 to 16"
    error = error_of(lambda: k.configure((8, 8), 32, cluster=(8, 4))(1))
    assert error.message == "cluster (8, 4, 1) has 32 blocks; the limit is 16"


@needs_ptxas
@pytest.mark.parametrize(
    "options",
    [{"maxntid": 256}, {"maxntid": (16, 16), "minnctapersm": 2}, {"reqntid": (8, 8, 4)}, {"maxnreg": 64},
     {"reqnctapercluster": (2, 2)}, {"maxclusterrank": 4}, {"maxntid": 128, "minnctapersm": 2, "maxnreg": 40}],
)
def test_directives_are_what_ptxas_takes(options: dict[str, Any]) -> None:
    @ptx_kernel(**options)
    def k(x: Ptr[f32]) -> None:
        x[0] = 1.0

    assert k.cubin().startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("options", "message", "kind"),
    [({"maxntid": 32, "reqntid": 32}, "maxntid and reqntid exclude each other", TraceError),
     ({"reqnctapercluster": 2, "maxclusterrank": 2}, "reqnctapercluster and maxclusterrank exclude each other",
      TraceError),
     ({"minnctapersm": 2}, "minnctapersm means nothing without maxntid or reqntid", TraceError),
     ({"reqnctapercluster": 2, "arch": "sm_80"}, "kernel `k` is for sm_80, and its directives need sm_90",
      TargetError)],
)
def test_directives_that_do_not_fit(options: dict[str, Any], message: str, kind: type[PtxError]) -> None:
    @ptx_kernel(**options)
    def k(n: u32) -> None:
        pass

    assert error_of(k.ptx, kind).message == message


def decorate(function: Any = None, **options: Any) -> Callable[[], object]:
    return lambda: ptx_kernel(**options)(function) if options else ptx_kernel(function)


def nothing(n: u32) -> None: ...
def generator(n: u32) -> Any: yield n
def reserved(n: u32, *, arch: str) -> None: ...
def unannotated(n) -> None: ...  # type: ignore[no-untyped-def]
def variadic(*n: u32) -> None: ...
async def coroutine(n: u32) -> None: ...


BAD_KERNELS: list[tuple[Callable[[], object], str, str | None]] = [
    (decorate(3), "ptx_kernel makes a kernel of a function, not of 3", "write `@ptx_kernel` above a `def`"),
    (decorate(nothing, name="a b"), "'a b' is no name of an entry in PTX", '`@ptx_kernel(name="kernel")`'),
    (decorate(nothing, maxntids=3), "ptx_kernel has no option `maxntids`", "did you mean `maxntid=`?"),
    (decorate(nothing, maxntid=0), "maxntid is a positive int or a tuple of 1 to 3, not 0", None),
    (decorate(nothing, maxntid=(1, 2, 3, 4)), "maxntid is a positive int or a tuple of 1 to 3, not (1, 2, 3, 4)", None),
    (decorate(nothing, maxnreg=(1, 2)), "maxnreg is a positive int, not (1, 2)", None),
    (decorate(generator), "kernel `generator` is a generator or a coroutine, which cannot be traced",
     "remove `yield`, `async` and `await`"),
    (decorate(coroutine), "kernel `coroutine` is a generator or a coroutine, which cannot be traced",
     "remove `yield`, `async` and `await`"),
    (decorate(reserved), ("a compile-time constant of kernel `reserved` cannot be called `arch`, which "
                          "`k.ptx(arch=...)` uses"), None),
    (decorate(unannotated), "parameter `n` of kernel `unannotated` has no annotation",
     "write `n: u32`, `n: Ptr[f32]` or `n: Array[f32, 2]`; a compile-time constant comes after `*`"),
    (decorate(variadic), "kernel `variadic` cannot take `*n: 'u32'`", None),
]


@pytest.mark.parametrize(("call", "message", "hint"), BAD_KERNELS, ids=[message[:40] for _, message, _ in BAD_KERNELS])
def test_bad_kernels(call: Callable[[], object], message: str, hint: str | None) -> None:
    error = error_of(call, TraceError)
    assert (error.message, error.hint) == (message, hint)


def test_targets_that_are_none() -> None:
    error = error_of(decorate(nothing, arch="sm_9a"), TargetError)
    assert error.message == "there is no target 'sm_9a'"
    assert error.hint is not None
    assert error.hint.startswith('did you mean `arch="sm_9')
    assert error_of(lambda: saxpy.ptx(arch="hopper"), TargetError).message == "there is no target 'hopper'"
    with override(arch="sm_999"):
        assert error_of(saxpy.ptx, TargetError).message == "there is no target 'sm_999'"


def test_annotations_see_local_names() -> None:
    word = u8

    @ptx_kernel
    def k(x: Ptr[word]) -> None:
        pass

    assert str(k.parameters[0].annotation) == "Ptr[u8]"


# ---------------------------------------------------------------------------------------------------------------------
# Launches


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 4096])
def test_saxpy(n: int, rng: np.random.Generator) -> None:
    x, y = rng.random(n, np.float32), rng.random(n + 7, np.float32)
    expected = y.copy()
    expected[:n] = np.float32(1.5) * x + y[:n]
    saxpy[-(-n // 128), 128](n, 1.5, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert np.array_equal(y[n:], expected[n:])


@pytest.mark.parametrize(
    "launch",
    [lambda k: k[2, 32], lambda k: k[(2,), (32,)], lambda k: k[(2, 1, 1), (32, 1)], lambda k: k[2, 32, None],
     lambda k: k[2, 32, 0, 0], lambda k: k[np.int32(2), np.int64(32)], lambda k: k.configure(2, 32),
     lambda k: k.configure(2, 32, backend="emulator"), lambda k: k.configure(2, 32, sanitize="memory")],
)
def test_ways_to_launch(launch: Callable[[Any], Any]) -> None:
    out = np.zeros(64, np.uint32)
    launch(fill)(64, out, value=3)
    assert out.tolist() == [3] * 64


def test_arguments_by_name(rng: np.random.Generator) -> None:
    x, y = rng.random(4, np.float32), np.zeros(4, np.float32)
    saxpy[1, 32](4, y=y, x=x, a=2.0)
    assert np.array_equal(y, 2 * x)
    message = "kernel `saxpy` takes 4 arguments (n, a, x, y), 3 came: `x` missing"
    assert error_of(lambda: saxpy[1, 32](4, y=y, a=2.0)).message == message


BAD_LAUNCHES: list[tuple[Callable[[], object], str, str | None]] = [
    (lambda: saxpy(1, 2.0, None, None), "kernel `saxpy` was called without a grid and a block",
     "`saxpy[grid, block](n, a, x, y)`"),
    (lambda: saxpy[4], "a launch takes [grid, block], [grid, block, stream] or [grid, block, stream, shared], not [4]",
     "`saxpy[grid, block](n, a, x, y)`"),
    (lambda: saxpy[1, 2, 3, 4, 5],
     ("a launch takes [grid, block], [grid, block, stream] or [grid, block, stream, shared], "
      "not [1, 2, 3, 4, 5]"), "`saxpy[grid, block](n, a, x, y)`"),
    (lambda: saxpy[0, 32], "grid.x is 0; it can be 1 to 2147483647", "an empty array needs no launch: `if x.size:`"),
    (lambda: saxpy[1, 2048], "block.x is 2048; it can be 1 to 1024", None),
    (lambda: saxpy.configure(1, 1, backend="cuda"), "backend is one of auto, gpu, emulator, not 'cuda'",
     '`backend="emulator"`'),
    (lambda: fill[1, 32](1, np.zeros(1, np.uint32)), "kernel `fill` needs the compile-time constant value",
     "`fill[grid, block](..., value=...)`"),
    (lambda: fill[1, 32](1, np.zeros(1, np.uint32), value=1, steps=2),
     "kernel `fill` has no compile-time constant `steps`; it has value, step", "did you mean `step=`?"),
    (lambda: saxpy[1, 32](1, 2.0, None, None, tile=2),
     "kernel `saxpy` has no compile-time constant `tile`; it has none", None),
    (lambda: saxpy.ptx(comment=True), "kernel `saxpy` has no compile-time constant `comment`; it has none",
     "did you mean `comments=`?"),
    (lambda: saxpy.sass(line=True), "kernel `saxpy` has no compile-time constant `line`; it has none",
     "did you mean `lines=`?"),
    (lambda: saxpy.cubin(arhc="sm_90"), "kernel `saxpy` has no compile-time constant `arhc`; it has none",
     "did you mean `arch=`?"),
    (lambda: saxpy.report(pth="a.html"), "kernel `saxpy` has no compile-time constant `pth`; it has none",
     "did you mean `path=`?"),
    (lambda: ptxdsl.zeros(4, "f33"), "'f33' is no dtype", "did you mean 'f32'?"),
    (lambda: ptxdsl.zeros(4, "u8"), "'u8' is uint8 in PTX and uint64 in numpy", "`ptxdsl.u8` or `np.uint64`"),
    (lambda: ptxdsl.empty(4, "f16x2"), "numpy has no equivalent of f16x2",
     "take an unsigned type for the bits: `u32`"),
    (lambda: fill[1, 32](1, np.zeros(1, np.uint32), value=[1]),
     "the compile-time constant `value` of kernel `fill` is a list, which cannot be one: it has no hash",
     "pass a tuple"),
    (lambda: fill[1, 32](1, np.zeros(1, np.uint32), value=np.zeros(2)),
     "the compile-time constant `value` of kernel `fill` is an ndarray, which cannot be one: it has no hash", None),
    (lambda: saxpy[1, 32, None, 64](0, 1.0, X, X),
     "kernel `saxpy` uses no dynamic shared memory, and the launch gives it 64 bytes",
     "declare it: `dynamic_shared(f32)`, or leave `shared` out"),
]
X = np.zeros(1, np.float32)


@pytest.mark.parametrize(("call", "message", "hint"), BAD_LAUNCHES, ids=[entry[1][:50] for entry in BAD_LAUNCHES])
def test_bad_launches(call: Callable[[], object], message: str, hint: str | None) -> None:
    error = error_of(call)
    assert (error.message, error.hint) == (message, hint)


def test_the_place_of_an_error_is_the_line_of_the_launch() -> None:
    error = error_of(lambda: saxpy[1, 32](1.5, 2.0, X, X))
    assert error.loc is not None
    assert error.loc.source == "error = error_of(lambda: saxpy[1, 32](1.5, 2.0, X, X))"


def test_nothing_is_written_by_a_launch_that_is_refused() -> None:
    y = np.full(8, 7, np.float32)
    for args in [(8, 1.0, y.astype(float), y), (8, 1.0, y, y[::2]), (8.5, 1.0, y, y), (8, 1.0, y)]:
        with pytest.raises(LaunchError):
            saxpy[1, 32](*args)
    assert y.tolist() == [7] * 8


def test_read_only_arrays() -> None:
    x = np.ones(4, np.float32)
    x.flags.writeable = False
    y = np.zeros(4, np.float32)
    saxpy[1, 32](4, 1.0, x, y)
    assert y.tolist() == [1] * 4
    assert error_of(lambda: saxpy[1, 32](4, 1.0, y, x)).message == (
        "argument `y` of kernel `saxpy` is a numpy array of float32, shape (4,), read-only; the kernel writes to it"
    )
    assert x.tolist() == [1] * 4


def test_dynamic_shared_memory() -> None:
    @ptx_kernel
    def reverse(x: Ptr[s32]) -> None:
        tile = dynamic_shared(s32)
        t = ptx.tid.x
        tile[t] = x[t]
        ptx.bar.sync(0)
        x[t] = tile[63 - t]

    x = np.arange(64, dtype=np.int32)
    reverse[1, 64, None, 256](x)
    assert x.tolist() == list(range(63, -1, -1))
    error = error_of(lambda: reverse[1, 64](x))
    assert error.message == "kernel `reverse` uses dynamic shared memory, and the launch gives it none"
    assert error.hint == "`reverse[grid, block, None, nbytes](...)` or `.configure(grid, block, shared=nbytes)`"


def test_too_much_shared_memory() -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        tile, more = shared(f32, 1024), dynamic_shared(f32)
        tile[ptx.tid.x] = x[0]
        more[ptx.tid.x] = x[0]

    assert error_of(lambda: k[1, 32, None, 230_000](X)).message == (
        "kernel `k` declares 4096 bytes of shared memory and the launch adds 230000; "
        "the most a block can have is 232448"
    )


def test_arrays_with_strides(rng: np.random.Generator) -> None:
    @ptx_kernel
    def double(m: Array[f32, 2]) -> None:
        row, column = ptx.ctaid.x, ptx.tid.x
        with when((row < m.shape[0]) & (column < m.shape[1])):
            m[row, column] = m[row, column] + m[row, column]

    whole = rng.random((6, 40), np.float32)
    expected = whole.copy()
    expected[1:5, 3:30] *= 2
    double[8, 32](whole[1:5, 3:30])
    assert np.array_equal(whole, expected)


def test_device_arrays_on_the_emulator() -> None:
    x = ptxdsl.to_device(np.ones(40, np.float32))
    y = ptxdsl.zeros(40, f32)
    saxpy[2, 32](40, 5.0, x, y)
    assert y.numpy().tolist() == [5] * 40
    assert ptxdsl.kernel.backend_name() == "emulator"


def test_a_launch_within_a_kernel() -> None:
    @ptx_kernel
    def outer(x: Ptr[f32]) -> None:
        saxpy[1, 32](1, 2.0, X, X)

    saxpy.ptx()
    error = error_of(outer.ptx)
    assert error.message == "kernel `saxpy` is launched while another is traced"
    assert error.hint == "a helper that is traced in place is a plain function, without `@ptx_kernel`"


def test_threads_launch_at_once(rng: np.random.Generator) -> None:
    inputs = rng.random((8, 256), np.float32)
    outputs = np.zeros_like(inputs)
    failures: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for _ in range(5):
                saxpy[2, 128](256, float(i), inputs[i], outputs[i])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_allclose(outputs, inputs * (np.arange(8, dtype=np.float32) * 5)[:, None], rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Backends


def test_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_found", lambda: LaunchError("no NVIDIA driver: it was taken away"))
    monkeypatch.setenv("PTXDSL_BACKEND", "gpu")
    problem = "the backend is gpu, and there is none: no NVIDIA driver: it was taken away"
    for call in (
        lambda: saxpy[1, 32](0, 1.0, X, X), lambda: saxpy.configure(1, 32, backend="gpu")(0, 1.0, X, X),
        lambda: ptxdsl.zeros(3, f32),
    ):
        error = error_of(call)
        assert error.message == problem
        assert error.hint == 'run on the CPU: `with ptxdsl.use("emulator"):` or PTXDSL_BACKEND=emulator'
    for setting in ("emulator", "auto"):
        with use(setting):
            saxpy[1, 32](0, 1.0, X, X)
    saxpy.configure(1, 32, backend="emulator")(0, 1.0, X, X)


def test_a_wrong_setting_is_found_at_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_BACKEND", "emulaor")
    error = error_of(lambda: saxpy[1, 32](0, 1.0, X, X), ConfigError)
    assert error.message == "PTXDSL_BACKEND is 'emulaor'; it can be auto, gpu or emulator"


def test_the_sanitizer_is_chosen_by_the_launch_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.emulator import Program

    chosen: list[Any] = []
    monkeypatch.setattr(
        Program, "launcher", lambda self, entry, geometry: lambda arguments: chosen.append(geometry.sanitize)
    )
    saxpy.retrace()  # a launch before may have left a fast path
    saxpy[1, 32](0, 1.0, X, X)
    monkeypatch.setenv("PTXDSL_SANITIZE", "race,init")
    saxpy[1, 32](0, 1.0, X, X)
    saxpy.configure(1, 32, sanitize="memory")(0, 1.0, X, X)
    saxpy.configure(1, 32, sanitize=False)(0, 1.0, X, X)
    assert chosen == [None, {"race", "init"}, {"memory"}, frozenset()]


# ---------------------------------------------------------------------------------------------------------------------
# Specialisation


def test_each_combination_is_traced_once() -> None:
    traced = []

    @ptx_kernel
    def k(out: Ptr[f32], *, a: Any, b: Any = 2) -> None:
        traced.append((a, b))
        out[0] = float(a)

    for constants in [{"a": 1}, {"a": 1, "b": 2}, {"a": 1}, {"b": 3, "a": 1}, {"a": 1, "b": 3}]:
        k.ptx(**constants)
    assert traced == [(1, 2), (1, 2), (1, 3)]
    first = k.ptx(a=1)
    assert k.ptx(a=1) is first
    assert len(traced) == 3
    with override(lineinfo=False):
        assert ".loc" not in k.ptx(a=1)
    assert k.ptx(a=1) is first and ".loc" in first


def test_equal_constants_of_different_kinds_are_different() -> None:
    @ptx_kernel
    def k(out: Ptr[u32], *, a: Any) -> None:
        out[0] = {"int": 1, "bool": 2, "float": 3, "tuple": 4}[type(a).__name__]
        if isinstance(a, float):
            out[1] = int(str(a).startswith("-"))
        if isinstance(a, tuple):
            out[1] = int(isinstance(a[0], bool))

    seen = []
    for a in (1, True, 1.0, -0.0, 0.0, (1,), (True,), 1):
        out = np.zeros(2, np.uint32)
        k[1, 1](out, a=a)
        seen.append(out.tolist())
    assert seen == [[1, 0], [2, 0], [3, 0], [3, 1], [3, 0], [4, 0], [4, 1], [1, 0]]


def test_retrace_sees_what_a_launch_cannot(tmp_path: Path) -> None:
    file = tmp_path / "factor"
    file.write_text("1")

    @ptx_kernel
    def k(out: Ptr[u32]) -> None:
        out[0] = int(file.read_text())

    out, launch = np.zeros(1, np.uint32), k[1, 1]
    launch(out)
    file.write_text("5")
    launch(out)
    assert out[0] == 1
    k.retrace()
    launch(out)
    assert out[0] == 5


def test_a_trace_that_fails_leaves_nothing_behind() -> None:
    broken = [True]

    @ptx_kernel
    def k(out: Ptr[u32]) -> None:
        if broken[0]:
            raise ZeroDivisionError
        out[0] = 9

    out = np.zeros(1, np.uint32)
    with pytest.raises(ZeroDivisionError):
        k[1, 1](out)
    broken[0] = False
    k[1, 1](out)
    assert out[0] == 9


# ---------------------------------------------------------------------------------------------------------------------
# Inspection


def test_ptx_for_a_target() -> None:
    assert ".target sm_75" in saxpy.ptx()
    assert ".target sm_100a" in saxpy.ptx(arch="sm_100a")
    with override(arch="sm_80"):
        assert ".target sm_80" in saxpy.ptx()
    assert saxpy.ir().target == "sm_75"


def test_lines_and_comments() -> None:
    assert ".loc" in saxpy.ptx()
    with override(lineinfo=False):
        assert ".loc" not in saxpy.ptx()
    assert ".loc" in saxpy.ptx()
    assert "y[i] = a * x[i] + y[i]" in saxpy.ptx(comments=True)
    assert ".loc" not in ptx_kernel(lineinfo=False)(saxpy.function).ptx()


@needs_ptxas
def test_cubin_and_attributes() -> None:
    assert saxpy.cubin().startswith(b"\x7fELF")
    assert saxpy.cubin(arch="sm_90a") != saxpy.cubin(arch="sm_80")
    found = saxpy.attributes(arch="sm_90a")
    assert 8 <= found.num_regs <= 16
    assert (found.local_size_bytes, found.spill_store_bytes, found.binary_version) == (0, 0, 90)
    assert fill.attributes(value=1).shared_size_bytes == 0


@needs_ptxas
@needs_nvdisasm
def test_sass() -> None:
    assert "FFMA" in saxpy.sass(arch="sm_90")
    assert f'"{__file__}", line' in saxpy.sass(lines=True)


@needs_ptxas
def test_dumps(tmp_path: Path) -> None:
    kernel = ptx_kernel(saxpy.function)
    with override(dump=f"ptx,cubin,log@{tmp_path / 'new' / 'folder'}"):
        kernel.cubin(arch="sm_80")
    names = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    stem = names[0].split(".")[0]
    assert stem.startswith("saxpy-")
    assert names == [f"{stem}.ptx", f"{stem}.sm_80.cubin", f"{stem}.sm_80.log"]
    assert (tmp_path / "new" / "folder" / f"{stem}.ptx").read_text() == kernel.ptx(arch="sm_80")
    assert (tmp_path / "new" / "folder" / f"{stem}.sm_80.cubin").read_bytes() == kernel.cubin(arch="sm_80")
    (tmp_path / "file").write_text("")
    with override(dump=f"ptx@{tmp_path / 'file' / 'x'}"):
        error = error_of(ptx_kernel(saxpy.function).ptx, ConfigError)
    assert error.message == f"dump wants {stem_of(saxpy)}.ptx written to {tmp_path / 'file' / 'x'}: Not a directory"


def stem_of(kernel: Kernel) -> str:
    import zlib

    return f"{kernel.entry}-{zlib.crc32(kernel.ptx().encode()):08x}"


def test_log(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = ptx_kernel(saxpy.function)
    with override(log="debug"):
        kernel[1, 32](0, 1.0, X, X)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("ptxdsl: traced saxpy for sm_75: ")
    assert said[1] == "ptxdsl: launch saxpy[(1, 1, 1), (32, 1, 1)] on the emulator"
    kernel[1, 32](0, 1.0, X, X)
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------------------------------------------------------
# PTX of others

FOREIGN = """
.version 7.0
.target sm_75
.address_size 64

.visible .entry scale(.param .u64 x_param, .param .f32 a_param, .param .u32 n_param)
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x_param];
    ld.param.f32 %f1, [a_param];
    ld.param.u32 %r1, [n_param];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra $L_end;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd4], %f3;
$L_end:
    ret;
}

.visible .entry number(.param .u64 out, .param .u64 value)
{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [value];
    st.global.u64 [%rd1], %rd2;
    ret;
}
"""


def test_foreign_ptx(rng: np.random.Generator) -> None:
    module = load(FOREIGN)
    assert list(module) == ["scale", "number"]
    assert len(module) == 2
    x = rng.random(100, np.float32)
    expected = x * np.float32(2.5)
    module["scale"][4, 32](x, 2.5, 100)
    assert np.array_equal(x, expected)
    out = np.zeros(1, np.uint64)
    module["number"][1, 1](out, 2**64 - 3)
    assert out[0] == 2**64 - 3
    assert module["scale"].ptx() == FOREIGN
    assert repr(module["number"]) == "<PTX entry number(out: .u64, value: .u64)>"
    assert repr(module) == "<PTX module <ptx>: scale, number>"


@needs_ptxas
def test_foreign_ptx_assembles() -> None:
    entry = load(FOREIGN)["scale"]
    assert entry.cubin(arch="sm_90").startswith(b"\x7fELF")
    assert entry.attributes().num_regs > 0


def test_foreign_ptx_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "scale.ptx"
    path.write_text(FOREIGN)
    for source in (path, str(path)):
        x = np.ones(3, np.float32)
        load(source)["scale"][1, 32](x, 4.0, 3)
        assert x.tolist() == [4] * 3


def test_our_own_ptx_is_foreign_ptx_too(rng: np.random.Generator) -> None:
    x, y = rng.random(50, np.float32), rng.random(50, np.float32)
    ours, theirs = y.copy(), y.copy()
    saxpy[2, 32](50, 3.0, x, ours)
    load(saxpy.ptx())["saxpy"][2, 32](50, 3.0, x, theirs)
    assert np.array_equal(ours, theirs)


def test_bad_foreign_launches() -> None:
    module = load(FOREIGN)
    x = np.ones(3, np.float32)
    error = error_of(lambda: module["scales"])
    assert (error.message, error.hint) == (
        "<ptx> has no entry `scales`; it has scale, number", "did you mean `scale`?",
    )
    x.flags.writeable = False
    cases = [
        (lambda: module["scale"][1, 32](x, 1.0, 3),
         ("argument `x_param` of kernel `scale` is a numpy array of float32, shape (3,), read-only; "
          "the kernel writes to it")),
        (lambda: module["scale"][1, 32](x, 1.0),
         "kernel `scale` takes 3 arguments (x_param, a_param, n_param), 2 came: `n_param` missing"),
        (lambda: module["scale"][1, 32](1.5, 1.0, 3),
         "argument `x_param` of kernel `scale` is the float 1.5; .u64 wants an array or an int"),
        (lambda: module["scale"][1, 32](x, 1.0, 3, tile=3), "kernel `scale` has no compile-time constants; it is PTX"),
        (lambda: load(3), "load takes PTX text or the path of a file, not 3"),  # type: ignore[arg-type]
    ]
    for call, message in cases:
        assert error_of(call).message == message
    error = error_of(lambda: load("/nowhere/kernel.ptx"))
    assert error.message.startswith("'/nowhere/kernel.ptx' is neither PTX text nor a file of it: ")


def test_foreign_text_that_is_no_ptx() -> None:
    with pytest.raises(ParseError) as caught:
        load(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k( { ret; }\n")
    assert caught.value.loc is not None
    assert (caught.value.loc.file, caught.value.loc.line) == ("<ptx>", 4)


def test_u64_of_our_own_takes_no_array() -> None:
    @ptx_kernel
    def k(n: u64) -> None:
        pass

    error = error_of(lambda: k[1, 1](X))
    assert error.message == (
        "argument `n` of kernel `k` is a numpy array of float32, shape (1,); u64 wants an int from 0 to "
        "18446744073709551615"
    )


@pytest.mark.parametrize(("name", "dtype"), [
    ("f32", "float32"), ("f16", "float16"), ("s64", "int64"), ("u32", "uint32"), ("float32", "float32"),
    ("bf16", "bfloat16"), ("int32_t", "int32"), (np.float64, "float64"), ("<f4", "float32"),
])
def test_the_dtype_of_an_array_is_a_type_or_its_name(name: object, dtype: str) -> None:
    for make in (ptxdsl.empty, ptxdsl.zeros, ptxdsl.managed):
        assert str(make((4,), name, backend="emulator").dtype) == dtype
    assert str(ptxdsl.pinned((4,), name, backend="emulator").dtype) == dtype

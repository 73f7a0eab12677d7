"""Pickling and copying: a kernel is the very same in its process, and found by its name in others; data goes along."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pickled_kernels
import pytest

import ptxdsl
from ptxdsl import (
    Ptr, Sampler, Surface, Texture, f32, ptx, ptx_kernel, s32, tensor_map, to_device, u32, zeros,
)
from ptxdsl.errors import PtxError

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
COPIES = (lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy)
KERNELS = (
    pickled_kernels.saxpy, pickled_kernels.powers, pickled_kernels.Kernels.fill, pickled_kernels.other_name,
    pickled_kernels.factorial, pickled_kernels.count,
)


def elsewhere(value: Any, expression: str, *, protocol: int | None = None) -> Any:
    """What an expression over ``value`` is in a process that has done nothing before."""
    program = (
        f"import pickle, sys; value = pickle.load(sys.stdin.buffer); result = {expression}; "
        "sys.stdout.buffer.write(pickle.dumps(result))"
    )
    path = f"import sys; sys.path[:0] = {[str(Path(pickled_kernels.__file__).parent), *sys.path]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", path + program], input=pickle.dumps(value, protocol), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_a_kernel_with_a_name_is_the_same_after_pickling(kernel: Any) -> None:
    for protocol in PROTOCOLS:
        assert pickle.loads(pickle.dumps(kernel, protocol)) is kernel
    assert pickle.loads(pickle._dumps(kernel)) is kernel  # type: ignore[attr-defined]
    assert copy.copy(kernel) is kernel and copy.deepcopy([kernel])[0] is kernel


def test_a_launch_changes_nothing_of_that(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 300), np.float32)
    before = pickle.dumps(pickled_kernels.saxpy)
    for _ in range(3):
        pickled_kernels.saxpy.configure(3, 128, backend="emulator")(300, 2.0, x, y)
    assert pickle.dumps(pickled_kernels.saxpy) == before and len(before) < 300


@pytest.mark.processes
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_process_finds_kernels_by_their_names(protocol: int, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 77), np.float32)
    given = [pickled_kernels.saxpy, pickled_kernels.Kernels.fill, pickled_kernels.other_name, x, y]
    import_, same = "__import__('pickled_kernels')", "value[0] is m.saxpy, value[1] is m.Kernels.fill"
    found, *results = elsewhere(
        given, f"(lambda m: [({same}, value[2] is m.other_name), (value[0][1, 96](77, 3.0, value[3], value[4]), "
        f"value[4])[1], (value[1][1, 77](value[3]), value[3])[1]])({import_})", protocol=protocol,
    )
    assert found == (True, True, True)
    np.testing.assert_array_equal(results[0], np.float32(3) * x + y)
    np.testing.assert_array_equal(results[1], np.full(77, pickled_kernels.FACTOR, np.float32))


@pytest.mark.processes
def test_variables_of_a_kernel_are_of_one_process() -> None:
    x = np.zeros(1, np.uint32)
    for _ in range(3):
        pickled_kernels.count[1, 1](x)
    assert elsewhere((pickled_kernels.count, x), "(value[0][1, 1](value[1]), value[1])[1]")[0] == 1


def test_a_kernel_without_a_name_says_what_to_do() -> None:
    kernel = pickled_kernels.scaled_by(2.0)
    with pytest.raises(pickle.PicklingError) as caught:
        pickle.dumps([kernel])
    assert str(caught.value) == (
        "kernel `scaled` cannot be pickled: pickle writes the name under which a module has it, and `pickled_kernels` "
        f"has this one under none\n  at {kernel.loc}\n  hint: define it at the top of a module, or pickle it by "
        "cloudpickle, which takes it along, as Dask, Ray and joblib do"
    )
    assert copy.deepcopy({"k": kernel})["k"] is kernel


def test_so_does_a_function_without_a_name_and_a_kernel_whose_name_another_has_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner, outer = pickled_kernels.fact_by_value()
    for value, kind, name in ((inner, "function", "inner"), (outer, "kernel", "outer")):
        with pytest.raises(pickle.PicklingError, match=f"^{kind} `{name}` cannot be pickled: "):
            pickle.dumps(value)
    kernel = pickled_kernels.saxpy
    monkeypatch.setattr(pickled_kernels, "saxpy", pickled_kernels.powers)
    with pytest.raises(pickle.PicklingError, match="^kernel `saxpy` cannot be pickled: "):
        pickle.dumps(kernel)
    monkeypatch.setattr(pickled_kernels, "kept", kernel, raising=False)
    assert pickle.loads(pickle.dumps(kernel)) is kernel  # under its other name


@pytest.mark.parametrize("make", COPIES)
def test_the_namespace_and_its_names_are_the_same(make: Callable[[Any], Any]) -> None:
    for name in (ptx, ptx.fma.rn.f32, ptx.ld.global_.u32, ptx.tid, ptx.call, ptx.cvt.rn.f16.f32):
        assert make(name) is name or make(name).mnemonic == name.mnemonic
    assert make(ptx) is ptx and make(ptx.fma.rn.f32) is ptx.fma.rn.f32 and make(ptx.tid) is ptx.tid
    tex = ptx["tex.2d.v4.f32.f32"]
    assert repr(make(tex)) == repr(tex)


# ---------------------------------------------------------------------------------------------------------------------
# Launches


@pytest.mark.parametrize("make", COPIES)
def test_a_launch_keeps_its_options(make: Callable[[Any], Any], rng: np.random.Generator) -> None:
    launch = pickled_kernels.saxpy.configure((2, 1), 64, sanitize="race,init", seed=7, backend="emulator")
    x, y = rng.standard_normal((2, 100), np.float32)
    launch(100, 1.5, x, y.copy())
    made = make(launch)
    assert made.kernel is pickled_kernels.saxpy and made.config == launch.config
    assert made.prepared.backend == "emulator"
    result = y.copy()
    made(100, 1.5, x, result)
    np.testing.assert_array_equal(result, np.float32(1.5) * x + y)


@pytest.mark.processes
def test_a_launch_runs_in_another_process(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 50), np.float32)
    launch = pickled_kernels.saxpy[1, 64]
    launch(50, 0.5, x, y.copy())
    result = elsewhere((launch, x, y), "(value[0](50, 0.5, value[1], value[2]), value[2])[1]")
    np.testing.assert_array_equal(result, np.float32(0.5) * x + y)


def test_a_launch_on_a_stream_is_of_one_process() -> None:
    assert pickle.loads(pickle.dumps(pickled_kernels.saxpy[1, 64, 2])).config.stream == 2
    with pytest.raises(pickle.PicklingError) as caught:
        pickle.dumps(pickled_kernels.saxpy[1, 64, 0x55AA00])
    assert str(caught.value).startswith(
        "a launch of kernel `saxpy` on stream 0x55aa00 cannot be pickled: a stream is of one process\n  at "
    )
    assert str(caught.value).endswith("\n  hint: pickle the kernel, and choose the stream where it is launched")


def test_streams_events_and_graphs_are_of_one_process() -> None:
    stream = ptxdsl.Stream(backend="emulator")
    for value in (stream, ptxdsl.Event(), ptxdsl.graph(backend="emulator")):
        for make in COPIES:
            first, last = error_text(lambda value=value, make=make: make(value))
            assert first == f"{value!r} cannot be pickled or copied: it is of one process"
            assert last == "  hint: make one in the process that uses it"
    with pytest.raises(pickle.PicklingError, match=f"on stream {stream.handle:#x} cannot be pickled"):
        pickle.dumps(pickled_kernels.saxpy[1, 64, stream])


# ---------------------------------------------------------------------------------------------------------------------
# Foreign PTX

TABLE = """
.version 7.0
.target sm_75
.address_size 64
.visible .const .align 4 .b8 table[16];
.visible .global .align 4 .u32 launches = 5;
.visible .entry look(.param .u64 x) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [x];
    ld.const.u32 %r0, [table+4];
    st.global.u32 [%rd0], %r0;
    ld.global.u32 %r1, [launches];
    add.u32 %r1, %r1, 1;
    st.global.u32 [launches], %r1;
    st.global.u32 [%rd0+4], %r1;
    ret;
}
.visible .entry other() { ret; }
"""
LAUNCHED = "(value[0][1, 1](value[1]), value[1])[1].tolist()"


@pytest.mark.processes
def test_a_module_is_pickled_with_what_its_variables_hold(rng: np.random.Generator) -> None:
    module, x = ptxdsl.load(TABLE), np.zeros(2, np.uint32)
    assert elsewhere((module["look"], x), LAUNCHED) == [0, 6]
    numbers = rng.integers(0, 1 << 32, 4, np.uint32)
    module.variables["table"] = numbers
    module["look"][1, 1](x)
    for value in (module["look"], pickle.loads(pickle.dumps(module))["look"], copy.deepcopy(module)["look"]):
        assert elsewhere((value, x), LAUNCHED) == [numbers[1], 7]
    assert elsewhere(module, "value.variables['table'].view('u4').numpy().tolist()") == numbers.tolist()


def test_the_copy_of_a_module_has_variables_of_its_own() -> None:
    module, x = ptxdsl.load(TABLE), np.zeros(2, np.uint32)
    module["look"][1, 1](x)
    deep, shallow = copy.deepcopy(module), copy.copy(module)
    for number, launched in enumerate((deep, deep, module, shallow, module)):
        launched["look"][1, 1](x)
        assert x[1] == (7, 8, 7, 8, 9)[number]
    assert sorted(deep) == ["look", "other"] and repr(deep) == repr(module)


def test_entries_that_are_pickled_together_share_their_module() -> None:
    module, x = ptxdsl.load(TABLE), np.zeros(2, np.uint32)
    entry, launch, whole = pickle.loads(pickle.dumps((module["look"], module["look"][1, 1], module)))
    entry[1, 1](x)
    launch(x)
    whole["look"][1, 1](x)
    assert x[1] == 8


@pytest.mark.processes
def test_a_module_is_pickled_with_what_it_is_bound_to(rng: np.random.Generator) -> None:
    module = ptxdsl.load("""
.version 7.0
.target sm_75
.address_size 64
.global .texref image;
.visible .entry look(.param .u64 x) {
    .reg .f32 %f<4>;
    .reg .b32 %r<1>;
    .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, 2;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [image, {%r0}];
    st.global.f32 [%rd0], %f0;
    ret;
}""")
    picture, out = rng.standard_normal(8, np.float32), np.zeros(1, np.float32)
    module["image"] = Texture(picture)
    assert elsewhere((module["look"], out), LAUNCHED) == [picture[2]]


# ---------------------------------------------------------------------------------------------------------------------
# Data


@pytest.mark.parametrize("make", COPIES)
def test_a_device_array_is_copied(make: Callable[[Any], Any], rng: np.random.Generator) -> None:
    values = rng.standard_normal((3, 5), np.float32)
    array = to_device(values, backend="emulator")
    made = make(array)
    assert made.address != array.address and made.address % 256 == 0
    assert (made.backend, made.dtype, made.shape) == ("emulator", np.float32, (3, 5))
    array.copy_from(np.zeros_like(values))
    np.testing.assert_array_equal(made.numpy(), values)
    one, two = make([array, array]) if make is not copy.copy else (made, made)
    assert one is two


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (7,)])
def test_device_arrays_of_all_shapes_and_kinds(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    for dtype in (np.uint8, np.float64, ptxdsl.dtype_of(ptxdsl.bf16)):
        values = np.asarray(rng.integers(0, 99, shape)).astype(dtype)
        made = pickle.loads(pickle.dumps(to_device(values, backend="emulator")))
        assert made.dtype == values.dtype and made.shape == shape
        np.testing.assert_array_equal(made.numpy(), values)


def test_a_view_of_a_device_array_and_a_variable_are_copied() -> None:
    array = zeros(4, np.float32, backend="emulator")
    seen = pickle.loads(pickle.dumps(array.view(np.uint8)))
    assert seen.shape == (16,) and seen.address != array.address
    with ptxdsl.use("emulator"):
        module = ptxdsl.load(TABLE)
        variable = copy.deepcopy(module.variables["launches"])
        module.variables["launches"] = 9
        assert variable.numpy() == 5


def test_what_was_never_written_is_so_in_the_copy() -> None:
    @ptx_kernel
    def read(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[0] = x[0]

    array, out = ptxdsl.empty(4, u32, backend="emulator"), np.zeros(1, np.uint32)
    launch = read.configure(1, 1, sanitize="init", backend="emulator")
    with pytest.raises(ptxdsl.UninitializedError):
        launch(copy.deepcopy(array), out)
    array.copy_from(np.arange(4, dtype=np.uint32))
    launch(copy.deepcopy(array), out)


@ptx_kernel
def texels(image: Texture, out: Ptr[f32]) -> None:
    at = (ptx.tid.x.to(f32) + 0.25) * 0.5
    out[ptx.tid.x] = ptx["tex.1d.v4.f32.f32"]((image, (at,)))[0]


@ptx_kernel
def stored(image: Surface) -> None:
    x = ptx.tid.x.bits(s32)
    ptx["sust.b.1d.b32.trap"]((image, (x * 4,)), x * 7)


@pytest.mark.parametrize("make", COPIES)
def test_a_texture_and_a_surface_are_copied_with_their_arrays(
    make: Callable[[Any], Any], rng: np.random.Generator
) -> None:
    picture = rng.standard_normal(9, np.float32)
    texture = Texture(picture, filter="linear", address="border", border=(3.5, 0, 0, 0))
    expected, out = np.zeros(20, np.float32), np.zeros(20, np.float32)
    texels.configure(1, 20, backend="emulator")(texture, expected)
    made = make(texture)
    if make is not copy.copy:
        picture[:] = 0
    texels.configure(1, 20, backend="emulator")(made, out)
    np.testing.assert_array_equal(out, expected)
    pixels = np.zeros(6, np.int32)
    surface, array = pickle.loads(pickle.dumps((Surface(pixels), pixels)))
    stored.configure(1, 6, backend="emulator")(surface)
    np.testing.assert_array_equal(array, np.arange(6) * 7)  # pickled together they are one another's
    assert not pixels.any()


def test_mipmap_levels_and_samplers(rng: np.random.Generator) -> None:
    levels = [rng.standard_normal((n, n), np.float32) for n in (8, 4, 2, 1)]
    options: Any = {"normalized": True, "filter": "linear", "mipmap_filter": "linear", "mipmap_clamp": (1.0, 2.0)}
    made = copy.deepcopy(Texture(levels, **options))
    assert len(made.arrays) == 4 and made.sampling == Texture(levels, **options).sampling
    for one, other in zip(made.arrays, levels):
        np.testing.assert_array_equal(one.owner, other)
    sampler = Sampler(address=("clamp", "border"), filter="linear", force_unnormalized=True)
    assert pickle.loads(pickle.dumps(sampler)).sampling == sampler.sampling


def test_a_tensor_map_is_made_again_of_its_array() -> None:
    array = np.zeros((64, 32), np.float16)
    made = tensor_map(array, (16, 32), swizzle=64, l2_promotion=256)
    other, there = pickle.loads(pickle.dumps((made, array)))
    assert other.seen.address == there.ctypes.data != array.ctypes.data
    assert bytes(other)[8:] == bytes(made)[8:] and repr(other) == repr(made)
    assert copy.copy(made).seen.address == array.ctypes.data


def test_a_tensor_map_of_a_part_of_an_array() -> None:
    array = np.zeros((64, 64), np.float16)
    assert pickle.loads(pickle.dumps(tensor_map(array[:, :32], (16, 32)))).seen.strides == (64, 2)
    assert error_text(lambda: pickle.dumps(tensor_map(array[:, :20], (16, 16)))) == (
        (
            "a tensor map cannot be pickled with its array, of which a row has 40 bytes: numpy packs the rows of a "
            "part of an array, and a tensor map wants multiples of 16 bytes from one to the next"
        ), "  hint: make the map in the process that launches",
    )


def error_text(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(pickle.PicklingError) as caught:
        call()
    first, *_, last = str(caught.value).split("\n")
    return first, last


# ---------------------------------------------------------------------------------------------------------------------
# Errors, settings and results


@pytest.mark.parametrize("number", range(3))
def test_errors_come_from_another_process_as_they_are_here(number: int) -> None:
    with pytest.raises(PtxError) as caught:
        pickled_kernels.failing(number)
    there = elsewhere((pickled_kernels.caught, number), "value[0](value[1])")
    assert type(there) is type(caught.value) and str(there) == str(caught.value)


def test_findings_of_the_sanitizer_are_pickled(rng: np.random.Generator) -> None:
    @ptx_kernel
    def racy(x: Ptr[u32]) -> None:
        x[0] = ptx.tid.x

    with pytest.raises(ptxdsl.RaceError) as caught:
        racy.configure(1, 64, sanitize="all", backend="emulator")(np.zeros(1, np.uint32))
    made = pickle.loads(pickle.dumps(caught.value))
    assert str(made) == str(caught.value) and made.to_json() == caught.value.to_json()
    assert made.findings == caught.value.findings


@pytest.mark.parametrize("make", COPIES)
def test_settings_types_and_results_are_pickled(make: Callable[[Any], Any]) -> None:
    kernel = pickled_kernels.saxpy
    kernel.configure(1, 1, backend="emulator")(0, 1.0, np.zeros(1, np.float32), np.zeros(1, np.float32))
    assert make(f32) is f32 and make(Ptr[f32]) == Ptr[f32] and make(kernel.signature) == kernel.signature
    assert make(ptxdsl.config.current()) == ptxdsl.config.current()
    assert make(kernel.configure(3, 4, sanitize="race").config) == kernel.configure(3, 4, sanitize="race").config
    assert make(kernel.ir()) == kernel.ir() and str(make(kernel.tiers())) == str(kernel.tiers())


def test_parts_of_device_arrays_are_pickled_by_their_values(rng: np.random.Generator) -> None:
    whole = ptxdsl.to_device(rng.random((3, 4), np.float32))
    for part in (whole[1], whole[:, 1:3], whole.T):
        again = pickle.loads(pickle.dumps(part))
        assert type(again) is ptxdsl.DeviceArray
        np.testing.assert_array_equal(again.numpy(), part.numpy())

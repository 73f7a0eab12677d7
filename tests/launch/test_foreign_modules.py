"""A module of PTX that somebody else wrote, as its user sees it: kernels by name, arguments, variables."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from foreign_harness import HEADER, emulated, load

import ptxdsl


def test_which_kernels_a_module_has() -> None:
    m = load(".entry first() { ret; } .func helper() { ret; } .entry second() { ret; }")
    assert list(m) == ["first", "second"]
    assert "first" in m
    assert "helper" not in m
    assert m.get("third") is None
    with pytest.raises(ptxdsl.LaunchError) as error:
        m["secnd"]
    assert error.value.message == "<ptx> has no entry `secnd`; it has first, second"
    assert error.value.hint == "did you mean `second`?"


def test_text_as_nvrtc_and_warp_give_it(tmp_path: Path) -> None:
    """Bytes, and a zero byte at the end."""
    text = HEADER + ".entry k() { ret; }\n\0"
    path = tmp_path / "k.ptx"
    path.write_text(text)
    for given in (text, text.encode(), path):
        assert list(ptxdsl.load(given)) == ["k"]


class Given(ctypes.Structure):
    """What a kernel takes by value: a count and where the elements are."""

    _fields_ = (("count", ctypes.c_uint32), ("data", ctypes.c_uint64))


SUM = """
.entry k(.param .align 8 .b8 given[16], .param .u64 out) {
    .reg .pred %p0; .reg .b32 %r<5>; .reg .b64 %rd<4>;
    ld.param.u32 %r0, [given];
    ld.param.u64 %rd0, [given+8];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
next:
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd0, %rd2;
    ld.global.u32 %r3, [%rd3];
    add.u32 %r2, %r2, %r3;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, %r0;
    @%p0 bra next;
    st.global.u32 [%rd1], %r2;
    ret;
}"""


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_an_address_in_a_struct_is_that_of_a_device_array(sanitize: str | None) -> None:
    m = load(SUM)
    values = np.arange(7, dtype=np.uint32) * 3
    data, out = ptxdsl.to_device(values, backend="emulator"), np.zeros(1, np.uint32)
    launch = m["k"].configure(1, 1, backend="emulator", sanitize=sanitize)
    launch(Given(7, data.address), out)
    assert out[0] == values.sum()
    with pytest.raises(ptxdsl.MemoryFault) as error:
        launch(Given(8, data.address), out)
    assert "a device array" in error.value.message
    del data
    with pytest.raises(ptxdsl.MemoryFault):
        launch(Given(1, values.ctypes.data), out)


def test_a_struct_as_a_record_of_numpy() -> None:
    kind = np.dtype([("count", np.uint32), ("data", np.uint64)], align=True)
    data, out = ptxdsl.to_device(np.arange(5, dtype=np.uint32), backend="emulator"), np.zeros(1, np.uint32)
    load(SUM)["k"].configure(1, 1, backend="emulator")(np.array([(5, data.address)], kind)[0], out)
    assert out[0] == 10


def test_device_arrays_that_another_one_names() -> None:
    """An array of addresses, by which the kernel reads and writes."""
    m = load("""
.entry k(.param .u64 table) {
    .reg .b32 %r<3>; .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [table];
    ld.global.v2.u64 {%rd1, %rd2}, [%rd0];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd3, %r0, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r1, [%rd4];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd5], %r2;
    ret;
}""")
    x = ptxdsl.to_device(np.arange(40, dtype=np.int32), backend="emulator")
    y = ptxdsl.zeros(40, np.int32, backend="emulator")
    emulated(m, 40, np.array([x.address, y.address], np.uint64))
    assert y.numpy().tolist() == list(range(1, 41))


VARIABLES = """
.global .align 4 .u32 count = 5;
.const .align 4 .b8 _ZN4mine5tableE[16];
.global .align 8 .f64 grid[2][3];
.entry _ZN4mine3addEPf(.param .u64 out) {
    .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    atom.global.add.u32 %r1, [count], 1;
    and.b32 %r2, %r0, 3;
    mul.wide.u32 %rd1, %r2, 4;
    mov.u64 %rd2, _ZN4mine5tableE;
    add.u64 %rd2, %rd2, %rd1;
    ld.const.f32 %f0, [%rd2];
    mad.wide.u32 %rd3, %r0, 4, %rd0;
    st.global.f32 [%rd3], %f0;
    ret;
}
.entry first(.param .u64 x) {
    .reg .f64 %fd<1>; .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [x];
    ld.global.f64 %fd0, [%rd0+40];
    st.global.f64 [grid], %fd0;
    ret;
}"""


@pytest.mark.usefixtures("emulated")
def test_variables_of_a_module() -> None:
    m, other = load(VARIABLES), load(VARIABLES)
    assert m.variables["count"].numpy() == 5
    m.variables["count"] = 7
    table = np.array([1.5, -2, 3, 4], np.float32)
    m.variables["table"] = table
    out = np.zeros(8, np.float32)
    m["add"][1, 8](out)
    assert out.tolist() == [*table, *table]
    assert m.variables["count"].numpy() == 15
    assert other.variables["count"].numpy() == 5
    assert m.variables["mine::table"].view(np.float32).numpy().tolist() == table.tolist()
    m.variables["grid"] = 2.5
    m.variables["grid"] = m.variables["grid"].numpy() + np.arange(6.0).reshape(2, 3)
    m["first"][1, 1](m.variables["grid"])
    assert m.variables["grid"].numpy().tolist() == [[7.5, 3.5, 4.5], [5.5, 6.5, 7.5]]
    assert sorted(m.variables) == ["_ZN4mine5tableE", "count", "grid"]


@pytest.mark.usefixtures("emulated")
def test_what_variables_do_not_take() -> None:
    m = load(VARIABLES)
    for name, value, message in (
        ("cuont", 1, "<ptx> has no variable `cuont`; it has count, _ZN4mine5tableE, grid"),
        ("count", np.zeros(3, np.uint8),
         "variable `count` has 4 bytes, uint32 of shape (); 3 bytes came, uint8 of shape (3,)"),
        ("grid", [1, 2],
         "variable `grid` has 48 bytes, float64 of shape (2, 3); 16 bytes came, float64 of shape (2,)"),
    ):
        with pytest.raises(ptxdsl.LaunchError) as error:
            m.variables[name] = value
        assert error.value.message == message
        assert error.value.loc is not None
        assert error.value.loc.file == __file__


def test_names_of_cpp() -> None:
    m = load("".join(f".entry {name}() {{ ret; }}" for name in (
        "_ZN2ns5scaleEv", "_Z4sizeIfEvv", "_Z4sizeIdEvv", "plain", "_ZN12_GLOBAL__N_15innerEi")))
    assert m["ns::scale"] is m["scale"] is m["_ZN2ns5scaleEv"]
    assert m["inner"].entry == "_ZN12_GLOBAL__N_15innerEi"
    assert "size" not in m
    with pytest.raises(ptxdsl.LaunchError) as error:
        m["size"]
    assert error.value.message == "<ptx> has 2 entries `size`: _Z4sizeIfEvv, _Z4sizeIdEvv"
    assert error.value.hint == "give the whole name: `_Z4sizeIfEvv`"


@pytest.mark.usefixtures("emulated")
def test_a_struct_of_one_pointer_takes_an_array() -> None:
    """CuTe passes each tensor as a struct by value; where its shape is known all that is left is the address."""
    m = load("""
.entry k(.param .align 8 .b8 x[8], .param .align 8 .b8 pair[8]) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.b64 %rd0, [x];
    ld.param.v2.b32 {%r0, %r1}, [pair];
    add.s32 %r2, %r0, %r1;
    st.global.b32 [%rd0], %r2;
    ret;
}""")
    pair = np.array([3, 4], np.int32)
    for given in (pair.tobytes(), (ctypes.c_int32 * 2)(3, 4), 3 | 4 << 32, np.uint64(3 | 4 << 32)):
        x = np.zeros(2, np.int32)
        m["k"][1, 1](x, given)
        assert x.tolist() == [7, 0]
    device = ptxdsl.zeros(2, np.int32)
    m["k"][1, 1](device.address, pair.tobytes())
    assert device.numpy().tolist() == [7, 0]
    with pytest.raises(ptxdsl.MemoryFault):
        m["k"][1, 1](np.zeros(0, np.int32), 0)

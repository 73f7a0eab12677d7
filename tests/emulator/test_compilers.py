"""What compilers emit and people seldom write: constructs of nvcc, NVRTC, Triton, Numba and Warp, through load."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_harness import HEADER, emulated, load

import ptxdsl
from ptxdsl import ir
from ptxdsl.text import to_text
from ptxdsl.types import pred


def test_a_generic_address_of_local_memory_is_another_place_in_each_lane() -> None:
    """Debug builds keep variables in local memory behind generic addresses, and addresses of them there too."""
    m = load("""
.entry k(.param .u64 out) {
    .local .align 8 .b8 depot[16];
    .reg .b32 %r<4>; .reg .b64 %rd<8>;
    mov.u64 %rd0, depot;
    cvta.local.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x;
    st.u32 [%rd1], %r0;
    st.u32 [%rd1+4], 5;
    add.u64 %rd2, %rd1, 0;
    st.u64 [%rd1+8], %rd2;
    ld.u64 %rd3, [%rd1+8];
    ld.u32 %r1, [%rd3];
    ld.u32 %r2, [%rd1+4];
    mad.lo.u32 %r3, %r1, 10, %r2;
    ld.param.u64 %rd4, [out];
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd6, %rd4, %rd5;
    st.global.u32 [%rd6], %r3;
    ret;
}""")
    out = np.full(70, -1, np.int32)
    emulated(m, 70, out)
    assert out.tolist() == [10 * t + 5 for t in range(70)]


def test_a_selected_pointer_may_be_local() -> None:
    """Where one way gives an array's address and the other that of a local variable, lanes read their own."""
    m = load("""
.entry k(.param .u64 x, .param .u32 which) {
    .local .align 4 .b8 depot[4];
    .reg .pred %p0; .reg .b32 %r<4>; .reg .b64 %rd<8>;
    mov.u64 %rd0, depot;
    cvta.local.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x;
    st.local.u32 [depot], %r0;
    ld.param.u64 %rd2, [x];
    ld.param.u32 %r1, [which];
    setp.ne.u32 %p0, %r1, 0;
    selp.b64 %rd3, %rd2, %rd1, %p0;
    ld.u32 %r2, [%rd3];
    mad.wide.u32 %rd4, %r0, 4, %rd2;
    st.u32 [%rd4], %r2;
    ret;
}""")
    for which, wanted in ((0, list(range(40))), (1, [7] * 40)):
        x = np.full(40, 7, np.int32)
        emulated(m, 40, x, which)
        assert x.tolist() == wanted


def test_the_second_name_of_a_function() -> None:
    """nvcc gives the complete and the base destructor of a class one body."""
    m = load("""
.func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %r<2>;
    ld.param.u32 %r0, [x];
    add.u32 %r1, %r0, %r0;
    st.param.b32 [r], %r1;
    ret;
}
.func (.param .b32 r) again(.param .b32 x);
.alias again, twice;
.entry k(.param .u64 out) {
    .reg .b32 %r<2>; .reg .b64 %rd<1>;
    .param .b32 given; .param .b32 back;
    ld.param.u64 %rd0, [out];
    st.param.b32 [given], 21;
    call.uni (back), again, (given);
    ld.param.b32 %r0, [back];
    st.global.u32 [%rd0], %r0;
    ret;
}""")
    out = np.zeros(1, np.uint32)
    emulated(m, 1, out)
    assert out[0] == 42


def test_a_table_of_virtual_functions_that_share_a_destructor() -> None:
    """Addresses of functions in a variable, one by its second name; called through a register."""
    m = load("""
.func (.param .b32 r) double_it(.param .b32 x) {
    .reg .b32 %r<2>;
    ld.param.u32 %r0, [x];
    add.u32 %r1, %r0, %r0;
    st.param.b32 [r], %r1;
    ret;
}
.func (.param .b32 r) other(.param .b32 x);
.alias other, double_it;
.func (.param .b32 r) negate(.param .b32 x) {
    .reg .b32 %r<2>;
    ld.param.u32 %r0, [x];
    neg.s32 %r1, %r0;
    st.param.b32 [r], %r1;
    ret;
}
.global .align 8 .u64 table[3] = {negate, other, double_it};
.entry k(.param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %rd<6>;
    .param .b32 given; .param .b32 back;
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    rem.u32 %r1, %r0, 3;
    mul.wide.u32 %rd1, %r1, 8;
    mov.u64 %rd2, table;
    add.u64 %rd3, %rd2, %rd1;
    ld.global.u64 %rd4, [%rd3];
    st.param.b32 [given], %r0;
shape: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (back), %rd4, (given), shape;
    ld.param.b32 %r2, [back];
    mad.wide.u32 %rd5, %r0, 4, %rd0;
    st.global.u32 [%rd5], %r2;
    ret;
}""")
    out = np.zeros(40, np.int32)
    emulated(m, 40, out)
    assert out.tolist() == [2 * t if t % 3 else -t for t in range(40)]


def test_atomics_spelled_as_the_headers_of_cuda_spell_them() -> None:
    """The space before the scope, the operation before the semantics: ptxas takes both."""
    m = load("""
.entry k(.param .u64 out) {
    .reg .b32 %r<3>; .reg .b64 %rd<1>;
    ld.param.u64 %rd0, [out];
    atom.global.cta.add.u32 %r0, [%rd0], 1;
    atom.add.release.gpu.u32 %r1, [%rd0], 2;
    atom.global.relaxed.sys.max.s32 %r2, [%rd0+4], 9;
    atom.global.gpu.acq_rel.add.u32 %r2, [%rd0+8], 3;
    red.global.gpu.relaxed.add.f32 [%rd0+12], 0f3F800000;
    ret;
}""")
    out = np.zeros(4, np.uint32)
    emulated(m, 40, out)
    assert out[:3].tolist() == [120, 9, 120]
    assert out.view(np.float32)[3] == 40


def test_two_clocks_in_one_kernel() -> None:
    """A wait with a time limit reads the timer twice, here with and without a guard."""
    m = load("""
.entry k(.param .u64 out) {
    .reg .pred %p0; .reg .b64 %rd<5>;
    ld.param.u64 %rd0, [out];
    mov.u64 %rd1, %globaltimer;
    setp.ne.u64 %p0, %rd0, 0;
    @%p0 mov.u64 %rd2, %globaltimer;
    mov.u64 %rd3, %clock64;
    sub.u64 %rd4, %rd2, %rd1;
    st.global.u64 [%rd0], %rd4;
    ret;
}""")
    out = np.full(1, -1, np.int64)
    emulated(m, 1, out)
    assert 0 <= out[0] < 10**9


def test_blocks_of_a_cooperative_launch_meet_in_the_grids_workspace() -> None:
    """cooperative_groups finds the word to count in behind the address in %envreg1 and %envreg2."""
    m = load("""
.entry k(.param .u64 x) {
    .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %rd<8>;
    ld.param.u64 %rd0, [x];
    mov.u32 %r0, %envreg1;
    mov.u32 %r1, %envreg2;
    mov.b64 %rd1, {%r1, %r0};
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd0, %rd2;
    add.u32 %r4, %r2, 100;
    st.global.u32 [%rd3], %r4;
    atom.add.release.gpu.u32 %r5, [%rd1+4], 1;
wait:
    ld.acquire.gpu.u32 %r6, [%rd1+4];
    setp.lt.u32 %p0, %r6, %r3;
    @%p0 bra wait;
    add.u32 %r7, %r2, 1;
    rem.u32 %r8, %r7, %r3;
    mul.wide.u32 %rd4, %r8, 4;
    add.u64 %rd5, %rd0, %rd4;
    ld.global.u32 %r9, [%rd5];
    mul.wide.u32 %rd6, %r3, 4;
    add.u64 %rd7, %rd3, %rd6;
    st.global.u32 [%rd7], %r9;
    ret;
}""")
    x = np.zeros(10, np.int32)
    m["k"].configure(5, 1, backend="emulator", cooperative=True)(x)
    assert x.tolist() == [100, 101, 102, 103, 104, 101, 102, 103, 104, 100]
    with pytest.raises(ptxdsl.MemoryFault):
        m["k"].configure(1, 1, backend="emulator")(x)


def test_the_systems_shared_memory_is_zeros_and_checked() -> None:
    """Groups of several warps meet in the reserved KiB below the first shared variable."""
    m = load("""
.entry k(.param .u64 out, .param .u32 at) {
    .shared .align 4 .b32 mine;
    .reg .b32 %r<6>; .reg .b64 %rd<5>;
    ld.param.u64 %rd0, [out];
    ld.param.u32 %r0, [at];
    mov.u32 %r1, %reserved_smem_offset_1;
    add.u32 %r1, %r1, %r0;
    cvt.u64.u32 %rd1, %r1;
    cvta.shared.u64 %rd2, %rd1;
    mov.u32 %r2, %tid.x;
    st.shared.u32 [mine], 0;
    atom.or.b32 %r3, [%rd2], 4;
    bar.sync 0;
    ld.shared.u32 %r4, [mine];
    ld.u32 %r3, [%rd2];
    add.u32 %r3, %r3, %r4;
    mad.wide.u32 %rd3, %r2, 4, %rd0;
    st.global.u32 [%rd3], %r3;
    ret;
}""")
    out = np.zeros(64, np.int32)
    for sanitize in (None, "all"):
        m["k"].configure(1, 64, backend="emulator", sanitize=sanitize)(out, 0)
        assert set(out.tolist()) == {4}
        out[:] = 0
    with pytest.raises(ptxdsl.MemoryFault):
        emulated(m, 64, out, 4096)


def test_a_rounding_behind_the_types_of_a_product() -> None:
    """nvcc writes the rounding of wmma.mma.f64 last, the manual first."""
    text = """
.entry k() {
    .reg .f64 %fd<6>;
    wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn {%fd0, %fd1}, {%fd2}, {%fd3}, {%fd4, %fd5};
    ret;
}"""
    assert "m8n8k4.rn.f64.f64.f64.f64 {" in to_text(load(text).module)


def test_a_number_for_a_predicate_that_must_be_a_register() -> None:
    """Triton gives the first wgmma.mma_async of a loop 0 for its predicate; ptxas takes it."""
    text = HEADER.replace("sm_80", "sm_90a") + """
.entry k() {
    .reg .b32 %r<8>; .reg .b64 %rd<2>;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 0, 1, 1, 0, 0;
}"""
    body = ptxdsl.load(text)["k"].compiled({}).function.body
    assert body is not None
    move, product = (s for s in body if isinstance(s, ir.Instruction))
    assert (move.form.mnemonic, move.operands[1]) == ("mov.pred", ir.Immediate(0, pred))
    assert product.operands[3] == move.operands[0]


@pytest.mark.parametrize("both", ["mov.b64 {%r1, %r2}, %rd1;", "ld.global.v2.u32 {%r1, %r2}, [%rd0];"])
def test_two_results_of_which_one_differs_from_lane_to_lane(both: str) -> None:
    """One register is the same in all lanes, the other is written again where lanes have parted."""
    m = load(f"""
.entry k(.param .u64 x) {{
    .reg .pred %p0; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [x];
    ld.global.u64 %rd1, [%rd0];
    mov.u32 %r0, %tid.x;
    {both}
    and.b32 %r3, %r0, 1;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 mov.u32 %r1, %r0;
    mad.lo.u32 %r4, %r2, 1000, %r1;
    mad.wide.u32 %rd2, %r0, 4, %rd0;
    st.global.u32 [%rd2+8], %r4;
    ret;
}}""")
    x = np.zeros(42, np.int32)
    x[:2] = 5, 6
    emulated(m, 40, x)
    assert x[2:].tolist() == [6000 + (5 if t % 2 else t) for t in range(40)]


@pytest.mark.usefixtures("emulated")
def test_each_call_of_a_recursive_function_has_its_local_variables() -> None:
    """Unoptimised code keeps what it needs after the call there, and may hand its address down."""
    m = load("""
.func (.param .b32 r) total(.param .b32 n, .param .b64 above) {
    .local .align 8 .b8 depot[12];
    .reg .pred %p0; .reg .b32 %r<9>; .reg .b64 %rd<4>;
    .param .b32 next; .param .b64 mine; .param .b32 back;
    ld.param.u32 %r0, [n];
    ld.param.u64 %rd0, [above];
    mov.u64 %rd1, depot;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [depot+4], %r0;
    st.local.u32 [depot+8], 0;
    ld.u32 %r1, [%rd0];
    st.u32 [%rd2], %r1;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra done;
    sub.u32 %r2, %r0, 1;
    st.param.b32 [next], %r2;
    add.u64 %rd3, %rd2, 4;
    st.param.b64 [mine], %rd3;
    call.uni (back), total, (next, mine);
    ld.param.b32 %r3, [back];
    st.local.u32 [depot+8], %r3;
done:
    ld.u32 %r4, [%rd2+4];
    ld.local.u32 %r5, [depot];
    ld.local.u32 %r6, [depot+8];
    mad.lo.u32 %r7, %r5, 100, %r4;
    add.u32 %r8, %r7, %r6;
    st.param.b32 [r], %r8;
    ret;
}
.entry k(.param .u64 out) {
    .local .align 4 .b8 first[4];
    .reg .b32 %r<2>; .reg .b64 %rd<5>;
    .param .b32 n; .param .b64 above; .param .b32 back;
    mov.u32 %r0, %tid.x;
    st.local.u32 [first], %r0;
    mov.u64 %rd0, first;
    cvta.local.u64 %rd1, %rd0;
    st.param.b32 [n], %r0;
    st.param.b64 [above], %rd1;
    call.uni (back), total, (n, above);
    ld.param.b32 %r1, [back];
    ld.param.u64 %rd2, [out];
    mad.wide.u32 %rd3, %r0, 4, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}""")

    def total(n: int, above: int) -> int:
        return above * 100 + n + (total(n - 1, n) if n else 0)

    out = np.zeros(10, np.int32)
    for sanitize in (None, "all"):
        m["k"].configure(1, 10, sanitize=sanitize)(out)
        assert out.tolist() == [total(n, n) for n in range(10)]


@pytest.mark.usefixtures("emulated")
def test_a_call_saves_only_what_is_needed_after_it() -> None:
    """Unoptimised functions have hundreds of registers, and the stack is as deep as its frames are small."""
    steps = "\n".join(f"add.u32 %r{n + 1}, %r{n}, {n};" for n in range(400))
    m = load(f"""
.func (.param .b32 r) down(.param .b32 n) {{
    .reg .pred %p0; .reg .b32 %r<402>; .reg .b32 %n; .reg .b32 %back;
    .param .b32 next; .param .b32 got;
    ld.param.u32 %n, [n];
    ld.param.u32 %r0, [n];
    {steps}
    mov.u32 %back, 0;
    setp.eq.u32 %p0, %n, 0;
    @%p0 bra done;
    sub.u32 %n, %n, 1;
    st.param.b32 [next], %n;
    call.uni (got), down, (next);
    ld.param.b32 %back, [got];
done:
    add.u32 %back, %back, %r400;
    st.param.b32 [r], %back;
    ret;
}}
.entry k(.param .u64 out) {{
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    .param .b32 n; .param .b32 got;
    mov.u32 %r0, %tid.x;
    st.param.b32 [n], %r0;
    call.uni (got), down, (n);
    ld.param.b32 %r1, [got];
    ld.param.u64 %rd0, [out];
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r1;
    ret;
}}""")
    out = np.zeros(100, np.uint32)
    m["k"][1, 100](out)
    added = sum(range(400))
    assert out.tolist() == [sum(level + added for level in range(n + 1)) for n in range(100)]


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize(("spread", "kind", "count"), [(0, "b32", 4), (0, "b64", 2), (0, "b32", 2), (1, "b32", 4)])
def test_lanes_that_store_the_same_vector(spread: int, kind: str, count: int) -> None:
    """Triton's lanes all hold what a reduction gives, and store it all; lanes that differ are a race."""
    bits, letter = int(kind[1:]), "r" if kind == "b32" else "rd"
    values = ", ".join(f"%{letter}{n}" for n in range(4, 4 + count))
    made = "\n".join(f"mov.b32 %r{n}, {n * 1000};" for n in range(4, 4 + count))
    if bits == 64:
        made += "\n".join(f"cvt.u64.u32 %rd{n}, %r{n};" for n in range(4, 4 + count))
    m = load(f"""
.entry k(.param .u64 out) {{
    .shared .align 16 .b8 tile[64];
    .reg .b32 %r<9>; .reg .b64 %rd<9>;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 4;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %r1, {count * bits // 8}, %r2;
    {made}
    mad.lo.u32 %r5, %r0, {spread}, %r5;
    st.shared.v{count}.{kind} [%r2], {{{values}}};
    ret;
}}""")
    launch = m["k"].configure(1, 32, sanitize=("race",))
    if not spread:
        launch(0)
        return
    with pytest.raises(ptxdsl.RaceError) as error:
        launch(0)
    assert "tile[4] in shared memory with one instruction; which value stays is not known" in error.value.message


_SHORT = """
.const .align 4 .u32 first[3] = {7, 8, 9};
.global .align 4 .u32 between[2] = {1, 2};
.const .align 8 .b64 numbers[5] = {100, 200, 300, 400, 500};
.entry k(.param .u64 out, .param .align 8 .b8 table[24], .param .u32 which) {
    .reg .pred %p0; .reg .b32 %r<16>; .reg .b64 %rd<16>;
    mov.b32 %r0, table;
    mov.b32 %r1, numbers+8;
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 3;
    add.s32 %r4, %r0, %r3;
    add.s32 %r5, %r1, %r3;
    ld.param.b64 %rd0, [%r4+8];
    ld.const.b64 %rd1, [%r5+-8];
    cvt.u64.u32 %rd2, %r5;
    cvta.const.u64 %rd3, %rd2;
    ld.u64 %rd4, [%rd3];
    cvt.u64.u32 %rd5, %r0;
    cvta.param.u64 %rd6, %rd5;
    ld.u64 %rd7, [%rd6+8];
    mov.b64 %rd8, first;
    ld.const.u32 %r6, [%rd8+4];
    cvta.const.u64 %rd9, %rd8;
    ld.u32 %r7, [%rd9+8];
    ld.param.u32 %r8, [which];
    setp.ne.u32 %p0, %r8, 0;
    mov.b64 %rd10, table;
    @%p0 cvt.u64.u32 %rd10, %r0;
    ld.param.b64 %rd11, [%rd10];
    add.u64 %rd0, %rd0, %rd1;
    add.u64 %rd0, %rd0, %rd4;
    add.u64 %rd0, %rd0, %rd7;
    add.u64 %rd0, %rd0, %rd11;
    add.u32 %r6, %r6, %r7;
    cvt.u64.u32 %rd12, %r6;
    add.u64 %rd0, %rd0, %rd12;
    ld.param.u64 %rd13, [out];
    mad.wide.u32 %rd14, %r2, 8, %rd13;
    st.global.u64 [%rd14], %rd0;
    ret;
}"""


def test_addresses_of_parameters_and_constants_in_32_bits() -> None:
    """LLVM takes them so for Triton: distances are computed with, accessed, and made generic."""
    m, table = load(_SHORT), np.array([3000, 5000, 9000], np.uint64)
    for which in (0, 1):
        for sanitize in (None, "all"):
            out = np.zeros(2, np.uint64)
            m["k"].configure(1, 2, backend="emulator", sanitize=sanitize)(out, table, which)
            wanted = [5000 + 100 + 200 + 5000 + 3000 + 17, 9000 + 200 + 300 + 5000 + 3000 + 17]
            assert out.tolist() == wanted


def test_a_short_address_beyond_its_space() -> None:
    m, table, out = load(_SHORT), np.zeros(3, np.uint64), np.zeros(1000, np.uint64)
    with pytest.raises(ptxdsl.MemoryFault):
        emulated(m, 1000, out, table, 0)


_ACCUMULATED = HEADER.replace("sm_80", "sm_90a") + """
.entry k(.param .u64 out, .param .u32 adds) {
    .shared .align 1024 .b8 tile[4096];
    .reg .pred %adds; .reg .f32 %f<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u32 %r0, [adds];
    setp.ne.u32 %adds, %r0, 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 32, %r2;
    mov.u32 %r4, 0x3C003C00;
    st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4};
    st.shared.v4.b32 [%r3+16], {%r4, %r4, %r4, %r4};
    fence.proxy.async;
    bar.sync 0;
    shr.u32 %r5, %r2, 4;
    cvt.u64.u32 %rd0, %r5;
    or.b64 %rd0, %rd0, 0x0000001000080000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd0, SCALE, 1, 1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd0, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %rd2, %r1, 16, %rd1;
    st.global.v4.f32 [%rd2], {%f0, %f1, %f2, %f3};
    ret;
}"""


@pytest.mark.usefixtures("emulated")
def test_accumulators_that_are_only_written() -> None:
    """Compilers give the first product registers that nobody has written, and say that it does not add."""
    for scale in ("%adds", "!%adds", "0", "1"):
        m = ptxdsl.load(_ACCUMULATED.replace("SCALE", scale))
        for adds in (0, 1):
            read = scale == "1" or (scale == "%adds" and adds) or (scale == "!%adds" and not adds)
            out = np.zeros((128, 4), np.float32)
            launch = m["k"].configure(1, 128, sanitize=("init",))
            if not read:
                launch(out, adds)
                assert (out == 32).all()
                continue
            with pytest.raises(ptxdsl.UninitializedError, match="reads %f0, which this thread has not written"):
                launch(out, adds)


_ENDED = HEADER.replace("8.0", "8.6").replace("sm_80", "sm_100a") + """
.entry k(.param .u64 out) {
    .shared .align 16 .b32 place;
    .reg .pred %first; .reg .b32 %r<10>; .reg .b64 %rd<4>;
    mov.u32 %r0, %tid.x;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;
    ld.shared.u32 %r1, [place];
    mov.b32 %r2, 0x3F800000;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2, %r3};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r1];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
    ld.param.u64 %rd0, [out];
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.b32 [%rd1], %r4;
    exit;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r7, %r8};
    ret;
}"""


def test_code_behind_the_end_and_columns_that_nobody_needs() -> None:
    """Registers of asynchronous instructions that nothing reaches; a tile filled up with one that has no value."""
    m = ptxdsl.load(_ENDED)
    for sanitize in (None, "all"):
        out = np.zeros(32, np.float32)
        m["k"].configure(1, 32, backend="emulator", sanitize=sanitize)(out)
        assert (out == 1).all()


def test_the_barrier_of_the_first_block_of_a_cluster() -> None:
    """Its address is that of the own one without bits of the block's number, as CUTLASS and Triton make it."""
    m = ptxdsl.load(HEADER.replace("8.0", "8.6").replace("sm_80", "sm_90a") + """
.entry k(.param .u64 out) {
    .shared .align 16 .b64 bar;
    .shared .align 16 .b32 told[8];
    .reg .pred %done; .reg .b32 %r<10>; .reg .b64 %rd<6>;
    mov.u32 %r0, bar;
    mov.u32 %r1, told;
    mov.u32 %r2, %cluster_ctarank;
    mbarrier.init.shared.b64 [%r0], 4;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    and.b32 %r3, %r0, 0xFCFFFFFF;
    and.b32 %r4, %r1, 0xFCFFFFFF;
    mad.lo.u32 %r4, %r2, 4, %r4;
    add.u32 %r6, %r2, 100;
    st.shared::cluster.u32 [%r4], %r6;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];
wait:
    setp.ne.u32 %done, %r2, 0;
    @!%done mbarrier.try_wait.parity.acquire.cluster.shared.b64 %done, [%r0], 0;
    @!%done bra wait;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.param.u64 %rd0, [out];
    mov.u32 %r7, %ctaid.x;
    mad.wide.u32 %rd1, %r7, 16, %rd0;
    ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [told];
    setp.eq.u32 %done, %r2, 0;
    @%done st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};
    ret;
}""")
    for options in ({}, {"seed": 5}, {"sanitize": "all"}):
        out = np.zeros((8, 4), np.uint32)
        m["k"].configure(8, 1, cluster=4, backend="emulator", **options)(out)
        assert out[::4].tolist() == [[100, 101, 102, 103]] * 2
        assert not out[1:4].any()

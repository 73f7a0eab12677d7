"""PTX as others write it: old targets and versions, addresses of 32 bits, and what ptxas takes beyond the manual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from isa_modules import instruction, refused, sample

import ptxdsl
from ptxdsl import isa
from ptxdsl.errors import LaunchError, MemoryFault, ParseError, VerifyError
from ptxdsl.isa.legacy import legacy_needs
from ptxdsl.isa.targets import unmet

REGISTERS = (
    ".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>;"
)


def program(body: str, *, head: str = ".version 6.5\n.target sm_30\n.address_size 64", outside: str = "") -> str:
    """A kernel of two pointers, in %rd1 and %rd2."""
    return f"""{head}
{outside}
.visible .entry k(.param .u64 given, .param .u64 wanted)
{{
    {REGISTERS}
    ld.param.u64 %rd1, [given];
    ld.param.u64 %rd2, [wanted];
    {body}
    ret;
}}"""


def run(text: str, given: Any, result: Any, threads: int = 1, shared: int = 0) -> Any:
    """What the kernel writes into an array like ``result``, which holds something else before."""
    out = np.full_like(result, 77)
    ptxdsl.load(text)["k"].configure(1, threads, shared=shared, backend="emulator")(given, out)
    return out


# ---------------------------------------------------------------------------------------------------------------------
# Targets and versions before those that ptxdsl prints


@pytest.mark.parametrize(("version", "target"), [
    ("3.0", "sm_30"), ("6.0", "sm_70"), ("9.0", "sm_62"), ("4.2", "sm_53"),
])
def test_shuffles_and_votes_without_sync(version: str, target: str, rng: np.random.Generator) -> None:
    text = program("""
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd3, %r1, 4;
        add.u64 %rd1, %rd1, %rd3;
        add.u64 %rd2, %rd2, %rd3;
        ld.global.u32 %r2, [%rd1];
        shfl.bfly.b32 %r3|%p1, %r2, 5, 31;
        setp.gt.s32 %p2, %r3, 0;
        vote.ballot.b32 %r4, %p2;
        xor.b32 %r3, %r3, %r4;
        st.global.u32 [%rd2], %r3;""", head=f".version {version}\n.target {target}\n.address_size 64")
    given = rng.integers(-100, 100, 32, np.int32)
    swapped = given[np.arange(32) ^ 5]
    ballot = sum(1 << lane for lane in range(32) if swapped[lane] > 0)
    assert (run(text, given, given, 32) == (swapped.view(np.uint32) ^ np.uint32(ballot)).view(np.int32)).all()


def test_shuffles_without_sync_are_gone_from_sm_70_on() -> None:
    with pytest.raises(VerifyError, match=r"`vote.ballot.b32` is gone since PTX 6.4") as caught:
        ptxdsl.load(program("vote.ballot.b32 %r1, %p1;", head=".version 6.4\n.target sm_72\n.address_size 64"))
    assert caught.value.hint == "say which lanes take part: `vote.sync.ballot.b32`"


@pytest.mark.ptxas
def test_an_old_target_is_assembled_for_the_lowest_that_there_is() -> None:
    kernel = ptxdsl.load(program("st.global.u32 [%rd2], 1;"))["k"]
    assert kernel.cubin()[:4] == b"\x7fELF"
    assert kernel.attributes().num_regs > 0


@pytest.mark.parametrize(("line", "version", "target", "message"), [
    ("shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", "5.0", "sm_60", "needs PTX 6.0, and this module is PTX 5.0"),
    ("shfl.up.b32 %r1, %r2, 1, 0;", "5.0", "sm_20", "needs sm_30, and this module is for sm_20"),
    ("fma.rn.f32 %f1, %f2, %f3, %f4;", "2.0", "sm_13", "needs sm_20, and this module is for sm_13"),
    ("atom.global.add.f64 %fd1, [%rd1], %fd2;", "6.0", "sm_53", "needs sm_60, and this module is for sm_53"),
    ("ld.acquire.gpu.u32 %r1, [%rd1];", "6.0", "sm_62", "needs sm_70, and this module is for sm_62"),
    ("redux.sync.add.u32 %r1, %r2, -1;", "7.0", "sm_72", "needs sm_80, and this module is for sm_72"),
    ("red.min.u64 [%rd1], %rd2;", "4.3", "sm_20", "needs sm_32, and this module is for sm_20"),
    ("madc.hi.cc.u64 %rd1, %rd2, %rd3, %rd4;", "4.0", "sm_32", "needs PTX 4.3, and this module is PTX 4.0"),
])
def test_what_old_targets_lack(line: str, version: str, target: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        ptxdsl.load(program(line, head=f".version {version}\n.target {target}"))
    assert caught.value.message.endswith(message)


@pytest.mark.ptxas
@pytest.mark.parametrize(("version", "target"), [
    ((4, 3), "sm_20"), ((4, 0), "sm_32"), ((6, 2), "sm_53"), ((6, 0), "sm_70"),
])
def test_old_targets_have_what_ptxas_says(version: tuple[int, int], target: str, rng: np.random.Generator) -> None:
    textures = ("call", "cvta", "sured", "suq", "tex", "tld4", "txq")  # what these need is for their operands to say
    rows = [row for opcode in isa.opcodes() if opcode not in textures for row in isa.rows(opcode)]
    forms = [form for number in rng.permutation(len(rows))[:150] for form in sample(rows[number], rng, 0)[:2]]
    lines = {instruction(form): form for form in forms}
    out = refused(list(lines), target, version, arch="sm_75")
    wrong = []
    for at, (line, form) in enumerate(lines.items()):
        lacks = unmet((*form.needs, *legacy_needs(form.mnemonic)), version, target) is not None
        if lacks != (at in out):
            wrong.append(f"{line} PTX {version} {target}: ptxas {out.get(at, 'takes it')!r}")
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------------------------------------------------------------
# What ptxas takes


def test_operands_that_are_sums() -> None:
    text = program("""
        ld.global.u32 %r1, [%rd1];
        st.global.u32 [%rd2], %r1 + 40;
        mov.u64 %rd3, %rd2+4;
        add.s32 %r2, %r1+-3, %r1+1;
        st.global.u32 [%rd3], %r2;""")
    assert run(text, np.array([2], np.int32), np.zeros(2, np.int32)).tolist() == [42, 2]


def test_floats_in_untyped_registers_twice_their_size() -> None:
    text = program("""
        mov.b64 %rd3, 0x0123456789abcdef;
        ld.global.f32 %rd3, [%rd1+4];
        st.global.f32 [%rd2], %rd3;
        st.global.b64 [%rd2+8], %rd3;""")
    given = np.array([3.0, -2.5], np.float32)
    out = run(text, given, np.zeros(4, np.uint32))
    assert out.tolist() == [given.view(np.uint32)[1], 77, given.view(np.uint32)[1], 0]


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_a_variable_is_meant_where_it_lies_without_its_space_too(sanitize: Any) -> None:
    text = program("""
        .shared .align 4 .u32 ours[2];
        .local .align 4 .b8 mine[8];
        ld.u32 %r1, [%rd1];
        st.u32 [ours+4], %r1;
        atom.add.u32 %r2, [ours+4], 5;
        ld.u32 %r3, [ours+4];
        st.u32 [mine], %r3;
        ld.volatile.u32 %r4, [mine];
        atom.inc.u32 %r5, [total], 99;
        ld.u32 %r6, [total];
        st.global.v4.u32 [%rd2], {%r2, %r4, %r5, %r6};""", outside=".global .u32 total = 7;")
    out = np.zeros(4, np.uint32)
    ptxdsl.load(text)["k"].configure(1, 1, backend="emulator", sanitize=sanitize)(np.array([30], np.uint32), out)
    assert out.tolist() == [30, 35, 7, 8]


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_a_local_variable_without_its_space_is_of_each_thread(sanitize: Any) -> None:
    text = program("""
        .local .align 4 .b8 mine[8];
        mov.u32 %r1, %tid.x;
        st.u32 [mine], 7;
        st.u32 [mine+4], %r1;
        ld.u32 %r2, [mine];
        ld.u32 %r3, [mine+4];
        add.u32 %r3, %r3, %r2;
        mad.wide.u32 %rd2, %r1, 4, %rd2;
        st.global.u32 [%rd2], %r3;""")
    out = np.zeros(40, np.uint32)
    ptxdsl.load(text)["k"].configure(1, 40, backend="emulator", sanitize=sanitize)(0, out)
    assert (out == np.arange(7, 47)).all()


def test_variables_of_a_function_that_last() -> None:
    text = program("""
        .global .u32 total = 5;
        .const .align 8 .u16 step[2] = {3, 4};
        ld.const.u16 %r1, [step+2];
        atom.global.add.u32 %r2, [total], %r1;
        { .global .u32 total = 100; atom.add.u32 %r3, [total], 1; }
        call (%r4), other;
        st.global.v4.u32 [%rd2], {%r1, %r2, %r3, %r4};""", outside="""
        .global .u32 step = 9;
        .func (.reg .u32 r) other() { .global .u32 total = 1000; atom.add.u32 r, [total], 1; ret; }""")
    module = ptxdsl.load(text)
    out = np.zeros(4, np.uint32)
    for launch in range(2):
        module["k"].configure(1, 1, backend="emulator")(0, out)
        assert out.tolist() == [4, 5 + 4 * launch, 100 + launch, 1000 + launch]


def test_numbers_as_predicates() -> None:
    text = program("""
        setp.eq.u32 %p1, 1, 0;
        @%p1 bra DONE;
        setp.ne.u32 %p1, 1, 1;
        vote.sync.ballot.b32 %r1, 1, 0x1;
        vote.sync.any.pred %p1, 0, 0x1;
        selp.u32 %r2, 1, 2, %p1;
        not.pred %p1, 0;
        selp.u32 %r3, 3, 4, %p1;
        st.global.v2.u32 [%rd2], {%r1, %r2};
        st.global.u32 [%rd2+8], %r3;
    DONE:""", head=".version 6.5\n.target sm_70\n.address_size 64")
    assert run(text, 0, np.zeros(3, np.uint32)).tolist() == [1, 2, 3]


def test_vectors_as_registers_and_parameters(rng: np.random.Generator) -> None:
    outside = """
    .func (.reg .v2 .u32 both) turned(.reg .v2 .u32 pair, .reg .u32 more)
    {
        .reg .v2 .u32 other;
        mov.u32 other.x, pair.y;
        add.u32 other.y, pair.r, more;
        mov.v2.u32 both, other;
        ret;
    }"""
    text = program("""
        .reg .v2 .u32 v;
        .reg .v4 .u16 w;
        ld.global.v2.u32 v, [%rd1];
        call (v), turned, (v, 7);
        mov.b64 %rd3, v;
        st.global.v2.u32 [%rd2], v;
        st.global.u64 [%rd2+8], %rd3;
        mov.b64 {%h1, %h2, %h3, %h4}, %rd3;
        mov.v4.u16 w, {%h2, %h3, %h4, %h1};
        mov.v4.u16 {%h1, %h2, %h3, %h4}, {%h2, %h1, w.z, w.w};
        st.global.v4.u16 [%rd2+16], {%h1, %h2, %h3, %h4};""", outside=outside)
    given = rng.integers(0, 2**31, 2, np.uint32)
    a, b = given.tolist()
    pair = np.array([b, a + 7], np.uint32)
    h = pair.view(np.uint16)
    last = np.array([h[1], h[0], h[3], h[0]], np.uint16).view(np.uint32)
    assert run(text, given, np.zeros(6, np.uint32)).tolist() == [*pair, *pair, *last]


@pytest.mark.parametrize(("first", "then", "wanted"), [
    ("sub.cc.u32 %r2, 0, 1;", "addc.u32 %r3, 1, 0;", 1), ("sub.cc.u32 %r2, 1, 0;", "addc.u32 %r3, 1, 0;", 2),
    ("add.cc.u32 %r2, 0, 0;", "subc.u32 %r3, 5, 1;", 3), ("add.cc.u32 %r2, -1, 1;", "subc.u32 %r3, 5, 1;", 4),
    ("sub.cc.u32 %r2, 0, 1;", "subc.u32 %r3, 5, 1;", 3), ("add.cc.u32 %r2, -1, 1;", "addc.u32 %r3, 5, 1;", 7),
])
def test_a_carry_between_additions_and_subtractions_is_the_adders(first: str, then: str, wanted: int) -> None:
    text = program(f"{first} {then} st.global.u32 [%rd2], %r3;")
    assert run(text, np.zeros(1, np.uint32), np.zeros(1, np.uint32)).tolist() == [wanted]


# ---------------------------------------------------------------------------------------------------------------------
# Addresses of 32 bits

NARROW = """
.const .align 4 .u32 table[4] = {1, 10, 100, 1000};
.global .u32 counter = 5;
.global .u32 pointers[2] = {generic(counter), counter};
.extern .shared .align 4 .b8 room[];
.visible .entry k(.param .u32 given, .param .u32 .ptr .global .align 4 wanted)
{
    .reg .u32 r<16>; .reg .pred p<4>;
    .local .align 4 .u32 mine[2];
    .shared .u32 ours[64];
    ld.param.u32 r1, [given];
    ld.param.u32 r2, [wanted];
    mov.u32 r3, %tid.x;
    shl.b32 r4, r3, 2;
    add.u32 r1, r1, r4;
    add.u32 r2, r2, r4;
    ld.u32 r5, [r1];
    mov.u32 r6, ours;
    add.u32 r6, r6, r4;
    cvta.shared.u32 r7, r6;                 // a generic address, stored through
    st.u32 [r7], r5;
    isspacep.shared p1, r7;
    isspacep.global p2, r7;
    @!p1 trap;
    @p2 trap;
    st.shared.u32 [room], 3;
    cvta.to.shared.u32 r7, r7;
    ld.shared.u32 r8, [r7];
    mov.u32 r9, mine;
    cvta.local.u32 r9, r9;
    st.u32 [r9+4], r8;
    ld.local.u32 r8, [mine+4];
    isspacep.local p1, r9;
    @!p1 trap;
    and.b32 r10, r3, 3;
    shl.b32 r10, r10, 2;
    mov.u32 r11, table;
    add.u32 r11, r11, r10;
    ld.const.u32 r11, [r11];
    add.u32 r8, r8, r11;
    ld.global.u32 r12, [pointers+4];        // the address of a variable, from memory
    atom.global.add.u32 r13, [r12], 1;
    isspacep.global p2, r12;
    @!p2 trap;
    st.global.u32 [r2], r8;
    ret;
}
.visible .entry count(.param .u32 out)
{
    .reg .b32 r<4>;
    ld.param.u32 r0, [out];
    ld.global.u32 r1, [pointers];
    ld.u32 r2, [r1];
    st.global.u32 [r0], r2;
    ret;
}
"""


@pytest.mark.parametrize("head", [
    ".version 6.5\n.target sm_30\n.address_size 32", ".version 2.3\n.target sm_20\n.address_size 32",
    ".version 2.0\n.target sm_20", ".version 7.0\n.target sm_75",
])
@pytest.mark.parametrize("sanitize", [None, "all"])
def test_addresses_of_32_bits(head: str, sanitize: Any, rng: np.random.Generator) -> None:
    module = ptxdsl.load(head + NARROW)
    given = rng.integers(0, 1 << 30, 50, np.uint32)
    out, count = np.zeros(50, np.uint32), np.zeros(1, np.uint32)
    for launch in (1, 2):
        module["k"].configure(1, 50, shared=64, backend="emulator", sanitize=sanitize)(given, out)
        assert (out == given + np.array([1, 10, 100, 1000], np.uint32)[np.arange(50) % 4]).all()
        module["count"].configure(1, 1, backend="emulator")(count)
        assert count[0] == 5 + 50 * launch


def test_an_address_of_32_bits_beyond_its_array_is_a_fault() -> None:
    module = ptxdsl.load(".version 6.5\n.target sm_30\n.address_size 32" + NARROW)
    kernel = module["k"].configure(1, 51, shared=64, backend="emulator")
    with pytest.raises(MemoryFault, match=r"load from address 0x\w{8}, which .*; 0 bytes after the end of given"):
        kernel(np.zeros(50, np.uint32), np.zeros(51, np.uint32))
    with pytest.raises(MemoryFault, match=r"store to address 0x\w{8}, which .*; 0 bytes after the end of wanted"):
        kernel(np.zeros(51, np.uint32), np.zeros(50, np.uint32))


def test_with_64_bits_a_parameter_of_32_is_a_number() -> None:
    text = ".version 6.5\n.target sm_30\n.address_size 64\n.entry k(.param .u32 n) { ret; }"
    with pytest.raises(LaunchError, match="u32 wants an int from 0 to 4294967295"):
        ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(np.zeros(1, np.uint32))


def test_arrays_are_aligned_as_on_a_gpu_wherever_they_lie() -> None:
    text = program("""
        ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1+32];
        st.global.v8.b32 [%rd2], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};""",
        head=".version 8.8\n.target sm_100\n.address_size 64")
    memory = np.arange(40, dtype=np.uint32)
    for start in range(8):
        given = memory[start : start + 16]
        assert run(text, given, np.zeros(8, np.uint32)).tolist() == [*range(start + 15, start + 7, -1)]
    odd = text.replace("[%rd1+32]", "[%rd1+16]")
    with pytest.raises(MemoryFault, match="32 bytes must be aligned to 32 bytes"):
        run(odd, memory[:24], np.zeros(8, np.uint32))


def test_a_module_that_is_loaded_twice_has_its_variables_twice() -> None:
    text = program("atom.global.add.u32 %r1, [total], 5; st.global.u32 [%rd2], %r1;", outside=".global .u32 total = 7;")
    out = np.zeros(1, np.uint32)
    first, second = ptxdsl.load(text), ptxdsl.load(text)
    for module, wanted in ((first, 7), (first, 12), (second, 7), (first, 17)):
        module["k"].configure(1, 1, backend="emulator")(0, out)
        assert out[0] == wanted


# ---------------------------------------------------------------------------------------------------------------------
# PTX of the first versions

FIRST = """
.version 1.3
.target sm_13, map_f64_to_f32
.reg .u32 %ra<3>;
.reg .u64 %rda<2>;
.entry first
{
    .reg .u16 %rh<3>; .reg .u32 %r<4>; .reg .u64 %rd<4>; .reg .f32 %f<9>; .reg .f64 %fd<3>; .reg .pred %p<2>;
    .param .u64 __parm_out;
    .param .u64 __parm_in;
$LBB1:
    mov.u16 %rh1, %ctaid.x;
    mov.u16 %rh2, %ntid.x;
    mul.wide.u16 %r1, %rh1, %rh2;
    cvt.u32.u16 %r2, %tid.x;
    add.u32 %ra1, %r2, %r1;
    cvt.u64.u32 %rda1, %ra1;
    mul.lo.u64 %rd1, %rda1, 4;
    ld.param.u64 %rd2, [__parm_in];
    add.u64 %rd2, %rd2, %rd1;
    ld.global.f32 %f1, [%rd2+0];
    mul.f32 %f2, %f1, %f1;
    mad.f32 %f3, %f1, %f1, %f2;
    div.f32 %f4, %f3, %f2;
    rcp.f32 %f5, %f4;
    add.f32 %f6, %f5, %f1;
    cvt.f64.f32 %fd1, %f1;
    sqrt.f64 %fd2, %fd1;
    cvt.rn.f32.f64 %f7, %fd2;
    add.f32 %f6, %f6, %f7;
    ld.param.u64 %rd3, [__parm_out];
    add.u64 %rd3, %rd3, %rd1;
    st.global.f32 [%rd3+0], %f6;
    exit;
$LDWend:
}
"""


def test_the_first_versions() -> None:
    module = ptxdsl.load(FIRST)
    tiny = 1e-39  # subnormal: flushed to 0 wherever f32 is computed
    given = np.array([4.0, 2.25, 1.0, 1e-22, tiny, 9.0], np.float32)
    out = np.full(6, 77, np.float32)
    module["first"].configure(2, 3, backend="emulator")(out, given)
    with np.errstate(all="ignore"):
        flushed = np.where(np.abs(given) < 2.0**-126, np.float32(0), given)
        square = flushed * flushed
        square = np.where(square < 2.0**-126, np.float32(0), square)
        total = (flushed.astype(np.float64) ** 2 + square).astype(np.float32)
        total = np.where(total < 2.0**-126, np.float32(0), total)
        ratio = total / square
        wanted = np.float32(1) / ratio + flushed + np.sqrt(given.astype(np.float64)).astype(np.float32)
    assert np.array_equal(out, wanted, equal_nan=True)
    assert [p.name for p in module["first"].parameters] == ["__parm_out", "__parm_in"]


def test_declarations_without_a_semicolon() -> None:
    head, body = ".version 2.1\n.target sm_20", "call (%r1), twice, (21); st.global.u32 [%rd2], %r1;"
    text = program(body, head=head, outside="""
    .visible .func (.reg .u32 r) twice (.reg .u32 x)

    .visible .func (.reg .u32 r) thrice (.reg .u32 x)
    .visible .func (.reg .u32 r) twice (.reg .u32 x) { mad24.lo.u32 r, x, 2, 0; ret; }""")
    assert run(text, 0, np.zeros(1, np.uint32)).tolist() == [42]


def test_registers_outside_functions_are_gone_since_ptx_3() -> None:
    with pytest.raises(ParseError, match="registers outside a function"):
        ptxdsl.load(".version 3.0\n.target sm_20\n.reg .u32 %r<3>;\n.entry k() { exit; }")


def test_special_registers_in_conversions() -> None:
    text = program("""
        cvt.s32.u16 %r1, %tid.x;
        cvt.u64.u32 %rd3, %tid.x;
        mad.lo.s64 %rd4, %rd3, 8, %rd2;
        cvt.s64.s32 %rd5, %r1;
        add.s64 %rd5, %rd5, %rd3;
        st.global.u64 [%rd4], %rd5;""")
    assert run(text, 0, np.zeros(40, np.uint64), 40).tolist() == [2 * n for n in range(40)]


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


@pytest.mark.parametrize(("kind", "value", "wanted"), [
    ("u32", -1, b"\xff\xff\xff\xff"), ("s32", 4294967295, b"\xff\xff\xff\xff"),
    ("u32", np.int32(-2), b"\xfe\xff\xff\xff"),
    ("b32", 1.5, b"\x00\x00\xc0\x3f"), ("b32", np.float32(1.5), b"\x00\x00\xc0\x3f"), ("u8", True, b"\x01"),
    ("u8", np.bool_(True), b"\x01"), ("u16", np.int64(7), b"\x07\x00"), ("b64", 1.5, b"\0\0\0\0\0\0\xf8\x3f"),
    ("u64", -1, b"\xff" * 8), ("f32", np.float32(1.5), b"\x00\x00\xc0\x3f"), ("f64", 1, b"\0\0\0\0\0\0\xf0\x3f"),
    ("b16", np.float16(1), b"\x00\x3c"), ("s64", np.uint64(2**64 - 1), b"\xff" * 8),
])
def test_numbers_for_parameters_that_c_calls_otherwise(kind: str, value: Any, wanted: bytes) -> None:
    bits = len(wanted) * 8
    register = {8: "%h1", 16: "%h1", 32: "%r1", 64: "%rd4"}[bits]
    text = f"""
    .version 7.0\n.target sm_70\n.address_size 64
    .entry k(.param .{kind} x, .param .u64 out) {{ {REGISTERS}
        ld.param.b{bits} {register}, [x]; ld.param.u64 %rd1, [out]; st.global.b{bits} [%rd1], {register}; ret; }}"""
    out = np.zeros(bits // 8, np.uint8)
    ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(value, out)
    assert out.tobytes() == wanted


@pytest.mark.parametrize(("kind", "value", "message"), [
    ("u32", 1.5, "u32 wants an int"), ("u32", 2**32, "u32 wants an int"), ("s16", -32769, "s16 wants an int"),
    ("f32", np.float64(1e39), "that is too large for f32"), ("u32", np.float32(1), "u32 wants an int"),
])
def test_numbers_that_no_c_takes_for_the_parameter(kind: str, value: Any, message: str) -> None:
    kernel = ptxdsl.load(f".version 7.0\n.target sm_70\n.address_size 64\n.entry k(.param .{kind} x) {{ ret; }}")["k"]
    with pytest.raises(LaunchError, match=message):
        kernel.configure(1, 1, backend="emulator")(value)


def test_structures_and_arrays_by_value() -> None:
    text = """
    .version 7.0\n.target sm_70\n.address_size 64
    .entry k(.param .align 8 .b8 s[24], .param .b32 v[2], .param .u64 out)
    {
        .reg .b32 %r<4>; .reg .f64 %fd; .reg .b64 %rd<3>;
        ld.param.u32 %r0, [s]; ld.param.f64 %fd, [s+8]; ld.param.b32 %r1, [s+16];
        ld.param.v2.b32 {%r2, %r3}, [v];
        ld.param.u64 %rd0, [out];
        st.global.v4.b32 [%rd0], {%r0, %r1, %r2, %r3};
        st.global.f64 [%rd0+16], %fd;
        ret;
    }"""
    made = np.zeros((), np.dtype([("a", "u4"), ("b", "f8"), ("c", "i2", 2)], align=True))
    made["a"], made["b"], made["c"] = 7, -0.5, (1, 2)
    out = np.zeros(6, np.uint32)
    for given in (made, made.tobytes(), np.frombuffer(made.tobytes(), np.uint8)):
        out[:] = 0
        pair = np.array([5, 6], np.uint32)
        ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(given, pair, out)
        assert out[:4].tolist() == [7, 1 | 2 << 16, 5, 6] and out[4:].view(np.float64)[0] == -0.5


def test_texts_of_every_make(tmp_path: Any) -> None:
    plain = program("st.global.u32 [%rd2], 5;")
    texts = [
        "\ufeff" + plain, plain.replace("\n", "\r\n"), plain.replace(" ", "\t"), plain + "\0", plain.replace("\n", " "),
        plain.replace("sm_30", "compute_30"), "/* first */ // second\n" + plain.replace(",", " /* , */ ,"),
    ]
    for number, text in enumerate(texts):
        assert run(text, 0, np.zeros(1, np.uint32)).tolist() == [5]
        path = tmp_path / f"{number}.ptx"
        path.write_bytes(text.encode())
        assert list(ptxdsl.load(path)) == list(ptxdsl.load(text.encode())) == ["k"]


def test_branch_tables_of_the_same_name_in_several_functions() -> None:
    table = """
        TABLE: .branchtargets ONE, TWO;
        brx.idx {index}, TABLE;
        ONE: mov.u32 {to}, {first}; bra END;
        TWO: mov.u32 {to}, {second};
        END:"""
    outside = f"""
    .func (.reg .u32 r) f(.reg .u32 x) {{ {table.format(index="x", to="r", first=10, second=20)} ret; }}
    .func (.reg .u32 r) g(.reg .u32 x) {{ .reg .u32 y; call (y), f, (x);
        {table.format(index="x", to="r", first=1, second=2)} add.u32 r, r, y; ret; }}"""
    text = program(f"""
        mov.u32 %r1, %tid.x;
        call (%r2), g, (%r1);
        {table.format(index="%r1", to="%r3", first=100, second=200)}
        add.u32 %r3, %r3, %r2;
        mul.wide.u32 %rd3, %r1, 4;
        add.u64 %rd3, %rd3, %rd2;
        st.global.u32 [%rd3], %r3;""", outside=outside)
    assert run(text, 0, np.zeros(2, np.uint32), 2).tolist() == [111, 222]
    only = program("call (%r2), f, (1); st.global.u32 [%rd2], %r2;", outside=outside)
    assert run(only, 0, np.zeros(1, np.uint32)).tolist() == [20]


def test_atomic_sums_flush_in_global_memory_only() -> None:
    text = program("""
        .shared .f32 ours;
        mov.f32 %f0, 0f00000005;
        st.shared.f32 [ours], %f0;
        cvta.shared.u64 %rd3, ours;
        atom.add.f32 %f1, [%rd3], %f0;
        ld.shared.f32 %f2, [ours];
        atom.add.f32 %f3, [%rd2], %f0;
        red.global.add.f32 [%rd2+4], %f0;
        st.global.v2.f32 [%rd2+8], {%f1, %f2};""")
    out = np.array([3, 3, 0, 0], np.uint32)
    ptxdsl.load(text)["k"].configure(1, 1, backend="emulator")(0, out)
    assert out.tolist() == [0, 0, 5, 10]

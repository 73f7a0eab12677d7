"""What ptxas takes beyond the table, and what it refuses: judged by NVIDIA's assembler too."""

from __future__ import annotations

import re
import subprocess

import pytest

from ptxdsl.errors import PtxError
from ptxdsl.gpu.tools import find_assembler
from ptxdsl.isa.targets import assembled
from ptxdsl.text import parse, to_text
from ptxdsl.verify import verify

REGISTERS = (
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>; "
    ".reg .f16x2 %x<9>; .reg .u32 %u<9>; .reg .u16 %k<9>; .reg .f16 %q<9>;"
)


def module(body: str, head: str = "", target: str = "sm_90a", version: str = "8.6", parameters: str = "") -> str:
    """A kernel with one statement on line 7."""
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{head}\n"
        f".visible .entry k({parameters}) {{\n{REGISTERS}\n{body}\nret; }}\n"
    )


def read(text: str) -> str:
    """The text of a module as it is printed."""
    found = parse(text)
    verify(found, foreign=True)
    again = to_text(found)
    assert parse(again) == found
    return again


def assembles(text: str) -> bool:
    """Whether ptxas takes a module."""
    head = re.match(r"\.version (\d+)\.(\d+)\n\.target (\w+)", text)
    assert head is not None
    arch = assembled(head[3])
    path = find_assembler((int(head[1]), int(head[2])), arch).path
    command = [path, f"-arch={arch}", "/dev/stdin", "-o", "/dev/null"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode == 0


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TAKEN = [
    # Numbers, negated predicates and results that nobody wants, where the table has registers.
    (module("mbarrier.try_wait.shared::cta.b64 %p1, [%r1], 0;"), "mov.b64 %made, 0"),
    (module("brx.idx 1, T; T: .branchtargets L; L:").replace("brx.idx 1, T; T: .branchtargets L;",
     "T: .branchtargets L;\nbrx.idx 0, T;"), "mov.b32 %made, 0"),
    (module("xor.pred %p1, !%p2, %p3;"), "not.pred %made, %p2"),
    (module("and.pred %p1, %p2, 1;"), "mov.pred"),
    (module("selp.b32 %r1, %r2, %r3, 0;"), "mov.pred"),
    (module(f"{MMA} {{_, %f1, %f2, %f3}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {{%f4, %f5, %f6, %f7}};"), "%unused"),
    (module(f"{MMA} {{%f0, %f1, %f2, %f3}}, {{%r1, 0, %r3, 0}}, {{%r5, %r6}}, {{%f4, %f5, %f6, %f7}};"),
     "mov.b32 %made, 0"),
    (module("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, _, %r3, _}, [%r5];"), "%unused"),
    (module("st.global.v4.u32 [%rd1], {%r1, %tid.x, %r2, %laneid};"), "mov.b32 %made, %tid.x"),
    (module(f"{MMA} {{%f0, %f1, %f2, %f3}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, "
            "{0f00000000, 0f3F800000, %f6, %f7};"),
     "mov.f32 %made$1, 0f3F800000"),
    (module("mov.b64 {%r1, %r2}, %clock64;"), "mov.b64 %made, %clock64"),
    (module("mov.b32 {%h1, %h2}, %tid.x;"), "mov.b32 %made, %tid.x"),
    (module("add.s64 %rd1, g+8, %rd2;", ".global .u32 g[4];"), "mov.u64 %made, g+8"),
    # Modifiers that ptxas supplies.
    (module("cvt.bf16.f16 %h1, %h2;"), "cvt.rn.bf16.f16"), (module("cvt.f16.bf16 %h1, %h2;"), "cvt.rn.f16.bf16"),
    (module("wgmma.fence.sync;"), "wgmma.fence.sync.aligned"),
    (module("wgmma.mma_async.sync.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, %rd1, %rd2, %p1;"), "sync.aligned.m64n8k32"),
    (module("prefetch.L2::evict_last [%rd1];"), "prefetch.global.L2::evict_last"),
    (module("st.async.gpu.global.u32 [%rd1], %r1;", "", "sm_100", "8.7"), "st.async.release.gpu.global.u32"),
    (module("mbarrier.arrive.multicast::cluster::32b.b64 _, [%rd1], %r1;", "", "sm_107f", "9.5"), ".shared::cluster."),
    (module("fabric.try_put.async.counted::bytes.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric."
            "sys.b128 [%r1, %rd1, %rd2], [%rd3], %r2, [%rd4];", "", "sm_100", "9.5"), ".multimem.counted::bytes."),
    # An address of 32 bits, where the memory can only be shared.
    (module("ldmatrix.sync.aligned.x4.m8n8.b16 {%r1, %r2, %r3, %r4}, [%r5];"), "ldmatrix.sync.aligned.m8n8.x4.shared"),
    (module("stmatrix.sync.aligned.m8n8.x1.b16 [%r5+16], {%r1};"), "stmatrix.sync.aligned.m8n8.x1.shared"),
    (module("cp.async.mbarrier.arrive.noinc.b64 [%r1];"), "arrive.noinc.shared"),
    # Spaces, braces, packed registers.
    (module("add  .u32 %r1, %r2, %r3;"), "add.u32 %r1"),
    (module("ld.global.b32 {%r1}, [%rd1];"), "ld.global.b32 %r1"),
    (module("add.f16x2 %x1, %x2, %r1;"), "add.f16x2"), (module("ld.global.b16 %q1, [%rd1];"), "ld.global.b16"),
    # Variables and directives.
    (module("", ".attribute(.managed) .global .align 4 .b8 g[4];"), ".attribute(.managed)"),
    (module("", ".global .align 4 .attribute(.managed) .b8 g[4];"), ".align 4"),
    (module("", ".weak .const .align 4 .b8 g[4];"), ".weak"), (module("", ".common .global .u32 g;"), ".common"),
    (module("", "").replace("k()", "k() .local_maxnreg 32").replace("8.6", "8.8"), ".local_maxnreg 32"),
    (module("", ".metadata_section {\n .metadata_domain 1\n}", "sm_107a", "9.5"), ".metadata_domain 1"),
    (module("ld.local.u32 %r1, [l];", ".local .u32 l;", "sm_20", "2.3").replace(REGISTERS, ".reg .b32 %r<9>;"),
     ".local .u32 l"),
    (module("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6, %f7, %f8}];", ".global .texref t;"), "tex.2d"),
    (module("ld.param.u64 %rd1, [a];", parameters=".param .u32 a"), "ld.param.u64"),
    (module('.pragma "nounroll";'), "nounroll"),
    # Targets of other names.
    *((module("", target=target, version="8.8"), target) for target in ("sm_82", "sm_101", "sm_101a", "sm_101f")),
    (module("tcgen05.wait::ld.sync.aligned;", target="sm_101a"), "tcgen05.wait::ld"),
    # What PTX 8.6 to 9.5 have.
    (module("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;"), "fence.proxy"),
    (module("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"), "fence.proxy"),
    (module("trace.mark 4095;", "", "sm_107f", "9.5"), "trace.mark"),
    (module("fabric.wait.sync_restrict::read 3;", "", "sm_100", "9.5"), "fabric.wait"),
    (module("fabric.wait.sync_restrict::reads 3;", "", "sm_100", "9.3"), "fabric.wait"),
    (module("cp.async.bulk.prefetch.L2.global.L2::evict_last [%rd1], 16;", "", "sm_107f", "9.4"), "evict_last"),
    (module("tcgen05.mma.cta_group::1.kind::f16.collector::b::use.collector::a::fill [%r1], %rd1, %rd2, %r2, %p1;", "",
            "sm_107f", "9.4"), "collector::a::fill.collector::b::use"),
    (module("", ".entry e(.param .u8 a, .param .align 4 .b8 s[32760]) { ret; }"), "s[32760]"),
    (module("", ".entry e() .maxclusterrank 0 { ret; }"), ".maxclusterrank 0"),
    # Elements of arrays, components of special registers, a call without the variable arguments.
    (module("mov.u64 %rd1, g[3];", ".global .v4 .f32 g[4];"), "mov.u64 %rd1, g+12;"),
    (module("ld.shared.u16 %h1, s[0x2];", ".shared .u16 s[4];"), "ld.shared.u16 %h1, [s+4];"),
    (module("st.local.v2.u32 l[1], {%r1, %r2};").replace("st.l", ".local .align 8 .u32 l[2][2]; st.l"),
     "st.local.v2.u32 [l+4], {%r1, %r2};"),
    (module("ld.const.u32 %r1, c[-1];", ".const .u32 c[4];"), "ld.const.u32 %r1, [c+-4];"),
    (module("ld.global.f64 %fd1, g[%r1];", ".global .f64 g[4];"), "mad.wide.u32 %made$1, %r1, 8, %made;"),
    (module("ld.global.f64 %fd1, g[%rd1];", ".global .f64 g[4];"), "mad.lo.u64 %made$1, %rd1, 8, %made;"),
    (module("mov.u32 %r1, s[%rd2];", ".shared .u32 s[4];"), "cvt.u32.u64 %made, %rd2;"),
    (module("mov.u32 %r1, %ntid.w;"), "mov.u32 %r1, 0;"), (module("mov.u32 %r1, %ctaid.g;"), "%ctaid.y;"),
    (module("mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;"), "{%r1, %r2, %r3, %r4}, %tid;"),
    (module(".param .b32 a; st.param.b32 [a], 1; call f, (a);", ".func f(.param .b32 a, .param .b8 more[]) { ret; }"),
     "call f, (a);"),
]
REFUSED = [
    (module("ld.global.u32 %r1, [16];"),
     ("`ld.global.u32` wants an address in brackets for a, and its base is a number, which only an address in .local "
      "may be")),
    (module("ld.global.u32 %r1, [%rd1-4];"), "`%rd1-4`: an address is a register plus a number, not minus one"),
    (module("cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1+64, {%r1}];"), "`%rd1+64` and operands behind it"),
    (module("setp.eq.u32 5, %r1, %r2;"), "`5` is a number, and here must be a register for the result"),
    (module("add.s32 5, %r1, %r2;"), "`5` is a number, and here must be a register for the result"),
    (module("add.f16x2 %r1, %f1, %r2;"),
     "`add.f16x2` wants a .f16x2 register for a, and it is the .f32 register %f1"),
    (module("add.bf16x2 %r1, %u1, %r2;"),
     "`add.bf16x2` wants a .bf16x2 register for a, and it is the .u32 register %u1"),
    (module("cvt.rn.f16x2.f32 %f1, %f2, %f3;"),
     "`cvt.rn.f16x2.f32` wants a .f16x2 register for d, and it is the .f32 register %f1"),
    (module("cp.async.bulk.prefetch.L2.global [%rd1], 8;"),
     "`cp.async.bulk.prefetch.L2.global` wants a .u32 register or number for size, and 8 is not a multiple of 16"),
    (module("cp.async.cg.shared.global [%r1], [%rd1], 16, 32;"), None),
    (module("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 2;"), None),
    (module("st.bulk.shared::cta [%r1], 4, 0;", "", "sm_100"), None),
    (module("movmatrix.sync.aligned.m8n8.trans.b16 %r1, 0;"), None),
    (module("vadd4.u32.u32.u32 %r1, 1, %r2, %r3;"), None),
    (module("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 {%r1, %r2, %r3, %r4}, %rd1, %rd2, %r5, 1, %p1;"), None),
    (module("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f1,%f2,%f3,%f4}, %rd1, %rd2, %r5, 1, %p1, 1, 1;"),
     None),
    (module("trace.mark 4096;", "", "sm_107f", "9.5"), None), (module("trace.mark 1;", "", "sm_100a", "9.5"), None),
    (module("", ".common .shared .align 4 .b8 g[4];"), ".common variables lie in .global, not in .shared"),
    (module("", ".common .const .align 4 .b8 g[4];"), ".common variables lie in .global, not in .const"),
    (module("", ".local .u32 l;"), "a .local variable outside a function"),
    (module("", ".tex .u64 t;"), "`.tex` is gone since PTX 1.5"),
    (module("").replace("k()", "k() .local_maxnreg 32"), "`.local_maxnreg` needs PTX 8.8, and this module is PTX 8.6"),
    (module("", ".metadata_section { .metadata_domain 1 }", "sm_107a", "9.4"), "`.metadata_section` needs PTX 9.5"),
    (module("", target="sm_101f"), ".target sm_101f came with PTX 8.8, and this module is PTX 8.6"),
    (module("add.s64 %rd1, g, %rd2;", ".global .u32 g[4];"), None), (module("cvt.bf16.f32 %h1, %f1;"), None),
    (module("add.u32 {%r1}, %r2, %r3;"), "`add.u32` takes no operand in braces there"),
    (module("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, _}, [%r8];", "", "sm_100a"),
     "`tcgen05.ld.sync.aligned.32x32b.x2.b32` writes all of its results"),
    (module("ld.u32 %r1, [c];", ".const .u32 c;"),
     "c lies in .const, and `ld.u32` names no state space"),
    (module("ld.u32 %r1, [a];", parameters=".param .u32 a"), None),
    (module("add.f32 %f1, %f2, !%f3;"), "an operand that `not.pred` does not take either"),
    (module("add.s32 _, %r1, %r2;"), None), (module("mad.u32.lo %r1, %r2, %r3, %r4;"), None),
    # Declarations.
    (module("", ".global .samplerref s;"), "s is a .samplerref, and textures have samplers of their own here"),
    (module("", ".global .v4 .f64 v;"), "a vector of 4 times 64 bits, and the largest has 128"),
    (module(".reg .b128 .v2 q;"), "a vector of 2 times 128 bits, and the largest has 128"),
    (module("", ".global .u32 a = {5};"), "braces around the initial value of a, which is no array"),
    (module("", ".address_size 64"), "a second `.address_size`"),
    (module("", ".extern .func f(); .alias g, f;"), "an alias names g, which is no function here"),
    (module("", ".func (.param .u32 x) f() .noreturn;"), "f is `.noreturn`, and has a result"),
    (module("", ".entry e() .reqntid 32 .maxntid 64 { ret; }"), "`.reqntid` and `.maxntid` of e exclude each other"),
    (module("", ".entry e() .maxclusterrank 4 .reqnctapercluster 2 { ret; }"),
     "`.maxclusterrank` and `.reqnctapercluster` of e exclude each other"),
    *[(module("", f".entry e() .{name} {{ ret; }}"), f"`.{name.split()[0]}` of e has a 0, and wants positive numbers")
      for name in ("maxntid 1, 0", "reqntid 0", "maxnreg 0")],
    (module("", ".entry e() .maxntid 32 .maxnctapersm 2 { ret; }"), "`.maxnctapersm` of e is gone since PTX 2.1"),
    (module("", ".entry e(.reg .u32 n) { ret; }"), "the parameter n of the entry e is a register"),
    (module("", ".entry e(.param .u8 a, .param .align 8 .b8 s[32760]) { ret; }"),
     "the parameters of e have 32768 bytes, and they can have 32764"),
    (module("", ".entry e(.param .b8 s[4353]) { ret; }", "sm_60"),
     "e with 4353 bytes of parameters needs sm_70, and this module is for sm_60"),
    (module("", ".entry e(.param .b8 s[4353]) { ret; }", version="8.0"),
     "e with 4353 bytes of parameters needs PTX 8.1, and this module is PTX 8.0"),
    (module("mov.u32 %r1, %tid;"), "%tid is a vector, and `mov.u32` wants one number"),
    (module("ld.global.u32 %r1, g[1];", ".global .u32 g;"), "`g[1]`: g is no array"),
    (module("ld.global.u32 %r1, g[%f1];", ".global .u32 g[4];"), "`g[%f1]`: the index %f1 is a .f32"),
    (module("ld.global.u32 %r1, g[1.0];", ".global .u32 g[4];"), "`1.0` is no integer"),
    (module("add.u32 %r1, %r2, s[1];", ".shared .u32 s[4];"), None),
]


@pytest.mark.parametrize(("text", "printed"), TAKEN, ids=range(len(TAKEN)))
def test_it_is_taken(text: str, printed: str) -> None:
    assert printed in read(text)


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused(text: str, message: str | None) -> None:
    with pytest.raises(PtxError) as caught:
        read(text)
    if message is not None:
        assert caught.value.message.split("\n")[0] == message


@pytest.mark.ptxas
def test_the_assembler_judges_the_same() -> None:
    wrong = [text for text, _ in TAKEN if not assembles(text)] + [text for text, _ in REFUSED if assembles(text)]
    assert not wrong, "\n".join(wrong)


def test_texture_references_of_the_first_versions() -> None:
    text = to_text(parse(".version 1.4\n.target sm_10\n.tex .u32 a, b;\n.entry k() { ret; }"))
    assert ".global .texref a;" in text
    assert ".global .texref b;" in text

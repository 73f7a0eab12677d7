"""Which parameters a kernel writes through."""

from __future__ import annotations

import pytest

from ptxdsl.analysis.stores import shared_memory, stores_through, written_parameters
from ptxdsl.text import parse

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def written(body: str, before: str = "") -> set[str]:
    """What `k(a, b, c: pointers, n: u32)` writes; %rd1 to %rd3 hold the pointers, %r1 the number."""
    text = f"""{HEAD}{before}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<20>;
    .reg .pred %p<3>;
    .shared .align 8 .b8 tile[64];
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r1, [n];
{body}
    ret;
}}
"""
    return set(written_parameters(parse(text), "k"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", set()),
        ("ld.global.u32 %r2, [%rd1];", set()),
        ("st.global.u32 [%rd1], %r1;", {"a"}),
        ("st.u32 [%rd2+8], %r1;", {"b"}),
        ("cvta.to.global.u64 %rd4, %rd1; add.s64 %rd6, %rd4, 4; st.global.u32 [%rd6], %r1;", {"a"}),
        ("mad.wide.u32 %rd4, %r1, 4, %rd3; st.global.u32 [%rd4], %r1;", {"c"}),
        ("red.global.add.u32 [%rd1], 1;", {"a"}),
        ("atom.global.add.u32 %r2, [%rd2], 1;", {"b"}),
        # An index that was read from one array is no address in it.
        ("ld.global.u32 %r2, [%rd1]; mad.wide.u32 %rd4, %r2, 4, %rd2; st.global.u32 [%rd4], %r2;", {"b"}),
        # Either pointer, chosen at run time.
        ("setp.eq.u32 %p1, %r1, 0; selp.b64 %rd4, %rd1, %rd2, %p1; st.global.u32 [%rd4], %r1;", {"a", "b"}),
        # Around a loop, against the order of the text.
        (("mov.u64 %rd4, %rd1;\n$again:\nst.global.u32 [%rd4], %r1; mov.u64 %rd4, %rd2; setp.ne.u32 %p1, %r1, 0;\n"
          "@%p1 bra $again;"), {"a", "b"}),
        ("mov.b64 {%r2, %r3}, %rd3; mov.b64 %rd4, {%r2, %r3}; st.global.u32 [%rd4], %r1;", {"c"}),
        # A pointer in memory may be stored through by whoever reads it.
        ("mov.u32 %r4, tile; st.shared.u64 [%r4], %rd1;", {"a"}),
        ("mov.u32 %r4, tile; st.shared.u32 [%r4], %r1;", set()),
        ("st.global.u32 [%rd1], %r1; st.global.u64 [%rd2], 5; ld.global.u32 %r2, [%rd3];", {"a", "b"}),
    ],
)
def test_written(body: str, expected: set[str]) -> None:
    assert written(body) == expected


IMAGES = f"""{HEAD}
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 c, .param .u64 d)
{{{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<9>;
    .shared .align 128 .f32 tile[64];
    mov.b64 %rd1, a;
    cvta.param.u64 %rd2, %rd1;
    mov.b64 %rd3, b;
    cvta.param.u64 %rd4, %rd3;
    ld.param.u64 %rd5, [c];
    ld.param.u64 %rd6, [d];
{{}}
    ret;
}}}}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, 0}], [tile];", {"a"}),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {0, 0}], [tile];", {"b"}),
        ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd4, {0, 0}];", set()),
        ("sust.b.2d.b32.trap [%rd5, {%r1, %r2}], {%r3};", {"c"}),
        ("suld.b.2d.b32.trap {%r3}, [%rd6, {%r1, %r2}];", set()),
    ],
)
def test_through_tensor_maps_and_surfaces(body: str, expected: set[str]) -> None:
    assert written_parameters(parse(IMAGES.format(body)), "k") == expected


STORES = """
.func stores(.reg .u64 p, .reg .u64 q)
{
    .reg .b32 %r<2>;
    ld.global.u32 %r1, [q];
    st.global.u32 [p], %r1;
    ret;
}
"""


def test_a_function_that_is_known() -> None:
    assert written("call stores, (%rd2, %rd1);", STORES) == {"b"}


def test_a_function_that_is_not() -> None:
    assert written("call stores, (%rd2, %rd1);", ".extern .func stores(.reg .u64 p, .reg .u64 q);") == {"a", "b"}


MOVES = """
.func (.reg .u64 moved) moves(.reg .u64 p)
{
    add.u64 moved, p, 8;
    ret;
}
"""


def test_a_pointer_that_a_function_returns() -> None:
    assert written("call (%rd4), moves, (%rd3); st.global.u32 [%rd4], %r1;", MOVES) == {"c"}


SHARED = HEAD + """
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .b8 first[6];
.shared .align 8 .f64 second[3];
.func helper() { .reg .b32 %r<2>; mov.u32 %r1, second; st.shared.u32 [%r1], 0; ret; }
.visible .entry none() { ret; }
.visible .entry own() { .shared .align 2 .b8 tile[10]; st.shared.u8 [tile], 1; ret; }
.visible .entry direct() { .reg .b32 %r<2>; ld.shared.u16 %r1, [first+2]; st.shared.u32 [dynamic], %r1; ret; }
.visible .entry through() { .reg .b32 %r<2>; ld.shared.u16 %r1, [first]; call helper; ret; }
"""


@pytest.mark.parametrize(
    ("entry", "expected"),
    [("none", (0, False)), ("own", (10, False)), ("direct", (6, True)), ("through", (8 + 24, False))],
)
def test_shared_memory(entry: str, expected: tuple[int, bool]) -> None:
    assert shared_memory(parse(SHARED), entry) == expected


def test_which_instructions_write() -> None:
    """By line; a pointer that is itself stored may be written through wherever it is read."""
    module = parse(f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{
    .reg .b64 %rd<6>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    add.u64 %rd4, %rd1, 16;
    ld.global.u32 %r1, [%rd3];
    st.global.u32 [%rd4], %r1;
    atom.global.add.u32 %r1, [%rd2], 3;
    red.global.add.u32 [%rd1], %r1;
    st.global.u64 [%rd2], %rd3;
    ret;
}}
""")
    found = stores_through(module, "k")
    lines = {name: [instruction.form.mnemonic for instruction in each] for name, each in found.items()}
    assert lines == {
        "a": ["st.global.u32", "red.global.add.u32"], "b": ["atom.global.add.u32", "st.global.u64"],
        "c": ["st.global.u64"],
    }
    assert [instruction.line for instruction in found["b"]] == [15, 17]

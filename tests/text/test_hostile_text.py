"""Text that asks for more than its length: registers, depth, sizes, digits without end. Each is refused at its line."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import HEADER, argument, kernel

from ptxdsl import emulator
from ptxdsl.errors import EmulationError, ParseError, VerifyError
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse
from ptxdsl.text.source import DEEPEST
from ptxdsl.verify import verify

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
MANY = 20000


def entry(body: str, parameters: str = "", outside: str = "") -> str:
    """A kernel whose body begins on line 5, with what stands before it on line 4."""
    return f"{HEAD}{outside} .entry k({parameters}) {{\n{body}\nret; }}\n"


def moved(number: str) -> str:
    return entry(f".reg .b32 %r<2>; mov.u32 %r1, {number};")


HOSTILE = [
    (entry(".reg .b32 %r<99999999999>;"), 5,
     "99999999999 registers %r, and the registers of a module are at most 1048576"),
    (entry(".reg .b32 %a; .reg .b32 %r<10>; .reg .b32 %b<1048567>;"), 5,
     "1048567 registers %b, and the registers of a module are at most 1048576"),
    (entry(".reg .b32 %r<-3>;"), 5, "expected how many registers, a whole number, not `-`"),
    (entry("", outside=".global .u32 g = " + "(" * MANY + "1" + ")" * MANY + ";"), 4,
     "an expression that nests deeper than 100 levels"),
    (entry("", outside=".global .u32 g = " + "-" * MANY + "1;"), 4, "an expression that nests deeper than 100 levels"),
    (entry("", outside=".global .u32 g = " + "1 ? " * MANY + "1;"), 4,
     "an expression that nests deeper than 100 levels"),
    (entry("", outside=".global .u32 g[2] = " + "{" * MANY + "1;"), 4,
     "braces nested deeper than the array has dimensions"),
    (entry("", outside=".global .u32 g" + "[1]" * MANY + ";"), 4, "an array of more than 64 dimensions"),
    (moved("\0 1"), 5, "the character U+0000, which PTX does not have"),
    (entry("// a \0 b"), 5, "the character U+0000, which PTX does not have"),
    (moved("\u0661"), 5, "the character U+0661, which PTX does not have"),
    (moved("\v1"), 5, "the character U+000B, which PTX does not have"),
    (entry(".local .b8 x[99999999999];"), 5, "x has 99999999999 bytes, and .local memory at most 524288"),
    (entry("", outside=".global .b8 x[9999999][99999999];"), 4,
     "x has 999999890000001 bytes, and .global memory at most 1099511627776"),
    (entry("", outside=".global .u32 x[99999999999999] = {1};"), 4,
     "x has 399999999999996 bytes, and .global memory at most 1099511627776"),
    (entry(".shared .b8 x[99999999999];"), 5, "x has 99999999999 bytes, and .shared memory at most 233472"),
    (entry("", outside=".const .b8 x[65537];"), 4, "x has 65537 bytes, and .const memory at most 65536"),
    (entry("", ".param .b8 x[99999999999]"), 4, "x has 99999999999 bytes, and .param memory at most 1048576"),
    (entry("", outside=".global .b8 x[-1];"), 4, "expected the size of an array, a whole number, not `-`"),
    (entry("", outside=".global .b8 x[0];"), 4, "the array x has no size"),
    (entry("", outside=".global .align 4611686018427387904 .b8 x;"), 4,
     "an alignment of 4611686018427387904, and the largest is 1048576"),
    (moved("0x1FFFFFFFFFFFFFFFF"), 5, "36893488147419103231 does not fit in 64 bits"),
    (moved("0999"), 5, "`0999` is no operand"),
    (entry(".reg .f64 %d<2>; mov.f64 %d1, 1e999;"), 5, "`1e999` is no operand"),
    (entry("").replace("k()", "k() .maxnreg 99999999999"), 4, "a number of `.maxnreg` that does not fit in 32 bits"),
    (entry("").replace("8.0", "8" * 5000 + ".0"), 1, None),
    (moved("9" * 5000), 5, None),
    (moved("(" * MANY + "1" + ")" * MANY), 5, None),
    (entry(".reg .b64 %d<2>; mov.b64 " + "{" * MANY + "%d1" + "}" * MANY + ", %d1;"), 5, None),
    (entry(".reg .b64 %d<2>; ld.global.u64 %d1, " + "[" * MANY + "%d1" + "]" * MANY + ";"), 5, None),
    (entry(f".reg .b64 %d<2>; ld.global.u64 %d1, [%d1+{'9' * 5000}];"), 5, None),
    (entry(f".loc {'9' * 5000} 1 1"), 5, None),
    (entry(";" * MANY), 5, "`;` begins no statement"),
]


@pytest.mark.parametrize(("text", "line", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_it_is_refused_at_its_line(text: str, line: int, message: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.loc is not None
    assert caught.value.loc.line == line
    assert len(caught.value.message) < 1000
    if message is not None:
        assert caught.value.message.split("\n")[0] == message


def test_what_is_large_and_right_is_taken() -> None:
    depth = DEEPEST - 1
    for text in (
        moved("(" * depth + "1" + ")" * depth), entry("{" * MANY + "}" * MANY), entry(".reg .b32 %r<100000>;"),
        entry("", outside=".global .b8 x[1099511627776];"), entry(".local .b8 x[524288];"),
        entry("/* \u00e9 */ // \ud800"), f'{HEAD}.file 1 "\u00e9.cu"\n', entry(" " * 100000), moved("0U"),
        entry("", outside=".extern .global .b8 x[];"), entry(".reg .f64 %d<2>; mov.f64 %d1, 1e308;"),
    ):
        verify(parse(text))


def test_local_and_constant_variables_are_counted_together() -> None:
    for text, message in (
        (entry(".local .b8 x[524288]; .local .b8 y[1];"),
         "the .local variables of k have 524289 bytes, and .local memory has 524288"),
        (entry("", outside=".const .b8 x[65536]; .const .u32 y;"),
         "the .const variables have 65540 bytes, and .const memory has 65536"),
    ):
        with pytest.raises(VerifyError) as caught:
            verify(parse(text))
        assert caught.value.message == message


# ---------------------------------------------------------------------------------------------------------------------
# printf, and calls by another function's prototype


@pytest.mark.parametrize(("written", "field"), [("%999999999d", "999999999"), ("%.99999999999f", "99999999999"),
                                                ("%*d", "99999999")])
def test_a_field_of_printf_without_end(written: str, field: str) -> None:
    codes = ", ".join(str(ord(character)) for character in written) + ", 0"
    outside = f"""
        .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .global .b8 text[{len(written) + 1}] = {{{codes}}};
    """
    text = kernel("u64 out", """
        { .local .align 8 .b8 given[8]; mov.u32 %r1, 99999999; st.local.u32 [given], %r1; st.local.u32 [given+4], %r1;
          mov.u64 %rd1, given; cvta.local.u64 %rd1, %rd1; mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2;
          .param .b32 r; .param .b64 f; .param .b64 a; st.param.b64 [f], %rd2; st.param.b64 [a], %rd1;
          call (r), vprintf, (f, a); } ret;
    """).replace(HEADER, HEADER + outside)
    with pytest.raises(EmulationError) as caught:
        emulator.load(text).run("k", LaunchConfig(1, 1), [argument("out", np.zeros(1, np.uint32))])
    assert caught.value.message == f"`printf` of a field of {field} characters, and the widest has 65536"


FUNCTION = """
.func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<2>;
    ld.param.u32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }
.func (.param .b32 r) g(.param .b64 a) { .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [a]; cvt.u32.u64 %r1, %rd1; st.param.b32 [r], %r1; ret; }
"""


def called(shape: str, passed: str, callee: str = "%rd3") -> str:
    return kernel("u64 out", f"""
        ld.param.u64 %rd40, [out]; mov.u64 %rd3, f; mov.u64 %rd4, 41;
        {{ .param .{passed} q; .param .b32 s; st.param.{passed} [q], {'%rd4' if passed == 'b64' else '41'};
           shape: {shape}; call (s), {callee}, (q), shape; ld.param.b32 %r10, [s]; }}
        st.global.u32 [%rd40], %r10; ret;
    """).replace(HEADER, HEADER + FUNCTION)


def run(text: str) -> int:
    out = np.zeros(1, np.uint32)
    emulator.load(text).run("k", LaunchConfig(1, 1), [argument("out", out)])
    return int(out[0])


def test_a_call_by_another_prototype() -> None:
    with pytest.raises(EmulationError) as caught:
        run(called(".callprototype (.param .b32 _) _ (.param .b64 _)", "b64"))
    assert caught.value.message.endswith(", which is f, by another prototype")
    assert caught.value.hint == "it must be a function of the module with the parameters of the prototype"


@pytest.mark.parametrize("parameter", [".param .b32 _", ".param .f32 _", ".param .align 4 .b8 _[4]"])
def test_a_call_by_its_prototype(parameter: str) -> None:
    assert run(called(f".callprototype (.param .b32 _) _ ({parameter})", "b32")) == 42


def test_a_list_of_functions_that_differ() -> None:
    assert run(called(".calltargets f", "b32")) == 42
    with pytest.raises(VerifyError) as caught:
        run(called(".calltargets f, g", "b32"))
    assert caught.value.message.split("\n")[0] == "f and g are called here, and their parameters differ"
    assert caught.value.hint == "give shape functions of one prototype only"


def test_a_function_by_its_name_has_its_own_prototype() -> None:
    with pytest.raises(VerifyError) as caught:
        run(called(".callprototype (.param .b32 _) _ (.param .b32 _)", "b32", callee="f"))
    assert caught.value.message.split("\n")[0] == "a call of a function by its name, and a prototype"
    assert caught.value.hint == "leave out `, shape`"

"""Runs one texture or surface instruction over many threads: columns of operands in, columns of results out."""

from __future__ import annotations

from typing import Any

import numpy as np

import ptxdsl

HEADER = ".version 8.6\n.target sm_90{options}\n.address_size 64\n{variables}"


def program(
    instruction: str, inputs: int, results: int, *, bits: int = 32, options: str = "", variables: str = "",
    handles: int = 1, guard: str = "",
) -> str:
    """A module with the kernel ``k(handles.., n, in, out)`` that executes an instruction once a thread.

    In the instruction %c0, %c1, .. are the inputs, of 32 bits, %d0, %d1, .. the results and %h0, .. the handles; %p0
    holds for odd threads, %p1 can be written.
    """
    given = "".join(f".param .u64 h{n}, " for n in range(handles))
    loads = "".join(f"ld.param.u64 %h{n}, [h{n}];\n" for n in range(handles))
    reads = "".join(f"ld.global.b32 %c{n}, [%a+{4 * n}];\n" for n in range(inputs))
    writes = "".join(f"st.global.b{bits} [%b+{bits // 8 * n}], %d{n};\n" for n in range(results))
    clears = "".join(f"mov.b{bits} %d{n}, 0;\n" for n in range(results))
    return HEADER.format(options=options, variables=variables) + f"""
.visible .entry k({given}.param .u32 n, .param .u64 in, .param .u64 out)
{{
.reg .b64 %a, %b, %w, %h<{handles + 1}>;
.reg .b32 %c<{inputs + 1}>, %i, %t, %n;
.reg .b{bits} %d<{max(results, 1)}>;
.reg .pred %p<4>;
{loads}ld.param.u64 %a, [in];
ld.param.u64 %b, [out];
ld.param.u32 %n, [n];
mov.u32 %i, %ctaid.x;
mov.u32 %t, %tid.x;
mad.lo.u32 %i, %i, 64, %t;
setp.ge.u32 %p3, %i, %n;
@%p3 bra END;
and.b32 %t, %i, 1;
setp.ne.u32 %p0, %t, 0;
mul.wide.u32 %w, %i, {4 * inputs};
add.u64 %a, %a, %w;
mul.wide.u32 %w, %i, {bits // 8 * results};
add.u64 %b, %b, %w;
{reads}{clears}{guard}{instruction}
{writes}END:
ret;
}}
"""


def columns(*values: Any) -> np.ndarray:
    """Arrays of 32-bit numbers side by side, as bits."""
    return np.stack([np.ascontiguousarray(value).view(np.uint32) for value in values], axis=-1)


def run(
    text: str, handles: Any, inputs: np.ndarray, results: int, dtype: Any = np.float32,
    bind: dict[str, Any] | None = None,
) -> np.ndarray:
    """The results of each thread, as ``dtype``."""
    module = ptxdsl.load(text)
    for name, image in (bind or {}).items():
        module[name] = image
    count = len(inputs)
    out = np.full((count, max(results, 1)), 77, np.dtype(f"u{np.dtype(dtype).itemsize}"))
    given = handles if isinstance(handles, (list, tuple)) else [handles]
    launch = module["k"].configure(-(-count // 64), 64, backend="emulator")
    launch(*given, count, np.ascontiguousarray(inputs), out)
    return out.view(dtype)


def vector(prefix: str, first: int, count: int) -> str:
    """``{%c0, %c1}``"""
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(first, first + count)) + "}"

"""What instructions needed before sm_75 and PTX 6.3, from where on the rows of the table say it themselves.

For foreign text only: nothing is printed for those targets. The numbers are NVIDIA's assembler's.
"""

from __future__ import annotations

import re
from functools import cache

from .specs import Need

__all__ = ["legacy_needs"]

_NEEDS = (
    (r"(shfl|vote)\.sync|barrier|bar\.warp|fns|brx", (6, 0), "sm_30"),
    (r"shfl\.(?!sync)", (3, 0), "sm_30"),
    (r"vote\.ballot", (2, 0), "sm_20"),
    (r"vote", (1, 2), "sm_12"),
    (r"match|fence|(ld|st|atom|red)\..*(weak|relaxed|acquire|release|acq_rel)", (6, 0), "sm_70"),
    (r"activemask", (6, 2), "sm_30"),
    (r"nanosleep", (6, 2), "sm_70"),
    (r"dp[24]a", (5, 0), "sm_61"),
    (r"lop3", (4, 3), "sm_50"),
    (r"istypep", (4, 0), "sm_30"),
    (r"shf\.", (4, 0), "sm_32"),
    (r"ld\.global\..*\bnc\b", (3, 1), "sm_32"),
    (r"(add|sub|mul|fma|set|setp|neg|abs)\..*f16", (4, 2), "sm_53"),
    (r"neg\..*f16", (6, 0), "sm_53"),
    (r"(atom|red)\..*\b(f64|(?<!::)(cta|gpu|sys))\b", (5, 0), "sm_60"),
    (r"membar\.proxy", (6, 0), "sm_60"),
    (r"(atom|red)\..*\bf16x2", (6, 2), "sm_60"),
    (r"(atom|red)\..*\bf16$|atom\..*\bb16", (6, 3), "sm_70"),
    (r"(atom|red)\..*\b(and|or|xor|min|max)\.[bsu]64", (3, 1), "sm_32"),
    (r"(atom|red)\.(shared\.)?.*f32", (2, 0), "sm_20"),
    (r"(atom|red)\.", (1, 1), "sm_11"),
    (r"v(absdiff|add|avrg|max|min|set|sub)[24]\.", (3, 0), "sm_30"),
    (r"v(absdiff|add|mad|max|min|set|shl|shr|sub)\.", (2, 0), "sm_20"),
    (r"wmma\..*\b([us]4|b1|m8n8k32|m8n8k128)\b", (6, 3), "sm_75"),
    (r"wmma\..*\b([us]8|s32)\b", (6, 3), "sm_72"),
    (r"wmma\..*\baligned\b", (6, 3), "sm_70"),
    (r"wmma", (6, 0), "sm_70"),
    (r"mma\.(?!.*m8n8k4\..*f16)|ldmatrix|movmatrix|tanh|ex2\..*f16|.*\.L2::\d+B", (6, 3), "sm_75"),
    (r"cvt\.pack\..*\b[us][24]\b", (6, 3), "sm_75"),
    (r"cvt\.pack", (6, 3), "sm_72"),
    (r"mma\.|szext|bmsk|lop3\.(and|or|xor)|.*\.b128$|cvt\..*satfinite\.f16", (6, 0), "sm_70"),
    (r"(cvta|isspacep)\..*\bparam", (6, 0), "sm_70"),
    (r"alloca|stacksave|stackrestore", (5, 0), "sm_52"),
    (r"(tex|tld4)\..*f16", (4, 2), "sm_53"),
    (r"sured\..*\.b64", (5, 0), "sm_50"),
    (r"tex\..*2dms|txq\.level", (3, 2), "sm_30"),
    (r"(add|addc|sub|subc|madc?\.\w+)\.cc\..*64", (4, 3), "sm_20"),
    (r"mad\.\w+\.cc|madc|pmevent\.mask", (3, 0), "sm_20"),
    (r"(isspacep|cvta(\.to)?)\.const", (3, 1), "sm_20"),
    (r"rsqrt\.approx\.ftz\.f64", (4, 0), "sm_20"),
    (r"suld|sust|sured", (3, 1), "sm_20"),
    (r"(bfe|bfi|bfind|brev|clz|popc|prmt|testp|copysign|cvta|isspacep|prefetchu?|ldu)\b", (2, 0), "sm_20"),
    (r"(fma|div|rcp|sqrt)\.r\w\..*f32|membar\.sys|bar\.(arrive|red)", (2, 0), "sm_20"),
)
"""A pattern of mnemonics, and the PTX version and target that they needed. Compiled at first use."""


@cache
def legacy_needs(mnemonic: str) -> tuple[Need, ...]:
    """What an instruction, with its modifiers, needs of a target before sm_75 or of PTX before 6.3.

    >>> legacy_needs("shfl.sync.up.b32")
    (Need(version=(6, 0), targets=('sm_30',)),)
    """
    return tuple(Need(version, (target,)) for pattern, version, target in _NEEDS if re.match(pattern, mnemonic))

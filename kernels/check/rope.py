"""Checks of rotary embeddings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import bf16, f16, f32, f64, s32, s64
from ...bench import Row, compare
from .. import reference, rope
from .entry import Entry

__all__ = ["ENTRIES"]


def _check(name: str) -> Callable[[], Row]:
    def check() -> Row:
        q = np.random.default_rng().standard_normal((33, 4, 64)).astype(np.float32)
        out = np.full_like(q, np.nan)
        expected = reference.rope(q, np.arange(33), neox=name == "rope_neox")
        return compare(f"{name}, 33 x 4 x 64", lambda: getattr(rope, name)(q, out=out), out, expected, 1e-6)

    return check


ENTRIES: dict[str, Entry] = {
    "rope": Entry(_check("rope"), lambda: [rope.rope_kernel(f16, s64, False, False, True)]),
    "rope_neox": Entry(_check("rope_neox"), lambda: [
        rope.rope_kernel(bf16, s32, True, True, False), rope.rope_kernel(f32, None, True, True, False),
        rope.rope_kernel(f64, s64, True, True, True),
    ]),
}

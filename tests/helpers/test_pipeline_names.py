"""A pipeline's mbarriers and registers carry the name of its variable in messages and PTX."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl import DeadlockError, Pipeline, Ptr, f32, ptx, ptx_kernel, when


@ptx_kernel
def never_filled(x: Ptr[f32]):
    ring = Pipeline(2, producers=32, consumers=32)
    with when(ptx.tid.x >= 32):
        reader = ring.consumer()
        reader.wait().release()


def test_a_deadlock_names_the_side_of_the_pipeline():
    with pytest.raises(DeadlockError, match=r"parity 0 of ring_full\[0\], which lacks 32 of 32 arrivals"):
        never_filled.configure(1, 64, backend="emulator")(np.zeros(64, np.float32))


def test_ptx_names_its_parts():
    text = never_filled.ptx()
    for part in (".u64 ring_full[2];", ".u64 ring_empty[2];", "%reader_stage", "%reader_parity"):
        assert part in text

"""The cases of the semantics as launches, for the check of a GPU: a kernel of each, its operands and its results."""

from __future__ import annotations

from typing import Any

import numpy as np
import semantics_harness
from approximate_bounds import allowed
from semantics_harness import Array, Case, flat, form_of, result_bits, source_bits

from ptxdsl.gpu_check.form_kernels import form_kernel
from ptxdsl.gpu_check.recording import Recorder

MOST, MOST_APPROXIMATE = 256, 2048
"""Elements of a case that are taken: what is left out of it the emulator's tests have."""


def listen(recorder: Recorder) -> None:
    """Hand the cases that are run from now on to a recorder."""
    semantics_harness.LISTENERS.append(lambda case, results: record(recorder, case, results))


def record(recorder: Recorder, case: Case, results: tuple[Array, ...]) -> None:
    """Record a case."""
    form = form_of(case)
    numbers = [source for source in case.sources if isinstance(source, int)]
    try:
        text = form_kernel(form, numbers, case.selectors)
    except ValueError as error:
        recorder.tape.left_out[str(error)] += 1
        return
    limits = allowed(case.mnemonic, flat(case.sources), results[0])
    chosen = _chosen(len(results[0]), MOST if limits is None else MOST_APPROXIMATE)
    dtypes = [semantics_harness.DTYPES[bits] for bits in source_bits(form)]
    sources = [np.asarray(array, dtype) for array, dtype in zip(flat(case.sources), dtypes)]
    arrays = [np.ascontiguousarray(array[chosen]) for array in (*sources, *results)]
    bounds: Any = None
    if limits is not None:
        dtype, low, high = limits
        packed = len(low) // len(results[0])
        bounds = dtype, *(np.ascontiguousarray(limit.reshape(-1, packed)[chosen]) for limit in (low, high))
    recorder.instruction(case.mnemonic, text, arrays, len(result_bits(form)), bounds)


def _chosen(length: int, most: int) -> Array:
    """Which elements to take, whole warps of them, from all over."""
    return np.linspace(0, length - 1, min(length, most)).astype(int)

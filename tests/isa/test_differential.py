"""A sample of `tests/support/differential.py`: what the package takes and refuses, against NVIDIA's assembler."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from differential import AGREED, disagreements, variants

pytestmark = pytest.mark.ptxas


def test_variants_of_rows_are_judged_as_the_assembler_judges_them() -> None:
    drawn = list(variants(np.random.default_rng(20), 700))
    found = list(disagreements(drawn))
    wrong = [
        f"{variant.kind}: {variant.line} PTX {variant.version} {variant.target}: ptxas {its!r}, and here {mine!r}"
        for variant, mine, its in found if variant.kind in AGREED
    ]
    assert not wrong, "\n".join(wrong)
    assert len(found) < 0.08 * len(drawn), Counter(variant.kind for variant, _, _ in found)
    assert len({variant.kind for variant in drawn}) > 20

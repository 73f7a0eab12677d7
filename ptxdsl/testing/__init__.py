"""Tools for the tests of kernels: random arrays with special values, comparisons of two kernels, smallest failing ones.

``ptxdsl.testing.strategies`` has the same arrays as strategies of hypothesis, which must be installed for it.
"""

from __future__ import annotations

from .comparing import Comparison, Difference, compare
from .minimising import Minimal, minimise
from .random_arrays import random_array, special_values

__all__ = ["Comparison", "Difference", "Minimal", "compare", "minimise", "random_array", "special_values"]

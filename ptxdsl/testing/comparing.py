"""Whether two kernels compute the same: both run on the same random arguments, and what they leave is compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import LaunchError, PtxError, caller
from ..options import checked_options
from .random_arrays import float_info, random_array, ulps

__all__ = ["Comparison", "Difference", "compare"]

Fill = Callable[[np.random.Generator, int, NDArray[Any]], ArrayLike]


@dataclass(frozen=True)
class Difference:
    """Where an argument differs after the two: how many elements, and the one that differs most, with both values."""

    argument: int
    name: str
    count: int
    size: int
    index: tuple[int, ...]
    before: Any
    first: Any
    second: Any
    ulps: float

    def __str__(self) -> str:
        place = f"{self.name}[{', '.join(map(str, self.index))}]"
        whole = isinstance(self.first, (bool, np.bool_, np.integer))
        apart = f", {self.ulps:.4g} ulp apart" if np.isfinite(self.ulps) and not whole else ""
        first, second = _told_apart(self.first, self.second)
        before = f"{self.before:.4g}" if isinstance(self.before, (float, np.floating)) else self.before
        return (
            f"{self.name}: {self.count:,} of {self.size:,} elements differ; most {place}, which was {before}: "
            f"{first} and {second}{apart}"
        )


def _told_apart(one: Any, other: Any) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to see that they differ, and four at least."""
    if not isinstance(one, (float, np.floating)) or not (np.isfinite(one) and np.isfinite(other)):
        return str(one), str(other)
    digits = range(4, 18) if float(one) != float(other) else (6,)
    shown = ((f"{float(one):.{digit}g}", f"{float(other):.{digit}g}") for digit in digits)
    return next((each for each in shown if each[0] != each[1]), (f"{float(one):.6g}", f"{float(other):.6g}"))


@dataclass
class Comparison:
    """What came of a comparison; true if the two computed the same in all rounds.

    ``arguments`` are those of the round in which they differ, as they were before it, to be looked at again; ``most``
    is the largest difference within the tolerance, in units of the last place.
    """

    names: tuple[str, str]
    rounds: int = 0
    differences: list[Difference] = field(default_factory=list)
    errors: tuple[PtxError | None, PtxError | None] = (None, None)
    arguments: tuple[Any, ...] = ()
    seed: int = 0
    most: float = 0.0

    def __bool__(self) -> bool:
        return not self.differences and self.errors == (None, None)

    def __str__(self) -> str:
        first, second = self.names
        if self:
            within = f", {self.most:.4g} ulp apart at most" if self.most else ""
            return f"{first} and {second} compute the same in {self.rounds} rounds{within}"
        lines = [f"{first} and {second} differ in round {self.rounds} of seed {self.seed}"]
        lines += [f"  {difference}" for difference in self.differences]
        for name, error in zip(self.names, self.errors):
            if error is not None:
                lines.append(f"  {name}: {type(error).__name__}: {error}")
        return "\n".join(lines)


@checked_options(LaunchError, "compare")
def compare(
    first: Callable[..., object], second: Callable[..., object], *arguments: Any, rounds: int = 10, rtol: float = 0.0,
    atol: float = 0.0, special: float = 0.05, fill: Fill | None = None, seed: int | None = None,
) -> Comparison:
    """Run two kernels on the same random arguments, and compare what they leave in the arrays.

    Args:
        first: A launch, ``k[grid, block]``, of a kernel or of foreign PTX; or any function of the same arguments.
        second: The other one.
        arguments: Of both; numpy arrays and numbers. They are not changed.
        rounds: How often. In each, arrays of floats hold new random numbers (:func:`random_array`); others, which may
            be indices, keep what they hold.
        rtol: How far results may be apart, relative to the second's.
        atol: And absolutely. With neither, bits decide, but for NaN, of which one is like another.
        special: The share of special values (infinities, NaN, subnormal numbers, zeros of both signs).
        fill: ``fill(rng, position, array)`` gives what an array holds in a round, in place of the above.
        seed: Of the random numbers; another in each call if None. A comparison tells its own.

    Raises:
        LaunchError: The arguments have no array.

    >>> from ptxdsl import Ptr, compare, f32, ptx, ptx_kernel
    >>> @ptx_kernel
    ... def thirds(x: Ptr[f32]):
    ...     x[ptx.tid.x] = x[ptx.tid.x] / 3.0
    >>> @ptx_kernel
    ... def by_reciprocal(x: Ptr[f32]):
    ...     x[ptx.tid.x] = x[ptx.tid.x] * (1 / 3)
    >>> print(compare(thirds[1, 32], thirds[1, 32], np.zeros(32, np.float32)))
    thirds and thirds compute the same in 10 rounds
    >>> bool(compare(thirds[1, 32], by_reciprocal[1, 32], np.zeros(32, np.float32)))
    False
    >>> bool(compare(thirds[1, 32], by_reciprocal[1, 32], np.zeros(32, np.float32), rtol=1e-6, special=0))
    True
    """
    if not any(isinstance(each, np.ndarray) for each in arguments):
        raise LaunchError("there is no numpy array among the arguments, so nothing to compare", loc=caller())
    chosen = int(np.random.default_rng().integers(2**31)) if seed is None else seed
    rng, found = np.random.default_rng(chosen), Comparison((_name(first), _name(second)), seed=chosen)
    names = _parameters(first, arguments)
    for number in range(1, rounds + 1):
        found.rounds = number
        given = [_filled(rng, n, each, special, fill) for n, each in enumerate(arguments)]
        ours, theirs = _copied(given), _copied(given)
        found.errors = _run(first, ours), _run(second, theirs)
        if found.errors == (None, None):
            for n, (before, a, b) in enumerate(zip(given, ours, theirs)):
                if isinstance(a, np.ndarray):
                    _compare(found, n, names[n], before, a, b, rtol, atol)
        if not found:
            found.arguments = tuple(given)
            break
    return found


def _name(kernel: Any) -> str:
    return str(getattr(getattr(kernel, "kernel", kernel), "entry", getattr(kernel, "__name__", repr(kernel))))


def _parameters(kernel: Any, arguments: tuple[Any, ...]) -> list[str]:
    known = [each.name for each in getattr(getattr(kernel, "kernel", None), "parameters", ())]
    return [known[n] if n < len(known) else f"argument {n}" for n in range(len(arguments))]


def _filled(rng: np.random.Generator, position: int, value: Any, special: float, fill: Fill | None) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if fill is not None:
        return np.array(fill(rng, position, value.copy()), value.dtype).reshape(value.shape)
    return value.copy() if float_info(value.dtype) is None else random_array(rng, value.shape, value.dtype, special)


def _copied(arguments: list[Any]) -> list[Any]:
    return [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]


def _run(kernel: Callable[..., object], arguments: list[Any]) -> PtxError | None:
    try:
        kernel(*arguments)
    except PtxError as error:
        return error
    return None


def _compare(
    found: Comparison, position: int, name: str, before: NDArray[Any], a: NDArray[Any], b: NDArray[Any], rtol: float,
    atol: float,
) -> None:
    apart = ulps(a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (np.abs(wide_a - wide_b) <= atol + rtol * np.abs(wide_b)) if rtol or atol else False
    same = _same_bits(a, b) | (np.isnan(wide_a) & np.isnan(wide_b)) | near
    if same.all():
        found.most = max(found.most, float(np.max(apart, initial=0.0, where=np.isfinite(apart))))
        return
    place = tuple(map(int, np.unravel_index(int(np.argmax(np.where(same, -1.0, apart))), a.shape)))
    found.differences.append(Difference(
        position, name, int((~same).sum()), a.size, place, before[place], a[place], b[place], float(apart[place])
    ))


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    first, second = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (a, b))
    return np.asarray((first == second).reshape(*a.shape, a.dtype.itemsize).all(-1))

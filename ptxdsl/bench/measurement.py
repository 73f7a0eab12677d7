"""What a measurement says: a time with its spread, a rate, and how it compares with another."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import PtxError, caller

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Measurement", "Ratio", "count_text", "seconds_text"]

_RESAMPLES = 1000
_CONFIDENCE = (0.025, 0.975)
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def seconds_text(seconds: float) -> str:
    """A time with three digits and its unit.

    >>> seconds_text(0.00001234), seconds_text(2.0), seconds_text(0.0)
    ('12.3 µs', '2.00 s', '0.00 ns')
    """
    scale, unit = next((each for each in _TIMES if seconds >= each[0] * 0.9995), _TIMES[-1])
    return f"{_three_digits(seconds / scale)} {unit}"


def count_text(count: float, unit: str) -> str:
    """A number with three digits, of a unit with its decimal prefix.

    >>> count_text(3.35e12, "B/s"), count_text(12, "flop/s")
    ('3.35 TB/s', '12.0 flop/s')
    """
    scale, prefix = next((each for each in _COUNTS if count >= each[0] * 0.9995), _COUNTS[-1])
    return f"{_three_digits(count / scale)} {prefix}{unit}"


def _three_digits(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


class Ratio(float):
    """The ratio of two measured times, a float; ``low`` to ``high`` holds the true one with 95 % confidence.

    Where 1 lies between them, the measurements do not say which of the two is faster.
    """

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> Ratio:
        self = super().__new__(cls, value)
        self.low, self.high = low, high
        return self

    def __repr__(self) -> str:
        return f"{float(self):.3g} ({self.low:.3g} to {self.high:.3g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ratio, (float(self), self.low, self.high)


@dataclass(frozen=True)
class Measurement:
    """How long runs of something took: ``times`` in seconds, one a run, in their order.

    ``clock`` says what took the times, ``where`` what ran. ``nbytes`` and ``flops`` are what a run moves and computes,
    as whoever measured has said; ``at`` is the size that it was measured at. ``a / b`` is the ratio of two medians.

    >>> a = Measurement((2.0e-6, 2.1e-6, 2.2e-6), "copy", nbytes=4_000_000)
    >>> a
    <copy: 2.10 µs (2.05 to 2.15), n = 3, 1.90 TB/s, wall time>
    >>> a / Measurement((4.2e-6, 4.2e-6, 4.2e-6))
    0.5 (0.476 to 0.524)
    """

    times: tuple[float, ...] = field(repr=False)
    name: str = "run"
    clock: str = "wall time"
    where: str = ""
    nbytes: float | None = None
    flops: float | None = None
    at: float | None = None

    @property
    def n(self) -> int:
        """How many runs were timed."""
        return len(self.times)

    def quantile(self, share: float) -> float:
        """The time that so large a share of the runs, 0 to 1, took at most; between two runs it is interpolated."""
        import numpy as np

        return float(np.quantile(self.times, share))

    @property
    def median(self) -> float:
        """The median time in seconds."""
        return self.quantile(0.5)

    @property
    def low(self) -> float:
        """The first quartile of the times in seconds."""
        return self.quantile(0.25)

    @property
    def high(self) -> float:
        """The third quartile of the times in seconds."""
        return self.quantile(0.75)

    @property
    def spread(self) -> float:
        """The distance between the quartiles as a share of the median: above 0.1 or so the machine was busy."""
        return (self.high - self.low) / self.median if self.median else 0.0

    @property
    def best(self) -> float:
        """The shortest time in seconds."""
        return min(self.times)

    @property
    def mean(self) -> float:
        """The mean time in seconds."""
        return sum(self.times) / len(self.times)

    @property
    def bytes_per_second(self) -> float | None:
        """Of ``nbytes`` at the median time; None where it is not said how many a run moves."""
        return None if self.nbytes is None else self.nbytes / self.median if self.median else float("inf")

    @property
    def flops_per_second(self) -> float | None:
        """Of ``flops`` at the median time; None where it is not said how many a run computes."""
        return None if self.flops is None else self.flops / self.median if self.median else float("inf")

    @cached_property
    def _medians(self) -> np.ndarray[Any, Any]:
        """Medians of times that are drawn from these again and again (the bootstrap), the same in every process."""
        import numpy as np

        times = np.asarray(self.times)
        drawn = np.random.default_rng(self.n).integers(0, self.n, (_RESAMPLES, self.n))
        return np.median(times[drawn], axis=1)

    def __truediv__(self, other: Measurement) -> Ratio:
        if not isinstance(other, Measurement):
            return NotImplemented
        if (self.clock, self.where) != (other.clock, other.where):
            raise PtxError(
                f"these times do not compare: `{self.name}` is {self.how}, `{other.name}` is {other.how}",
                loc=caller(), hint="measure both in the same place with the same options",
            )
        import numpy as np

        pairs = self._medians / np.random.default_rng(0).permutation(other._medians)
        low, high = np.quantile(pairs, _CONFIDENCE)
        return Ratio(self.median / other.median, float(low), float(high))

    @property
    def how(self) -> str:
        """What took the times, and where."""
        return f"{self.clock} on {self.where}" if self.where else self.clock

    @property
    def rates(self) -> dict[str, str]:
        """The rates that are known, as text, by their units."""
        known = {"B/s": self.bytes_per_second, "flop/s": self.flops_per_second}
        return {unit: count_text(rate, unit) for unit, rate in known.items() if rate is not None}

    def __repr__(self) -> str:
        scale = next((scale for scale, _ in _TIMES if self.median >= scale * 0.9995), _TIMES[-1][0])
        time = f"{seconds_text(self.median)} ({' to '.join(_three_digits(t / scale) for t in (self.low, self.high))})"
        at = f" at {self.at:g}" if self.at is not None else ""
        return f"<{self.name}{at}: {', '.join([time, f'n = {self.n}', *self.rates.values(), self.how])}>"

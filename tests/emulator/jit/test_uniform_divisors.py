"""Division by what all lanes have, in both tiers: every quotient and remainder against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import kernel, launch

DIVISORS = 24
DIVIDENDS = 256


def text(kind: str, divisors: str) -> str:
    """Quotients and remainders of a row of x, by a number for each block or an immediate."""
    bits = int(kind[1:])
    r, size = {16: ("%h", 2), 32: ("%r", 4), 64: ("%rd", 8)}[bits]
    where = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;"
    given = f"mul.wide.u32 %rd40, %r2, {size}; add.u64 %rd41, %rd41, %rd40; ld.global.u{bits} {r}21, [%rd41];"
    divisor = f"{r}21" if divisors == "given" else divisors
    return kernel(
        "u64 x, u64 d, u64 quotients, u64 remainders",
        f"""{where} ld.param.u64 %rd42, [x]; ld.param.u64 %rd41, [d]; ld.param.u64 %rd43, [quotients];
        ld.param.u64 %rd44, [remainders]; mul.wide.u32 %rd45, %r4, {size}; add.u64 %rd42, %rd42, %rd45;
        add.u64 %rd43, %rd43, %rd45; add.u64 %rd44, %rd44, %rd45; {given} ld.global.u{bits} {r}20, [%rd42];
        div.{kind} {r}22, {r}20, {divisor}; st.global.u{bits} [%rd43], {r}22;
        rem.{kind} {r}23, {r}20, {divisor}; st.global.u{bits} [%rd44], {r}23; ret;""",
    )


def samples(kind: str, rng: np.random.Generator) -> tuple[list[int], list[list[int]]]:
    """Divisors, and for each dividends around its multiples, as unsigned numbers."""
    bits, signed = int(kind[1:]), kind[0] == "s"
    top = 1 << bits
    edges = [0, 1, 2, 3, 7, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1, 641, 10]
    drawn = [int(rng.integers(1, 1 << int(rng.integers(1, bits)))) for _ in range(DIVISORS - len(edges))]
    divisors = [*edges, *drawn]
    rows = []
    for divisor in divisors:
        size = min(divisor, top - divisor) if signed else divisor
        last = top // max(size, 1)
        near = [(int(rng.integers(1 << 62)) % (last + 1)) * max(size, 1) + int(rng.integers(-1, 2))
                for _ in range(DIVIDENDS // 2)]
        any_ = [int(rng.integers(1 << 63)) * 2 + int(rng.integers(2)) >> 64 - bits for _ in range(DIVIDENDS // 2 - 6)]
        rows.append([number % top for number in [*near, *any_, 0, 1, top - 1, top // 2, top // 2 - 1, top - size]])
    return divisors, rows


def exact(number: int, divisor: int, kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    top = 1 << bits
    if divisor == 0:
        return top - 1, top - 1
    if kind[0] == "s":
        number, divisor = (n - top if n >= top // 2 else n for n in (number, divisor))
    quotient = abs(number) // abs(divisor) * (1 if (number < 0) == (divisor < 0) else -1)
    return quotient % top, (number - quotient * divisor) % top


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_quotients_and_remainders(kind: str, second: bool, rng: np.random.Generator) -> None:
    divisors, rows = samples(kind, rng)
    number = getattr(np, f"uint{kind[1:]}")
    expected = [[exact(each, divisor, kind) for each in row] for divisor, row in zip(divisors, rows)]
    for immediate in (False, True):
        few = [int(n) for n in rng.permutation(DIVISORS)[:3]] if immediate else list(range(DIVISORS))
        for chosen in [[n] for n in few] if immediate else [few]:
            x = np.array([rows[n] for n in chosen], number)
            d = np.array([divisors[n] for n in chosen], number)
            quotients, remainders = np.zeros_like(x), np.zeros_like(x)
            given = str(divisors[chosen[0]]) if immediate else "given"
            launch(text(kind, given), len(chosen), DIVIDENDS, second_tier=second, x=x, d=d,
                   quotients=quotients, remainders=remainders)
            assert quotients.tolist() == [[q for q, _ in expected[n]] for n in chosen]
            assert remainders.tolist() == [[r for _, r in expected[n]] for n in chosen]

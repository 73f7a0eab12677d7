"""Points, fields and paths: nearest of many, tests against shapes, flows, walks, state machines."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("kmeans_assign")
def kmeans_assign(rng: np.random.Generator, small: bool) -> Case:
    n, k = (70, 5) if small else (20_000, 32)
    points, centres = (rng.integers(-50, 51, (count, 8)).astype(np.float32) for count in (n, k))
    expected = ((points[:, None] - centres) ** 2).sum(2).argmin(1).astype(np.int32)
    return Case(-(-n // 128), 128, [points, centres, np.zeros(n, np.int32), n, k], {2: expected}, shared=32 * k)


@kernel("knn4")
def knn4(rng: np.random.Generator, small: bool) -> Case:
    n, m = (50, 40) if small else (2000, 1500)
    query, points = rng.integers(-(10**6), 10**6, n, np.int32), rng.integers(-(10**6), 10**6, m, np.int32)
    expected = np.sort(abs(points - query[:, None]), axis=1)[:, :4].astype(np.int32)
    return Case(-(-n // 64), 64, [query, points, np.zeros((n, 4), np.int32), n, m], {2: expected})


@kernel("point_in_polygon")
def point_in_polygon(rng: np.random.Generator, small: bool) -> Case:
    """On a grid of whole numbers, so that all products are exact."""
    n, corners = (77, 9) if small else (20_000, 100)
    angle = np.sort(rng.uniform(0, 2 * np.pi, corners))
    radius = rng.uniform(100, 1000, corners)
    corner = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).round().astype(np.float32)
    x, y = (rng.integers(-1000, 1000, n).astype(np.float32) for _ in range(2))
    inside = np.zeros(n, bool)
    for (ax, ay), (bx, by) in zip(np.roll(corner, 1, 0).astype(np.float64), corner.astype(np.float64)):
        crosses = (ay > y) != (by > y)
        inside ^= crosses & (((x - ax) * (by - ay) < (bx - ax) * (y - ay)) != (by < ay))
    return Case(-(-n // 256), 256, [x, y, corner, np.full(n, -1, np.int32), n, corners], {3: inside})


@kernel("collide")
def collide(rng: np.random.Generator, small: bool) -> Case:
    n = 90 if small else 3000
    low = rng.integers(0, 10_000, (n, 2), np.int32)
    box = np.concatenate([low, low + rng.integers(1, 700, (n, 2), np.int32)], 1)
    (ax, ay, az, aw), (bx, by, bz, bw) = box[:, None].transpose(2, 0, 1), box[None].transpose(2, 0, 1)
    hits = np.triu((ax < bz) & (bx < az) & (ay < bw) & (by < aw), 1).sum()
    return Case(-(-n // 128), 128, [box, np.zeros(1, np.int32), n], {1: [hits]})


@kernel("advect")
def advect(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 21) if small else (500, 300)
    field = rng.standard_normal((h, w)).astype(np.float32)
    u, v = rng.uniform(-3, 3, (2, h, w)).astype(np.float32)
    rows, columns = np.indices((h, w), np.float32)
    fx, fy = np.clip(columns - u, 0, np.float32(w - 1.001)), np.clip(rows - v, 0, np.float32(h - 1.001))
    x, y = fx.astype(int), fy.astype(int)
    ax, ay = (fx - x).astype(np.float64), (fy - y).astype(np.float64)
    above, below = ((1 - ax) * field[y + d, x] + ax * field[y + d, x + 1] for d in (0, 1))
    expected = (1 - ay) * above + ay * below
    return Case((-(-w // 32), -(-h // 8)), (32, 8), [field, u, v, np.zeros_like(field), w, h], {3: expected}, 1e-4)


@kernel("lattice_boltzmann")
def lattice_boltzmann(rng: np.random.Generator, small: bool) -> Case:
    w, h, omega = (40, 7, 1.2) if small else (320, 200, 1.2)
    speeds = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weights = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])
    before = (weights[:, None, None] * rng.uniform(0.9, 1.1, (9, h, w))).astype(np.float32)
    f = np.stack([np.roll(each.astype(np.float64), (y, x), (0, 1)) for each, (x, y) in zip(before, speeds)])
    rho = f.sum(0)
    ux, uy = (sum(speed[axis] * each for speed, each in zip(speeds, f)) / rho for axis in (0, 1))
    along = np.stack([3 * (x * ux + y * uy) for x, y in speeds])
    still = weights[:, None, None] * rho * (1 + along + along**2 / 2 - 1.5 * (ux**2 + uy**2))
    arguments = [before, np.zeros_like(before), w, h, np.float32(omega)]
    return Case((-(-w // 64), h), 64, arguments, {1: f + omega * (still - f)}, 1e-5)


@kernel("random_walk")
def random_walk(rng: np.random.Generator, small: bool) -> Case:
    n, size, most = (70, 4, 50) if small else (4000, 12, 1000)
    seeds = rng.integers(1, 1 << 32, n, np.uint32)
    s, x, y, steps = seeds.copy(), np.zeros(n, int), np.zeros(n, int), np.zeros(n, np.int32)
    for _ in range(most):
        goes = (abs(x) < size) & (abs(y) < size)
        for shift in (13, -17, 5):
            s ^= s << np.uint32(shift) if shift > 0 else s >> np.uint32(-shift)
        way = s & 3
        x += goes * ((way == 0).astype(int) - (way == 1))
        y += goes * ((way == 2).astype(int) - (way == 3))
        steps += goes
    return Case(-(-n // 128), 128, [seeds, np.zeros(n, np.int32), n, size, most], {1: steps})


@kernel("queens")
def queens(rng: np.random.Generator, small: bool) -> Case:
    del rng
    n = 6 if small else 9
    counts = np.zeros((n, n), np.int32)

    def place(chosen: list[int]) -> None:
        if len(chosen) == n:
            counts[chosen[0], chosen[1]] += 1
        for q in range(n):
            if all(q != c and abs(q - c) != len(chosen) - row for row, c in enumerate(chosen)):
                place([*chosen, q])

    place([])
    return Case(-(-n * n // 32), 32, [np.full(n * n, -1, np.int32), n], {0: counts.ravel()})


@kernel("viterbi")
def viterbi(rng: np.random.Generator, small: bool) -> Case:
    sequences, length = (2, 9) if small else (20, 100)
    step, emit = rng.integers(0, 1000, (64, 64), np.int32), rng.integers(0, 1000, (64, 16), np.int32)
    seen = rng.integers(0, 16, (sequences, length), np.uint8)
    now = emit[:, seen[:, 0]].T
    for t in range(1, length):
        now = (now[:, :, None] + step).min(1) + emit[:, seen[:, t]].T
    arguments = [step, emit, seen, np.zeros((sequences, 64), np.int32), length]
    return Case(sequences, 64, arguments, {3: now}, native=[*arguments, sequences])


@kernel("pointer_jump")
def pointer_jump(rng: np.random.Generator, small: bool) -> Case:
    n = 100 if small else 100_000
    order, following = rng.permutation(n), np.zeros(n, np.int32)
    following[order] = np.append(order[1:], order[-1])
    rank = rng.integers(0, 9, n, np.int32)
    last = following == np.arange(n)
    expected = rank + np.where(last, 0, rank[following])
    arguments = [following, rank, np.zeros(n, np.int32), np.zeros(n, np.int32), n]
    return Case(-(-n // 256), 256, arguments, {2: following[following], 3: expected})

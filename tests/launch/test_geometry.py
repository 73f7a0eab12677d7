"""The geometry and the other options of a launch, and a message for each that is wrong."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest
from launch_harness import error_of

from ptxdsl.config import ALL_SANITIZERS
from ptxdsl.launch import LaunchConfig


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(4, (4, 1, 1)), ((4,), (4, 1, 1)), ((4, 2), (4, 2, 1)), ([4, 2, 3], (4, 2, 3)), (np.int64(7), (7, 1, 1)),
     ((np.uint8(2), 3), (2, 3, 1)), (2**31 - 1, (2**31 - 1, 1, 1)), ((1, 65535, 65535), (1, 65535, 65535))],
)
def test_grids(given: Any, wanted: tuple[int, int, int]) -> None:
    config = LaunchConfig(given, 1)
    assert config.grid == wanted
    assert config.blocks == math.prod(wanted)


@pytest.mark.parametrize("given", [1, 1024, (1, 1024), (1, 1, 64), (32, 32), (8, 8, 16)])
def test_blocks(given: Any) -> None:
    config = LaunchConfig(1, given)
    assert config.threads == math.prod(config.block)


EMPTY = "an empty array needs no launch: `if x.size:`"
BAD_GEOMETRY: list[tuple[dict[str, Any], str, str | None]] = [
    ({"grid": 0}, "grid.x is 0; it can be 1 to 2147483647", EMPTY),
    ({"grid": -1}, "grid.x is -1; it can be 1 to 2147483647", None),
    ({"grid": 2**31}, "grid.x is 2147483648; it can be 1 to 2147483647", None),
    ({"grid": (1, 65536)}, "grid.y is 65536; it can be 1 to 65535", None),
    ({"grid": (1, 1, 0)}, "grid.z is 0; it can be 1 to 65535", EMPTY),
    ({"grid": ()}, "grid is an int or a tuple of 1 to 3 ints, not ()", "write `grid=4` or `grid=(4, 2)`"),
    ({"grid": (1, 2, 3, 4)}, "grid is an int or a tuple of 1 to 3 ints, not (1, 2, 3, 4)",
     "write `grid=4` or `grid=(4, 2)`"),
    ({"grid": 3.0}, "grid.x is an int, not 3.0", "write `3`"),
    ({"grid": 3.9}, "grid.x is an int, not 3.9", "round up: `cdiv(n, 256)` blocks of 256 threads"),
    ({"grid": math.inf}, "grid.x is an int, not inf", "round up: `cdiv(n, 256)` blocks of 256 threads"),
    ({"grid": "4"}, "grid.x is an int, not '4'", None),
    ({"grid": None}, "grid.x is an int, not None", None),
    ({"grid": True}, "grid.x is an int, not True", None),
    ({"block": 1025}, "block.x is 1025; it can be 1 to 1024", None),
    ({"block": (1, 1, 65)}, "block.z is 65; it can be 1 to 64", None),
    ({"block": (64, 32)}, "block (64, 32, 1) has 2048 threads; the limit is 1024",
     "make the block smaller and the grid larger"),
    ({"shared": -1}, "shared is -1 bytes; it can be 0 to 232448 bytes", None),
    ({"shared": 232449}, "shared is 232449 bytes; it can be 0 to 232448 bytes", None),
    ({"shared": 1.5}, "shared is an int, not 1.5", None),
    ({"grid": 3, "cluster": 2}, "cluster.x is 2, which does not divide grid.x = 3 (grid counts blocks)",
     "round grid.x up to 4"),
    ({"grid": (4, 5), "cluster": (2, 2)}, "cluster.y is 2, which does not divide grid.y = 5 (grid counts blocks)",
     "round grid.y up to 6"),
    ({"grid": 32, "cluster": 32}, "cluster.x is 32; it can be 1 to 16", None),
    ({"grid": (8, 8), "cluster": (8, 4)}, "cluster (8, 4, 1) has 32 blocks; the limit is 16", None),
    ({"cooperative": 1}, "cooperative is True or False, not 1", None),
    ({"programmatic": None}, "programmatic is True or False, not None", None),
    ({"priority": 1.5}, "priority is an int, not 1.5", None),
    ({"priority": 1 << 31}, "priority is 2147483648; it can be -2147483648 to 2147483647", None),
    ({"sync_domain": "far"}, "sync_domain is one of default, remote, not 'far'", None),
    ({"stream": "main"}, "stream is a CUDA stream or its handle, not 'main'",
     "pass an int, or an object with `__cuda_stream__` (cuda.core, torch, CuPy)"),
    ({"stream": -3}, "stream is a CUDA stream or its handle, not -3",
     "pass an int, or an object with `__cuda_stream__` (cuda.core, torch, CuPy)"),
    ({"sanitize": "raec"}, "'raec' is no check of the sanitizer", "did you mean 'race'?"),
    ({"sanitize": "memory,rase"}, "'rase' is no check of the sanitizer", "did you mean 'race'?"),
    ({"sanitize": ""}, "'' is no check of the sanitizer", "one or more of memory, race, order, init, barrier, cas"),
    ({"sanitize": "1"}, "'1' is no check of the sanitizer", "one or more of memory, race, order, init, barrier, cas"),
    ({"sanitize": 3}, "3 is no check of the sanitizer", "one or more of memory, race, order, init, barrier, cas"),
]


@pytest.mark.parametrize(("given", "message", "hint"), BAD_GEOMETRY, ids=lambda value: str(value)[:40])
def test_bad_geometry(given: dict[str, Any], message: str, hint: str | None) -> None:
    error = error_of(lambda: LaunchConfig(**{"grid": 1, "block": 1, **given}))
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(None, None), (False, set()), (True, set(ALL_SANITIZERS)), ("race", {"race"}), ("race,init", {"race", "init"}),
     (["memory"], {"memory"}), ((), set()), ("all", set(ALL_SANITIZERS)),
     ("off", set()), ("race, init", {"race", "init"})],
)
def test_sanitize(given: Any, wanted: set[str] | None) -> None:
    assert LaunchConfig(1, 1, sanitize=given).sanitize == wanted


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(None, None), (0, 0), (77, 77), (types.SimpleNamespace(__cuda_stream__=lambda: (0, 78)), 78),
     (types.SimpleNamespace(cuda_stream=79), 79), (types.SimpleNamespace(ptr=80), 80),
     (types.SimpleNamespace(handle=types.SimpleNamespace(value=81)), 81)],
)
def test_streams(stream: Any, handle: int | None) -> None:
    assert LaunchConfig(1, 1, stream=stream).stream == handle

"""Launches by machine code beside the same launches the long way: both must do the same."""

from __future__ import annotations

from typing import Any

import pytest
from driver_standin import Standin

from ptxdsl.errors import PtxError

__all__ = ["CudaArray", "compared", "made_ready", "refuses", "taken"]


class CudaArray:
    """An array of another library, which shows ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f4", **interface: Any) -> None:
        data = address, interface.pop("readonly", False)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": data, "version": 3, **interface}


def taken(launch: Any) -> int:
    """How many launches machine code has made in this geometry."""
    return sum(plan.taken for plan in getattr(launch.prepared.plans, "plans", ()))


def made_ready(launch: Any, *args: Any, **named: Any) -> None:
    """Launch until the next such launch is made by machine code."""
    for _ in range(2):
        launch(*args, **named)
    before = taken(launch)
    launch(*args, **named)
    assert taken(launch) == before + 1


def compared(cu: Standin, launch: Any, *args: Any, **named: Any) -> bool:
    """Launch both ways, and compare what the driver was given or what was raised; whether machine code did it."""
    made, before = [], taken(launch)
    for call in (launch, launch.long_way):
        count = len(cu.launches)
        try:
            call(*args, **named)
        except PtxError as error:
            assert len(cu.launches) == count
            made.append((type(error), error.message, error.hint))
        else:
            (launched,) = cu.launches[count:]
            made.append((launched.parameters, launched.stream, launched.grid, launched.block, launched.attributes))
    assert made[0] == made[1]
    return taken(launch) > before


def refuses(cu: Standin, launch: Any, *args: Any, match: str | None = None, **named: Any) -> None:
    """The launch is refused both ways, with the same words, and not made."""
    assert not compared(cu, launch, *args, **named)
    with pytest.raises(PtxError, match=match):
        launch(*args, **named)

"""A configuration: the block, the grid and the compile-time constants that are tried together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..errors import LaunchError, caller

__all__ = ["GEOMETRY", "Config"]

GEOMETRY = ("block", "grid", "shared", "cluster")
"""What of a launch a configuration may say."""


@dataclass(frozen=True, init=False, repr=False)
class Config:
    """What one configuration says of a launch, and the kernel's compile-time constants by keyword.

    Each of block, grid, shared and cluster may be a function of the configuration. What is not given here is given at
    the launch. The constants are attributes, too.

    >>> config = Config(block=128, STAGES=3)
    >>> config, config.STAGES
    (Config(block=128, STAGES=3), 3)
    """

    block: Any
    grid: Any
    shared: int | None
    cluster: Any
    constants: dict[str, Any]

    def __init__(
        self, block: Any = None, *, grid: Any = None, shared: int | None = None, cluster: Any = None, **constants: Any
    ) -> None:
        # A list could be changed, and a configuration is a key.
        given = (_frozen(block), _frozen(grid), shared, _frozen(cluster), constants)
        for name, value in zip((*GEOMETRY, "constants"), given):
            object.__setattr__(self, name, value)

    @classmethod
    def product(cls, **choices: Iterable[Any]) -> list[Config]:
        """All combinations of what is listed for each name, the last name changing fastest.

        >>> Config.product(block=[64, 128], STAGES=[2, 3])[:2]
        [Config(block=64, STAGES=2), Config(block=64, STAGES=3)]
        """
        for name, values in choices.items():
            if isinstance(values, (str, int)) or not isinstance(values, Iterable):
                raise LaunchError(
                    f"Config.product wants what to try of `{name}`, not {values!r}", loc=caller(),
                    hint=f"`Config.product({name}=[{values!r}])`",
                )
        return [cls(**dict(zip(choices, chosen))) for chosen in product(*choices.values())]

    @property
    def launch(self) -> dict[str, Any]:
        """What it says of the launch."""
        return {name: value for name in GEOMETRY if (value := getattr(self, name)) is not None}

    def __getattr__(self, name: str) -> Any:
        constants = self.__dict__.get("constants", {})  # which a copy that is being made does not have yet
        if name in constants:
            return constants[name]
        raise AttributeError(f"{self!r} has no {name!r}" if constants else name)

    def __hash__(self) -> int:
        return hash((*self.launch.items(), *sorted(self.constants)))

    def __repr__(self) -> str:
        given = {**self.launch, **self.constants}
        return f"Config({', '.join(f'{name}={_shown(value)}' for name, value in given.items())})"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)

"""The targets of PTX: which there are, since when, what each of them has and how much of it.

A target is a number and a suffix. PTX for ``sm_90`` runs on every later GPU. ``sm_100f`` may use what the family of
sm_100 has in common and runs on its later members; ``sm_90a`` may use everything that GPU has and runs only there.
A row of the table names the lowest targets that serve; everything else follows from the order within the families,
and a form needs the version that introduced it or the version that introduced the target, whichever is later.

Before sm_75 there were others, which no assembler makes code for any more, but whose PTX every later GPU runs: text
for them is taken (`LEGACY`), and nothing new is printed for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from ..errors import TargetError, caller
from .specs import Need

__all__ = [
    "FORMER", "LATEST", "LEGACY", "MANY_PARAMETERS", "MEMORY", "MOST_PARAMETERS", "PARAMETERS", "PORTABLE_CLUSTER",
    "TARGETS", "Limits", "Multiprocessor", "Target",
    "assembled", "introduced", "limits", "lowest", "multiprocessor", "satisfies", "served", "serves", "unmet",
    "version_text",
]

Version = tuple[int, int]

LATEST: Version = (9, 5)
"""The newest PTX version."""


class Target(NamedTuple):
    """A target; ``family`` is the number of the oldest member, 0 where there are no family targets."""

    name: str
    number: int
    suffix: str
    family: int
    introduced: Version


def _targets() -> dict[str, Target]:
    plain = {75: (6, 3), 80: (7, 0), 86: (7, 1), 87: (7, 4), 88: (9, 0), 89: (7, 8), 90: (7, 8), 100: (8, 6),
             103: (8, 8), 107: (9, 4), 110: (9, 0), 120: (8, 7), 121: (8, 8)}
    families = {100: 100, 103: 100, 107: 100, 110: 110, 120: 120, 121: 120}
    found = {}
    for number, version in plain.items():
        family = families.get(number, 0)
        for suffix, since in (("", version), ("f", max(version, (8, 8))), ("a", max(version, (8, 0)))):
            if not suffix or family or (number == 90 and suffix == "a"):
                name = f"sm_{number}{suffix}"
                found[name] = Target(name, number, suffix, family, since)
    return found


TARGETS = _targets()
"""Every target from sm_75 on, the lowest first."""

LEGACY = {
    f"sm_{number}": Target(f"sm_{number}", number, "", 0, version)
    for number, version in {
        10: (1, 0), 11: (1, 0), 12: (1, 2), 13: (1, 2), 20: (2, 0), 21: (2, 0), 30: (3, 0), 32: (4, 0), 35: (3, 1),
        37: (4, 1), 50: (4, 0), 52: (4, 1), 53: (4, 2), 60: (5, 0), 61: (5, 0), 62: (5, 0), 70: (6, 0), 72: (6, 1),
    }.items()
}
"""The targets before those."""

FORMER = {
    "sm_82": (TARGETS["sm_80"]._replace(name="sm_82", number=82), (6, 5)),
    "sm_101": (TARGETS["sm_110"], (8, 6)), "sm_101a": (TARGETS["sm_110a"], (8, 6)),
    "sm_101f": (TARGETS["sm_110f"], (8, 8)),
}
"""Names that text may have and nothing new is printed for: the target that each is now, and since when it is one."""

_ALL = {**LEGACY, **TARGETS, **{name: target for name, (target, _) in FORMER.items()}}


@cache
def serves(target: str, wanted: str) -> bool:
    """Whether what is there from ``wanted`` on is there on ``target``.

    >>> serves("sm_103a", "sm_100f"), serves("sm_120", "sm_90"), serves("sm_100", "sm_90a")
    (True, True, False)
    """
    has, needs = _ALL[target], _ALL[wanted]
    if needs.suffix == "a":
        return has is needs
    if needs.suffix == "f":
        return bool(has.suffix) and has.family == needs.family and has.number >= needs.number
    return has.number >= needs.number


def version_text(version: Version) -> str:
    """A PTX version as it is written: ``8.0``."""
    return f"{version[0]}.{version[1]}"


def introduced(target: str) -> Version:
    """The PTX version that introduced a target."""
    return FORMER[target][1] if target in FORMER else _ALL[target].introduced


def unmet(needs: Iterable[Need], version: Version, target: str) -> Need | None:
    """The first need that a module of this version and target does not meet, or None."""
    for need in needs:
        if need.version > version or (need.targets and not any(serves(target, wanted) for wanted in need.targets)):
            return need
    return None


def satisfies(needs: Iterable[Need], version: Version, target: str) -> bool:
    """Whether a module of this version and target meets all needs.

    >>> satisfies([Need((7, 8), ("sm_90",))], (8, 0), "sm_100a")
    True
    """
    return unmet(needs, version, target) is None


@cache
def served(needs: tuple[Need, ...]) -> tuple[str, ...]:
    """The targets that meet all needs, given a version that is high enough; the lowest first."""
    return tuple(name for name in TARGETS if satisfies((n._replace(version=(1, 0)) for n in needs), LATEST, name))


@cache
def lowest(needs: tuple[Need, ...]) -> tuple[Version, str]:
    """The lowest PTX version and target that meet all needs.

    Raises TargetError, with the two needs that exclude each other, where no target does.

    >>> lowest((Need((8, 6), ("sm_100f",)), Need((7, 0), ("sm_80",))))
    ((8, 8), 'sm_100f')
    """
    targets = served(needs)
    if not targets:
        raise TargetError(f"no target has all of it: {_conflict(needs)}")
    version = max((need.version for need in needs), default=(1, 0))
    return max(version, introduced(targets[0])), targets[0]


def _conflict(needs: tuple[Need, ...]) -> str:
    for one in needs:
        for other in needs:
            if not served((one, other)):
                return f"one part needs {' or '.join(one.targets)}, another {' or '.join(other.targets)}"
    return ", ".join(" or ".join(need.targets) for need in needs if need.targets)


MEMORY = {"local": 512 << 10, "const": 64 << 10}
"""The bytes of a thread's local memory, and of a module's constant memory, on every target."""


PARAMETERS, MOST_PARAMETERS = 4352, 32764
"""The bytes of an entry's parameters everywhere, and where there is MANY_PARAMETERS."""
MANY_PARAMETERS = (Need((8, 1), ("sm_70",)),)

PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters can place; a kernel is asked for more by an attribute."""


class Limits(NamedTuple):
    """What a launch on a target may ask for.

    Sizes in bytes; ``static_shared`` is what a kernel may declare, ``shared`` what it may have with dynamic shared
    memory; ``cluster`` counts blocks, of which every GPU with clusters takes PORTABLE_CLUSTER; ``registers`` are of a
    thread, ``block_registers`` of a block, both of 32 bits; ``local`` is the local memory of a thread, its stack too.
    """

    threads: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_shared: int = 48 << 10
    shared: int = 48 << 10
    registers: int = 255
    block_registers: int = 65536
    barriers: int = 16
    cluster: int = 1
    local: int = 512 << 10


def assembled(target: str) -> str:
    """The lowest target for which an assembler makes code of PTX for ``target``.

    >>> assembled("sm_30"), assembled("sm_90a"), assembled("sm_101a")
    ('sm_75', 'sm_90a', 'sm_110a')
    """
    if target in FORMER:
        return "sm_86" if target == "sm_82" else _ALL[target].name
    return "sm_75" if target in LEGACY else target


class Multiprocessor(NamedTuple):
    """What a streaming multiprocessor has for the blocks that are resident on it.

    ``barriers`` is 0 where they keep no block away, which is so before sm_90.
    ``shared`` is in bytes, of which ``reserved`` are the driver's in each block; blocks are given shared memory in
    units of ``shared_unit`` bytes, warps registers of 32 bits in units of ``register_unit``. Each of the ``partitions``
    has its part of the registers.
    """

    threads: int
    blocks: int
    barriers: int
    shared: int
    reserved: int = 1 << 10
    shared_unit: int = 128
    registers: int = 65536
    register_unit: int = 256
    partitions: int = 4


_MULTIPROCESSORS = {
    75: Multiprocessor(1024, 16, 0, 64 << 10, reserved=0, shared_unit=256),
    80: Multiprocessor(2048, 32, 0, 164 << 10),
    86: Multiprocessor(1536, 16, 0, 100 << 10),
    87: Multiprocessor(1536, 16, 0, 164 << 10),
    88: Multiprocessor(1536, 16, 0, 100 << 10),
    89: Multiprocessor(1536, 24, 0, 100 << 10),
    90: Multiprocessor(2048, 32, 64, 228 << 10),
    100: Multiprocessor(2048, 32, 64, 228 << 10),
    103: Multiprocessor(2048, 32, 32, 228 << 10),
    110: Multiprocessor(1536, 24, 24, 228 << 10),
    120: Multiprocessor(1536, 24, 24, 100 << 10),
    121: Multiprocessor(1536, 24, 24, 100 << 10),
}
"""By the number of the target; of sm_107 nothing is published yet. Threads, blocks and shared memory are the rows of
table "Technical Specifications per Compute Capability" of the CUDA programming guide, barriers and units those of the
toolkit's ``cuda_occupancy.h``, against which the tests hold them.
"""


def multiprocessor(target: str) -> Multiprocessor:
    """What a multiprocessor of a target has; TargetError for a target of which that is not known.

    >>> multiprocessor("sm_90a").threads, multiprocessor("sm_86").blocks
    (2048, 16)
    """
    found = _MULTIPROCESSORS.get(_ALL[assembled(target)].number)
    if found is None:
        known = ", ".join(f"sm_{number}" for number in _MULTIPROCESSORS)
        raise TargetError(f"what a multiprocessor of {target} has is not published; it is of {known}", loc=caller())
    return found


class Groups(NamedTuple):
    """How the multiprocessors of a ``gpu`` are grouped (CUDA's GPCs): the blocks of a cluster run in one group."""

    gpu: str
    processors: tuple[int, ...]


_GROUPS = {
    90: Groups("an H100 SXM", (18, 18, 16, 16, 16, 16, 16, 16)),
    120: Groups("an RTX 5090", (16, 16, 16, 16, 16, 16, 16, 16, 14, 14, 14)),
}
"""By the number of the target, where NVIDIA has published it: 66 and 85 pairs of multiprocessors in 8 and 11 groups, of
the architectures' whitepapers. They are taken to be spread evenly; chips of one product differ in that.
"""


def groups(target: str) -> Groups | None:
    """The groups of a GPU of a target; None where they are not published.

    >>> sum(groups("sm_90a").processors), groups("sm_100")
    (132, None)
    """
    return _GROUPS.get(_ALL[assembled(target)].number)


def limits(target: str) -> Limits:
    """The limits of a target: table "Technical Specifications per Compute Capability" of the CUDA programming guide.

    >>> limits("sm_90a").shared, limits("sm_75").cluster, limits("sm_90a").cluster
    (232448, 1, 16)
    """
    number = _ALL[target].number
    unit = _MULTIPROCESSORS.get(80 if number == 82 else number, _MULTIPROCESSORS[90])  # old PTX runs on newer GPUs
    cluster = 1 if number < 90 else 16 if number < 120 else PORTABLE_CLUSTER
    return Limits(shared=unit.shared - unit.reserved, cluster=cluster)

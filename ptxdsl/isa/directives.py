"""The directives that stand at the head of a function: what numbers each takes, what it needs and excludes."""

from __future__ import annotations

from typing import NamedTuple

from .specs import Need

__all__ = ["DIRECTIVES", "TARGET_OPTIONS", "VARIABLE_ATTRIBUTES", "DirectiveSpec"]


class DirectiveSpec(NamedTuple):
    """From ``least`` to ``most`` numbers may follow, none of them below ``lowest``; not beside ``excludes``."""

    least: int
    most: int
    needs: tuple[Need, ...] = ()
    lowest: int = 0
    excludes: str = ""
    until: tuple[int, int] | None = None
    """The PTX version that has it no more."""


_CLUSTER = (Need((7, 8), ("sm_90",)),)
_ABI = (Need((9, 0), ("sm_80",)),)

DIRECTIVES = {
    "maxntid": DirectiveSpec(1, 3, lowest=1, excludes="reqntid"),
    "reqntid": DirectiveSpec(1, 3, lowest=1, excludes="maxntid"),
    "minnctapersm": DirectiveSpec(1, 1, lowest=1),
    "maxnctapersm": DirectiveSpec(1, 1, lowest=1, until=(2, 1)),
    "maxnreg": DirectiveSpec(1, 1, lowest=1),
    "local_maxnreg": DirectiveSpec(1, 1, (Need((8, 8), ()),)),
    "noreturn": DirectiveSpec(0, 0, (Need((6, 4), ()),)),
    "reqnctapercluster": DirectiveSpec(1, 3, _CLUSTER, excludes="maxclusterrank"),
    "explicitcluster": DirectiveSpec(0, 0, _CLUSTER),
    "maxclusterrank": DirectiveSpec(1, 1, _CLUSTER, excludes="reqnctapercluster"),
    "blocksareclusters": DirectiveSpec(0, 0, (Need((9, 0), ("sm_90",)),)),
    "minperctamemory": DirectiveSpec(1, 1, (Need((9, 4), ("sm_80",)),)),
    "abi_preserve": DirectiveSpec(1, 1, _ABI),
    "abi_preserve_control": DirectiveSpec(1, 1, _ABI),
}
"""By name, without the dot. A ``.pragma`` may stand among them as well."""

VARIABLE_ATTRIBUTES = {"managed": DirectiveSpec(0, 0), "unified": DirectiveSpec(2, 2, (Need((8, 0), ("sm_90",)),))}
"""What ``.attribute(...)`` of a variable or function may hold."""

TARGET_OPTIONS = ("texmode_unified", "texmode_independent", "debug", "map_f64_to_f32")
"""What may follow the architecture in ``.target``; map_f64_to_f32 has no effect from sm_13 on."""

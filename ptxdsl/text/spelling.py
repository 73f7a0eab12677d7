"""Mnemonics whose modifiers stand in another order than the manual's: NVIDIA's tools write them, ptxas takes them."""

from __future__ import annotations

import re

from ..isa.effects import ORDERS, SCOPES
from ..types import SPACES

__all__ = ["canonical"]

_ATOMIC = re.compile(r"^(atom|red)((?:\.(?:[a-z]\w*)(?:::cta|::cluster)?)+?)(\.(?:noftz|v[248]|[bsu]?f?\d).*)$")
_GROUPS = (ORDERS, SCOPES, (*SPACES, "shared::cta", "shared::cluster"))
_PLACES = {token: place for place, group in enumerate(_GROUPS) for token in group}
"""Where the manual has a modifier of an atomic operation: memory order, scope, state space, then all others."""
_REORDERED = (
    # nvcc puts the rounding last, cuda::ptx writes tcgen05.ld.red....f32.min.
    (re.compile(r"^(wmma\.mma\.\S+)((?:\.f64){4})(\.r[nzmp])$"), r"\1\3\2"),
    (re.compile(r"^(tcgen05\.ld\.red\..*)\.([fus]32)((?:\.(?:min|max|abs|NaN))+)$"), r"\1\3.\2"),
)


def canonical(mnemonic: str) -> str:
    """A mnemonic in the manual's order.

    cooperative_groups writes atom.add.release.gpu.u32, cuda's headers atom.global.cta.add.u32, Triton
    atom.global.gpu.acq_rel.add.u32.
    """
    spelled = re.sub(r"\s", "", mnemonic)
    for pattern, order in _REORDERED:
        spelled = pattern.sub(order, spelled)
    match = _ATOMIC.match(spelled)
    if match is None:
        return spelled
    tokens = match[2][1:].split(".")
    return ".".join([match[1], *sorted(tokens, key=lambda token: _PLACES.get(token, len(_GROUPS)))]) + match[3]

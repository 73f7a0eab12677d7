"""Whether a GPU has an instruction: what a kernel that is written for several of them branches on."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import TargetError, UnknownInstruction, did_you_mean, similar
from .table import lookup
from .targets import LATEST, TARGETS, Version, introduced, lowest, unmet

__all__ = ["Support", "supports"]


class Support(NamedTuple):
    """The answer of ``supports``; true where the instruction is there.

    ``version`` is the lowest PTX version for the target asked about, ``target`` the lowest target of all that has it,
    ``reason`` says why not. Where there is no such instruction, both are None.
    """

    ok: bool
    reason: str
    version: Version | None
    target: str | None

    def __bool__(self) -> bool:
        return self.ok


def supports(mnemonic: str, arch: str | None = None) -> Support:
    """Whether a target has an instruction, written out with its modifiers; without ``arch``, whether any has.

    Raises TargetError for a target that does not exist.

    >>> supports("cvt.rn.satfinite.e4m3x2.f32", arch="sm_80")
    Support(ok=False, reason='needs sm_89 or later', version=None, target='sm_89')
    >>> supports("fma.rn.f32", arch="sm_90a").version
    (8, 0)
    """
    if arch is not None and arch not in TARGETS:
        raise TargetError(f"there is no target `{arch}`", hint=did_you_mean(similar(arch, TARGETS, 3), "{}"))
    try:
        forms = lookup(mnemonic.strip().rstrip(";"))
    except UnknownInstruction as error:
        return Support(False, f"{error.message}; {error.hint}" if error.hint else error.message, None, None)
    version, target = min(lowest(form.needs) for form in forms)
    if arch is None:
        return Support(True, "", version, target)
    own = [form for form in forms if unmet(form.needs, LATEST, arch) is None]
    if own:
        least = min(max((need.version for need in form.needs), default=(1, 0)) for form in own)
        return Support(True, "", max(least, introduced(arch)), target)
    need = unmet(forms[0].needs, LATEST, arch)
    assert need is not None
    return Support(False, f"needs {' or '.join(_said(name) for name in need.targets)}", None, target)


def _said(target: str) -> str:
    """A target as a condition: ``sm_90`` means the later ones as well."""
    kind = TARGETS[target]
    if kind.suffix == "a":
        return target
    return f"{target} or later" + (" of its family" if kind.suffix == "f" else "")

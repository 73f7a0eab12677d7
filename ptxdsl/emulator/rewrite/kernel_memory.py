"""The memory of a kernel, for which it is rewritten where it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Call, Function, Instruction, Module
from ..analysis.divergence import Shape3
from ..machine.address_spaces import AddressSpaces, ModuleMemory
from ..machine.unsupported import unsupported
from .carried_loops import compare_counters
from .expansions import expansion, short_addresses
from .loop_bounds import bounded_by_differences

if TYPE_CHECKING:
    from .index_checks import Annotations

__all__ = ["spaces_of"]


def spaces_of(
    module: Module, function: Function, memory: ModuleMemory, cluster: Shape3 | None, annotations: Annotations | None,
    defers: bool = False,
) -> AddressSpaces:
    """The memory of a kernel, whose function is what remains to be lowered; for clusters of this shape, if any.

    ``defers``: asynchronous copies are made later than they stand, and warps stop before strong accesses.
    """
    function = compare_counters(function)
    alone = cluster is None and annotations is None
    if alone and _runs_as_it_stands(function) and not short_addresses(module, function):
        spaces = AddressSpaces(module, function, memory)
        spaces.defers = defers
        return spaces
    spaces = _rewritten(module, function, memory, cluster, annotations, defers)
    spaces.asked = annotations.asked if annotations is not None else []
    return spaces


def _runs_as_it_stands(function: Function) -> bool:
    """Whether no pass has to rewrite a kernel, and it has no clusters: it needs less of the emulator."""
    forms = set()
    for statement in function.body or ():
        if statement.__class__ is Instruction:
            forms.add(statement.form)
        elif statement.__class__ is Call:
            return False
    named = any(name in ("minperctamemory", "reqnctapercluster") for name, _ in function.directives)
    passed = any(variable.space == "param" for variable in function.variables)
    if named or passed or any(expansion(f) or f.effects.barrier == "cluster" for f in forms):
        return False
    return not bounded_by_differences(function.body or ())


def _rewritten(
    module: Module, function: Function, memory: ModuleMemory, asked: Shape3 | None, annotations: Annotations | None,
    defers: bool,
) -> AddressSpaces:
    """The memory of a kernel that has to be rewritten, or is launched in clusters."""
    from .pipeline import rewrite

    if any(name == "minperctamemory" for name, _ in function.directives):
        raise unsupported(None, f"`.minperctamemory` of {function.name}")
    cluster = asked or _required_cluster(function)
    function = rewrite(module, function, cluster, annotations=annotations, defers=defers)
    spaces = AddressSpaces(module, function, memory)
    spaces.defers = defers
    spaces.cluster, spaces.explicit = cluster, cluster is not None
    if cluster is None and any(s.form.effects.barrier == "cluster" for s in function.instructions()):
        spaces.cluster = (1, 1, 1)
    return spaces


def _required_cluster(function: Function) -> Shape3 | None:
    for name, numbers in function.directives:
        if name == "reqnctapercluster" and numbers:
            x, y, z = (*(int(n) for n in numbers), 1, 1)[:3]
            return x, y, z
    return None

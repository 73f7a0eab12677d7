"""The rewriting passes in their order, and what each is needed for."""

from __future__ import annotations

from ...ir import Function, Module
from .cluster_addresses import address_by_register
from .inline import inline
from .matrix_fragments import expand_fragments

__all__ = ["rewrite"]

Shape3 = tuple[int, int, int]


def rewrite(module: Module, function: Function, cluster: Shape3 | None) -> Function:
    """A kernel without calls, and without instructions that others make up, for clusters of that many blocks."""
    function = expand_fragments(inline(module, function))
    if cluster not in (None, (1, 1, 1)):
        variables = [*module.variables, *function.variables]
        function = address_by_register(function, {v.name for v in variables if v.space == "shared"})
    return function

"""The rewriting passes: PTX to PTX, in this order, each where a kernel has something for it.

After them there are no calls but of the host's functions, and no instructions that stand for several others. Every
pass gives a function that the verifier accepts, which the tests check.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Function, Module
from .alloca import Alloca
from .async_copies import AsyncCopies, DeferredCopies
from .carried_loops import compare_counters
from .cluster_addresses import address_by_register
from .index_checks import Annotations
from .inline import Inliner, calls
from .loop_bounds import guard_loops
from .matrix_fragments import MatrixFragments
from .short_addresses import lengthen_addresses
from .tensor_maps import TensorMaps

__all__ = ["rewrite"]

Shape3 = tuple[int, int, int]
_EXPANDERS = (Alloca, AsyncCopies, MatrixFragments, TensorMaps)


def rewrite(
    module: Module, function: Function, cluster: Shape3 | None, after: Callable[[Function], None] | None = None,
    annotations: Annotations | None = None, defers: bool = False,
) -> Function:
    """A kernel of the module, rewritten for clusters of that many blocks; ``after`` is called after each pass.

    ``annotations``: the accesses that have one are checked by it. ``defers``: asynchronous copies stay.
    """
    seen = function

    def passed(result: Function) -> Function:
        nonlocal seen
        if after is not None and result is not seen:
            after(result)
        seen = result
        return result

    function = passed(guard_loops(function))
    if annotations is not None:
        function, module = passed(annotations.checked(function)), annotations.module(module)
    if calls(function):
        function = passed(compare_counters(Inliner(module, function).run()))
    function = passed(lengthen_addresses(module, function))
    forms = {statement.form for statement in function.instructions()}
    for expander in _EXPANDERS:
        if defers and expander is AsyncCopies:
            expander = DeferredCopies
        if any(expander.expansion(form) is not None for form in forms):
            function = passed(expander.run(function))
    if cluster not in (None, (1, 1, 1)):
        variables = [*module.variables, *function.variables]
        function = passed(address_by_register(function, {v.name for v in variables if v.space == "shared"}))
    return function

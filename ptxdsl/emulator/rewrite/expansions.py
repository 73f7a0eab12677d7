"""Which instructions are expanded, by which method of which pass: asked of every kernel, so it loads none of them."""

from __future__ import annotations

from functools import cache

from ...ir import Function, Instruction, Module, Symbol
from ...isa import Form

__all__ = ["MULTICAST", "expansion", "short_address", "short_addresses"]

MULTICAST = "multicast::cluster"
_PASSES = {
    "Alloca": {"alloca": "allocate", "stacksave": "save", "stackrestore": "restore"},
    "AsyncCopies": {
        "cp_async": "copy", "cp_async_arrive": "arrive", "st_async": "store", "red_async": "reduce",
        "st.bulk": "fill", "mbarrier.multicast": "multicast", "bulk.multicast": "copy_multicast",
        "multimem.ld_reduce": "access_multimem", "multimem.st": "access_multimem", "multimem.red": "reduce_multimem",
        "try_cancel": "try_cancel", "query_cancel": "query_cancel", "tensor.multicast": "copy_multicast",
        "tensor_commit": "commit", "tensor_commit.multicast": "commit_multicast",
    },
    "TensorMaps": {"tensormap.replace": "replace", "tensormap.cp_fenceproxy": "copy"},
    "MatrixFragments": {
        "wmma_load": "wmma", "wmma_store": "wmma", "ldmatrix": "fragments", "stmatrix": "fragments",
        "movmatrix": "movmatrix",
    },
}
_EXPANSIONS = {name: (owner, method) for owner, methods in _PASSES.items() for name, method in methods.items()}


@cache
def expansion(form: Form) -> tuple[str, str] | None:
    """The names of the pass and of its method that emits what stands for an instruction; None where it stays."""
    name = form.semantics
    multicast = ".multicast" if any(token.startswith(MULTICAST) for token in form.tokens) else ""
    if name == "st" and "bulk" in form.tokens:
        name = "st.bulk"
    elif name in ("multimem", "tensormap"):
        name += f".{form.tokens[0]}"
    elif name == "tensor_load":
        name = f"tensor{multicast}"
    elif name in ("mbarrier", "tensor_commit"):
        name += multicast
    elif name in ("cp_async_bulk", "cp_reduce_async_bulk") and form.effects.completes == "mbarrier":
        name = f"bulk{multicast}"
    return _EXPANSIONS.get(name)


def short_address(statement: Instruction) -> str | None:
    """The variable whose address an instruction puts into 32 bits, if it does."""
    form, operands = statement.form, statement.operands
    if form.opcode != "mov" or operands[-1].__class__ is not Symbol or form.type is None or form.type.bits != 32:
        return None
    return operands[-1].symbol


def short_addresses(module: Module, function: Function) -> dict[str, str]:
    """The first variable of each space that lies in the host's memory and of which a kernel takes short addresses."""
    taken = {short_address(statement) for statement in function.instructions()} - {None}
    spaces = {"param": [parameter.name for parameter in function.parameters]}
    if module.address_size != 32:
        spaces["const"] = [variable.name for variable in module.variables if variable.space == "const"]
    return {space: names[0] for space, names in spaces.items() if not taken.isdisjoint(names)}

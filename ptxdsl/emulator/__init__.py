"""Runs PTX on the CPU: :func:`load` takes the text, :meth:`Program.run` a launch.

A kernel is rewritten where it has to be (``rewrite``), analysed (``analysis``) and lowered to micro-ops
(``instructions``), each of which a compiled function executes (``codegen``); kernels that run long are compiled whole
(``jit``). ``machine`` says where everything lies in memory, ``runtime`` runs launches.
"""

from __future__ import annotations

from .program import Program, load

__all__ = ["Program", "load"]

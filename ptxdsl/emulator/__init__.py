"""Runs PTX on the CPU: :func:`load` takes the text, :meth:`Program.run` a launch.

Kernels run as records walked by compiled handlers, one an instruction shape (``library``, ``handlers``). Before that
a function is analysed (``cfg``, ``analysis``) and lowered (``lower``); while it runs its warps and memory lie where
``layout`` and ``state`` put them.
"""

from __future__ import annotations

from .program import Program, load

__all__ = ["Program", "load"]

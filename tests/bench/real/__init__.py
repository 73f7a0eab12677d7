"""Kernels of the shapes that people write, as compilers made PTX of them, each beside the same loops in C.

A family is three files of one name: ``stencils.cu`` for the GPU, ``stencils.c`` with the same loops for one thread, and
``stencils.py`` with the data, the launches and numpy's results. Kernels for Triton and Numba stand in ``with_triton``
and ``with_numba``. ``ptx/`` keeps what the compilers made of them; ``corpus.py --compile`` makes it again.
"""

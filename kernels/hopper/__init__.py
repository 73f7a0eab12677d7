"""Kernels made for Hopper (sm_90a): tensor copies, products of warpgroups, roles of warps.

They are what `linalg` and `attention` launch on such a GPU; ``docs/peak_kernels.md`` has the designs.
"""

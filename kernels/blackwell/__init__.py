"""Kernels made for Blackwell (sm_100a): tensor memory, products by one thread, pairs of blocks."""

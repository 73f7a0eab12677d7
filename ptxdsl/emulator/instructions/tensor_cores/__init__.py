"""Lowering of the matrix instructions: `mma` and `wmma`, `wgmma`, and `tcgen05` with its tensor memory."""

"""Code generation: micro-ops to LLVM IR, one module a family, and the cache of what was compiled."""

"""Machine code of our own: LLVM makes it, and what is on disk runs without LLVM. The emulator and launches use it."""

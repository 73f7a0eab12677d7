"""The emulated machine's memory: layouts, blocks, address spaces, heap, textures."""

"""NVIDIA's side: its assembler and disassembler, the CUDA driver, and kernels, textures and copies on a GPU.

Nothing is loaded before it is used: a machine without a GPU or an assembler traces and emulates all the same.
"""

"""What follows floats in float64."""

from . import atomics, memory, products, registers

__all__ = ["atomics", "memory", "products", "registers"]

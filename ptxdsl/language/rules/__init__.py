"""The rules R1 to R6: what a tracer could get wrong in silence."""

"""Blocks that run conditionally or repeatedly, and labels."""

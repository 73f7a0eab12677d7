"""Lowering: from statements to micro-ops."""

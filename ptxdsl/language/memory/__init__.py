"""Pointers and arrays, and the instructions that compute addresses."""

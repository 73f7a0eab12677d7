"""Analyses of PTX that verifier, launch and emulator share."""

"""The ``ptx`` namespace, with its generated stub."""

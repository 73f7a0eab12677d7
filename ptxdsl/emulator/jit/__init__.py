"""The second tier: what runs long is compiled as a whole."""

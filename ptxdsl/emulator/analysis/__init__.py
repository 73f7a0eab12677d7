"""What the emulator finds out about a function before it is lowered."""

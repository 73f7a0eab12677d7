"""What Python can tell of a running function: its call sites, its bytecode, its source."""

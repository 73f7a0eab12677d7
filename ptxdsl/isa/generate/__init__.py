"""What is written from the table: the stub of ``ptx`` and the reference pages."""

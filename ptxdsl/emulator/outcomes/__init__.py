"""All outcomes of small launches by PTX's memory model."""

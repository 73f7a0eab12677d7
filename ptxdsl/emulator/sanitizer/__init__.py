"""The sanitizer: races, uninitialised memory and registers."""

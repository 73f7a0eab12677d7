"""Observers of a launch: profiler, debugger, thread trace."""

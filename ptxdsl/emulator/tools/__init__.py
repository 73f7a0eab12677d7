"""What watches a launch: profiler, debugger, thread trace."""

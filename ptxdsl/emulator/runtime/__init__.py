"""Running a launch: workers, convergence, clusters, system calls, faults."""

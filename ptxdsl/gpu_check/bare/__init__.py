"""The part of the check that runs on the machine with the GPU: Python's own library and ``libcuda.so.1``, nothing else.

It imports nothing of ptxdsl outside of this folder, since it is copied to machines that have none.
"""

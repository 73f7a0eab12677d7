"""What ops of every framework have in common: which arguments a kernel gets, what it is launched with, its gradients.

`ptxdsl.torch` and `ptxdsl.jax` are made of it; it imports neither framework.
"""

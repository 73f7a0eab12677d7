"""Values, what their operators are, and the functions on them."""

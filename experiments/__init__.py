"""Experiments that can be repeated: each module prints what the documentation quotes."""

"""Synthetic web graphs with planted spam, for simulations, tests and benchmarks."""

"""Uniform samples of a topic by weighted random walks, and estimates with confidence intervals."""

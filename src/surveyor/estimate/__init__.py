"""Estimates from few pages: the global rank of a community, and uniform samples of a topic."""

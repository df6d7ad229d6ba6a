"""Uniform samples of a topic: random walks over pages and links, their weights, and what they tell with intervals."""

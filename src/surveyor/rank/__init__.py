"""Scores for the pages of a graph, each with its proven error."""

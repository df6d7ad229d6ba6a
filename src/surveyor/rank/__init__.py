"""Scores for the pages of a graph, each with a proven error."""

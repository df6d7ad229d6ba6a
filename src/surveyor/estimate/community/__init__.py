"""Estimate the global PageRank of local pages from few pages around them (FindGlobalPR)."""

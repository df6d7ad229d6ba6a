"""PageRank of graphs in pieces."""

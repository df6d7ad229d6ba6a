"""Graphs in pieces: graphs beyond the memory, or the page ids, of one machine."""

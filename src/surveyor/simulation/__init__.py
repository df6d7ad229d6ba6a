"""Simulated crawls that compare strategies on a known web.

`simulate` sets up a `Scenario` (the web and its failures), runs every strategy on the same `Course` with objects
(`objects.py`, the loop of a live crawl) or kernels (`compiled.py`, the same steps in one loop), and returns a `Race`.
"""

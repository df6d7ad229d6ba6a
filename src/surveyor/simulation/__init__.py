"""Strategies raced over a known web.

`simulate` sets up a `Scenario` (the web and what goes wrong on it), lets every strategy run the same `Course`
through objects (`objects.py`, the loop of a live crawl) or kernels (`compiled.py`, the same steps in one loop),
and gathers a `Race`.
"""

"""Simulated crawls that compare strategies on a known web.

`simulate` sets up a `Scenario` (the web and its failures), runs every strategy with the same `RaceSetup`, in the loop
of a live crawl or in one kernel, and returns a `Race`.
"""

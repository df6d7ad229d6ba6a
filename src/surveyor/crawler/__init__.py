"""Crawling: the loop, the ledger of importance, the frontier, strategies, sources, sessions and replay."""

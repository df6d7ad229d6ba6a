"""Estimates about a site from a few random walks, before a crawl."""

"""Politeness: crawl delays, backoff, rate limits shared by address and domain, and offline detection."""

"""Fetch pages over HTTP within limits: client, address checks, content decoding, politeness."""

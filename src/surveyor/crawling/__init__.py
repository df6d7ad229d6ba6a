"""Crawls over HTTP into a survey, and what a survey tells."""

"""Surveyor inside other programs."""
